"""Exact stops for sglang, through its own plugins: set ``STOPSCAN_SGLANG=1`` in the server's environment."""

from stopscan.sglang._plugin import register

__all__ = ["register"]
