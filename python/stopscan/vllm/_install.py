from __future__ import annotations

import json
import logging
import os

from stopscan._protect import NAMES, Protect, regions
from stopscan.vllm._parts import require

# vLLM's own handlers print what is logged below its name.
logger = logging.getLogger("vllm.stopscan")


def install(*, protect: Protect = ()) -> None:
    """Puts stopscan into the detokenizer of the requests that vLLM gets from now on in this process.

    Text, token ids, finish and stop reasons stay vLLM's, its list order of stops that complete at the same character
    included; the text comes as soon as it is safe. ``protect`` has the regions in which no stop fires, for requests
    without ``stopscan_protect``: pairs of markers, ``"reasoning"`` (the regions of the reasoning parser of each engine
    that is made after this call, in which an answer also begins where that parser says so) and ``"tool_calls"`` (those
    of a server's tool parser). Another call replaces them. Raises ``RuntimeError``, with vLLM unchanged, if it has not
    the parts that stopscan needs.

    >>> install(protect=["reasoning", ("<scratch>", "</scratch>")])
    """
    require()
    # What is imported here is of vLLM's inside, and only of a version that is known to have it.
    from stopscan.vllm import _patches
    from stopscan.vllm._installation import Installation

    _patches.apply(Installation(protect))


def uninstall() -> None:
    """Gives vLLM its own detokenizer back; requests that are under way end as they began."""
    require()
    from stopscan.vllm import _patches

    _patches.revert()


def plugin() -> None:
    """Installs stopscan if the environment asks for it; vLLM calls this in each of its processes.

    ``STOPSCAN_VLLM=1`` asks for it, and the server does not start if it cannot be; ``optional`` logs a warning then.
    ``STOPSCAN_VLLM_PROTECT`` has a name, or a list as in ``stopscan_protect``.
    """
    switch = os.environ.get("STOPSCAN_VLLM", "0")
    if switch not in ("", "0", "1", "optional"):
        raise ValueError(f"STOPSCAN_VLLM must be 0, 1 or optional, not {switch!r}")
    if switch in ("", "0"):
        return
    protect = _environment_regions(os.environ.get("STOPSCAN_VLLM_PROTECT", ""))
    try:
        _refuse_rust_front()
        install(protect=protect)
    except RuntimeError as error:
        if switch == "1":
            raise
        logger.warning("running without stopscan: %s", error)


def _refuse_rust_front() -> None:
    from vllm import envs

    if getattr(envs, "VLLM_USE_RUST_FRONTEND", False):
        raise RuntimeError(
            "stopscan: with VLLM_USE_RUST_FRONTEND=1, text and stops are made outside of Python, where stopscan cannot "
            "find them; unset it, or STOPSCAN_VLLM"
        )


def _environment_regions(value: str) -> Protect:
    try:
        protect: Protect = value if value in NAMES else json.loads(value or "[]")
        regions(protect, dict.fromkeys(NAMES, ()))
    except ValueError as error:
        names = " or ".join(NAMES)
        raise ValueError(f"STOPSCAN_VLLM_PROTECT must be {names}, or a JSON list of regions: {error}") from None
    return protect
