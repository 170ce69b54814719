from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from stopscan import StopSet

if TYPE_CHECKING:
    from vllm import SamplingParams

Pairs = tuple[tuple[str, str], ...]


def marker_pairs(markers: object) -> Pairs:
    """The pairs of a flat list of opening and closing markers: HTTP's ``vllm_xargs`` cannot nest."""
    if not isinstance(markers, list | tuple) or len(markers) % 2 or not all(isinstance(m, str) and m for m in markers):
        raise ValueError(f"must be a flat list of an opening and a closing marker for each region, not {markers!r}")
    return tuple(zip(markers[::2], markers[1::2], strict=True))


def protection(extra_args: Mapping[str, Any] | None, default: object) -> tuple[Pairs | None, bool | None]:
    """The ``stopscan_protect`` and ``stopscan_start_protected`` of a request, ``None`` where it says nothing.

    What is malformed raises vLLM's validation error with the option's name, as does a start without a region when
    there is no ``default``.
    """
    options = {name: value for name, value in (extra_args or {}).items() if name.startswith("stopscan_")}
    markers = options.pop("stopscan_protect", None)
    start = options.pop("stopscan_start_protected", None)
    for name in options:
        raise refusal(name, "is not an option of stopscan: there are stopscan_protect and stopscan_start_protected")
    if start not in (None, 0, 1):
        raise refusal("stopscan_start_protected", f"must be 0 or 1, not {start!r}")
    try:
        pairs = None if markers is None else marker_pairs(markers)
    except ValueError as error:
        raise refusal("stopscan_protect", str(error)) from None
    if start and not (default if pairs is None else pairs):
        raise refusal("stopscan_start_protected", "needs the markers of a region in stopscan_protect")
    return pairs, None if start is None else bool(start)


def stop_set(stops: Iterable[str], protect: Pairs) -> StopSet:
    """The set that reports what vLLM would: of the stops that complete at one character, the first of its list.

    A stop that ends with one listed before it is never reported then. Without those, the first is the longest.
    """
    listed: list[str] = []
    for stop in stops:
        if not stop.endswith(tuple(listed)):
            listed.append(stop)
    try:
        return StopSet(listed, protect=protect)
    except ValueError as error:
        raise refusal("stop", str(error)) from error


def check(params: SamplingParams, default: object = ()) -> None:
    """Raises what the request would raise later, when its stream has begun."""
    protect, _ = protection(params.extra_args, default)
    stop_set(params.stop, protect or ())


def refusal(parameter: str, problem: str) -> Exception:
    """vLLM's own validation error: its engine makes a 500 of a ``ValueError``, and a 400 of this."""
    from vllm.exceptions import VLLMValidationError

    error: Exception = VLLMValidationError(f"{parameter} {problem}", parameter=parameter)
    return error
