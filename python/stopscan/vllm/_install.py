from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stopscan import Repeat
from stopscan._engine import environment
from stopscan._engine.environment import Settings

if TYPE_CHECKING:
    from stopscan.vllm._adapter import Adapter

WAY_OUT = "use a vLLM with which stopscan was tested, or run vLLM without stopscan (STOPSCAN_VLLM=optional)"


def install(*, protect: Any = None, repeat: Repeat | None = None) -> None:
    """Puts stopscan into the detokenizer of the requests that vLLM gets from now on in this process. Returns nothing.

    Text, token ids, finish and stop reasons stay vLLM's. If stops complete at the same character, vLLM's list order
    counts. The text comes as soon as it is safe.

    - ``protect`` has the regions in which no stop fires, for requests without ``stopscan_protect``: pairs of markers,
      ``"reasoning"`` and ``"tool_call"``. Without ``protect``, these two names hold on a server's chat routes.
      ``LLM.chat`` is offline: stops fire everywhere.
    - ``"reasoning"`` means the regions of the reasoning parser of each engine that is made after this call. An answer
      begins in such a region where that parser says so. ``"tool_call"`` means the regions of a server's tool parser.
    - ``repeat`` ends answers that loop, for requests without ``stopscan_repeat``.

    Another call replaces ``protect`` and ``repeat``.

    Raises ``RuntimeError``, with vLLM unchanged, if vLLM's texts with stopscan are not what they must be.

    >>> install(protect=["reasoning", ("<scratch>", "</scratch>")])
    """
    _install(Settings(protect, repeat=repeat))


def uninstall() -> None:
    """Gives vLLM its own detokenizer back. Requests that are under way end as they began. Returns nothing."""
    import sys

    if hooks := sys.modules.get("stopscan.vllm._hooks"):
        hooks.revert()


def install_as_asked() -> None:
    """Installs with what the environment says, before the first engine of a process."""
    asked = environment.switch("STOPSCAN_VLLM")
    if asked == "0":
        return
    settings = environment.settings("STOPSCAN_VLLM")
    try:
        _install(settings, optional=asked == "optional")
    except RuntimeError as error:
        if asked == "1":
            raise
        from stopscan.vllm._adapter import logger

        logger.warning("running without stopscan: %s", error)


def adapter(settings: Settings) -> Adapter:
    """What scans requests as ``settings`` say. Raises ``RuntimeError`` if stopscan does not fit this vLLM."""
    settings = settings.checked()
    try:
        from stopscan.vllm import _hooks, _selftest
        from stopscan.vllm._adapter import Adapter

        wrong = [] if _hooks.installed() else _selftest.problems()
    except Exception as error:
        raise RuntimeError(f"stopscan does not fit vLLM {_version()}: {error!r}; {WAY_OUT}") from error
    if wrong:
        raise RuntimeError(f"stopscan does not fit vLLM {_version()}: {'; '.join(wrong[:3])}; {WAY_OUT}")
    return Adapter(settings)


def _install(settings: Settings, *, optional: bool = False) -> None:
    made = adapter(settings)
    made.optional = optional
    from stopscan.vllm import _hooks

    _hooks.apply(made)


def _version() -> str:
    import vllm

    return str(getattr(vllm, "__version__", "?"))
