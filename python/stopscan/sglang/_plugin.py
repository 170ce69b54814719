"""The entry point that sglang calls in its engine, scheduler, detokenizer and data-parallel processes."""

from __future__ import annotations

import logging
import multiprocessing
from pkgutil import resolve_name
from typing import Any

from stopscan._engine import environment
from stopscan._engine.environment import Settings
from stopscan.sglang._hooks import hooks

logger = logging.getLogger("sglang.stopscan")


def register() -> None:
    """Registers stopscan's hooks, all or none, if the environment asks for it.

    ``STOPSCAN_SGLANG=1`` asks for it, and the process ends if stopscan does not fit; ``optional`` logs a warning then.
    sglang goes on after any other exception of a plugin, which would leave it half hooked.
    """
    try:
        asked = environment.switch("STOPSCAN_SGLANG")
        if asked == "0":
            return
        settings = environment.settings("STOPSCAN_SGLANG").checked()
    except ValueError as error:
        raise SystemExit(f"stopscan: {error}") from error
    try:
        fitting = _fitting(settings)
    except Exception as error:
        if asked == "1":
            raise SystemExit(f"stopscan: {error}; see docs/sglang.md") from error
        logger.warning("running without stopscan: %s", error)
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in fitting.items():
        HookRegistry.register(target, hook, HookType.AROUND)


def _fitting(settings: Settings) -> dict[str, Any]:
    """The hooks, if this sglang has what they stand around and its texts with them are right, or ``RuntimeError``."""
    from sglang.srt.environ import envs

    if envs.SGLANG_RUST_SERVER.get():
        raise RuntimeError("with SGLANG_RUST_SERVER=1, text is made outside of Python, where stopscan cannot find it")
    made = hooks(settings)
    for target in made:
        owner, _, name = target.rpartition(".")
        try:
            found = hasattr(resolve_name(owner), name)
        except (ImportError, AttributeError):
            found = False
        if not found:
            raise RuntimeError(f"this sglang has no {target}")
    if multiprocessing.parent_process() is None:
        from stopscan.sglang._selftest import problems

        if wrong := problems():
            raise RuntimeError(f"it does not fit this sglang: {'; '.join(wrong[:3])}")
    return made
