"""Exact stops for sglang, as a plugin of sglang: set ``STOPSCAN_SGLANG=1`` in the server's environment."""

from __future__ import annotations

__all__ = ["register"]


def register() -> None:
    """Registers stopscan's hooks, all or none, if ``STOPSCAN_SGLANG`` asks for it. sglang calls ``register`` in its
    engine, scheduler, detokenizer and data-parallel processes.

    With ``1``, the process ends if stopscan does not work with this sglang. With ``optional``, it logs a warning and
    goes on without stopscan. The process ends by ``SystemExit``, because sglang ignores other exceptions of plugins,
    and would go on with hooks in only some of its processes.
    """
    from stopscan.sglang import _plugin

    _plugin.register()
