"""Exact stops for sglang, through its own plugins: ``STOPSCAN_SGLANG=1`` in the server's environment is all."""

from __future__ import annotations

__all__ = ["register"]


def register() -> None:
    """Registers stopscan's hooks, all or none, if the environment asks for it. sglang calls this in its engine,
    scheduler, detokenizer and data-parallel processes.

    ``STOPSCAN_SGLANG=1`` asks for it, and the process ends if stopscan does not fit; ``optional`` logs a warning then.
    The exception is a ``SystemExit``: after any other sglang would go on, half hooked.
    """
    from stopscan.sglang import _plugin

    _plugin.register()
