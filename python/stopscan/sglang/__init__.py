"""Exact stops for sglang, through its own plugins: ``STOPSCAN_SGLANG=1`` in the server's environment is all."""

from stopscan.sglang._plugin import register

__all__ = ["register"]
