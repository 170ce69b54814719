"""What a request asks of stopscan, in ``SamplingParams.extra_args``, over HTTP in ``vllm_xargs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stopscan import StopSet
from stopscan._protect import Regions, regions

if TYPE_CHECKING:
    from vllm import SamplingParams

# The map is shared with other plugins; what has this prefix is ours.
PREFIX = "stopscan_"


class Options(NamedTuple):
    """The options of one request; ``None`` where it says nothing."""

    protect: Regions | None = None
    start_protected: bool | None = None
    patterns: tuple[str, ...] = ()


def options(extra_args: Mapping[str, Any] | None, named: Mapping[str, Regions] | None, default: bool) -> Options:
    """The options in ``extra_args``. What is malformed raises vLLM's validation error, with the option's name.

    ``named`` has the regions that the engine knows by name. A start without a region is malformed, too, unless there
    are regions by ``default``.
    """
    given = {name: value for name, value in (extra_args or {}).items() if name.startswith(PREFIX)}
    for name in given:
        if name[len(PREFIX) :] not in Options._fields:
            known = ", ".join(PREFIX + field for field in Options._fields)
            raise refusal(name, f"is not an option of stopscan; those are {known}")
    protect, start, patterns = (given.get(PREFIX + field) for field in Options._fields)
    if start not in (None, 0, 1):
        raise refusal("stopscan_start_protected", f"must be 0 or 1, not {start!r}")
    try:
        pairs = None if protect is None else regions(protect, named)
    except ValueError as error:
        raise refusal("stopscan_protect", str(error).removeprefix("protect").lstrip(": ")) from None
    if start and not (default if pairs is None else pairs):
        raise refusal("stopscan_start_protected", "needs the markers of a region in stopscan_protect")
    return Options(pairs, None if start is None else bool(start), _patterns(patterns))


def without(extra_args: Mapping[str, Any] | None) -> dict[str, Any]:
    """``extra_args`` without the options of stopscan."""
    return {name: value for name, value in (extra_args or {}).items() if not name.startswith(PREFIX)}


def _patterns(patterns: object) -> tuple[str, ...]:
    if patterns is None:
        return ()
    listed = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(listed, list | tuple) or not all(isinstance(pattern, str) for pattern in listed):
        raise refusal("stopscan_patterns", f"must be a regular expression or a list of them, not {patterns!r}")
    try:
        StopSet(patterns=listed)
    except ValueError as error:
        raise refusal("stopscan_patterns", f"is malformed: {error}") from None
    return tuple(listed)


def stop_set(stop: Sequence[str], patterns: Sequence[str] = ()) -> StopSet:
    """The set that reports what vLLM would."""
    try:
        return StopSet(reportable(stop), patterns=patterns)
    except ValueError as error:
        raise refusal("stop", str(error)) from error


def reportable(stops: Sequence[str]) -> list[str]:
    """The stops that vLLM can report: of those that complete at one character it reports the first of its list.

    A stop that ends with one listed before it is never reported then; without those, the first is the longest.
    """
    backwards = [stop[::-1] for stop in stops]
    kept = set(range(len(stops)))
    # Sorted backwards, each stop comes behind those that it ends with: of them, how each reads and the first's place.
    endings: list[tuple[str, int]] = []
    for place in sorted(kept, key=backwards.__getitem__):
        while endings and not backwards[place].startswith(endings[-1][0]):
            endings.pop()
        first = min(place, endings[-1][1]) if endings else place
        if first < place:
            kept.remove(place)
        endings.append((backwards[place], first))
    return [stop for place, stop in enumerate(stops) if place in kept]


def check(params: SamplingParams, named: Mapping[str, Regions] | None, default: bool) -> None:
    """Raises what the request would raise later, when its stream has begun."""
    _, _, patterns = options(params.extra_args, named, default)
    if patterns and not params.detokenize:
        raise refusal("stopscan_patterns", "needs detokenize")
    stop_set(params.stop or (), patterns)


def refusal(parameter: str, problem: str) -> Exception:
    """vLLM's own validation error: its engine makes a 500 of a ``ValueError``, and a 400 of this."""
    from vllm.exceptions import VLLMValidationError

    error: Exception = VLLMValidationError(f"{parameter} {problem}", parameter=parameter)
    return error
