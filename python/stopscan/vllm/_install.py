from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Literal


def install(*, protect: Iterable[tuple[str, str]] | Literal["reasoning"] = ()) -> None:
    """Puts stopscan into the detokenizer of the requests that vLLM gets from now on in this process.

    Text, token ids, finish and stop reasons stay vLLM's, its list order of stops that complete at the same character
    included; the text comes as soon as it is safe. ``protect`` has the markers of the regions in which no stop fires,
    for requests without ``stopscan_protect``; ``"reasoning"`` takes them from the reasoning parser of each engine that
    is made after this call. Another call replaces them. Raises ``RuntimeError``, with vLLM unchanged, if its version
    is not 0.32.

    >>> install(protect=[("<think>", "</think>")])
    """
    require_supported()
    # What is imported here is of vLLM's inside, and only of a version that is known to have it.
    from stopscan.vllm import _patches

    _patches.apply(protect if protect == "reasoning" else tuple(protect))


def uninstall() -> None:
    """Gives vLLM its own detokenizer back; requests that are under way end as they began."""
    require_supported()
    from stopscan.vllm import _patches

    _patches.revert()


def require_supported() -> None:
    """Raises ``RuntimeError`` unless this is vLLM 0.32."""
    import vllm

    if vllm.__version__.split(".")[:2] != ["0", "32"]:
        raise RuntimeError(f"stopscan.vllm supports vLLM 0.32, and this is vLLM {vllm.__version__}")


def plugin() -> None:
    """Installs stopscan if the environment asks for it; vLLM calls this in each of its processes.

    ``STOPSCAN_VLLM=1`` asks for it, ``STOPSCAN_VLLM_PROTECT`` has ``reasoning`` or a list as in ``stopscan_protect``.
    """
    switch = os.environ.get("STOPSCAN_VLLM", "0")
    if switch not in ("", "0", "1"):
        raise ValueError(f"STOPSCAN_VLLM must be 0 or 1, not {switch!r}")
    if switch == "1":
        install(protect=_environment_markers(os.environ.get("STOPSCAN_VLLM_PROTECT", "")))


def _environment_markers(value: str) -> tuple[tuple[str, str], ...] | Literal["reasoning"]:
    from stopscan.vllm._options import marker_pairs

    if value == "reasoning":
        return "reasoning"
    try:
        return marker_pairs(json.loads(value or "[]"))
    except ValueError as error:
        raise ValueError(f"STOPSCAN_VLLM_PROTECT must be 'reasoning' or a JSON list of markers: {error}") from None
