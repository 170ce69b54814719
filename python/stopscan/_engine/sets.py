"""Sets of stops by what they are made of, shared by a check, its request, the children and retries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from stopscan import Repeat, StopSet

Pair = tuple[str, str]
Pairs = tuple[Pair, ...]

shared = lru_cache(maxsize=128)


@shared
def stop_set(
    stop: tuple[str, ...],
    patterns: tuple[str, ...],
    protect: Pairs,
    max_held: int | None,
    repeat: Repeat | None = None,
) -> StopSet:
    """The set of these, made once as long as it is in use. Raises ``ValueError`` that begins with what is wrong."""
    try:
        return StopSet(stop, patterns=patterns, protect=protect, max_held=max_held, repeat=repeat)
    except ValueError as error:
        raise ValueError(f"{_culprit(stop, patterns, max_held)} is malformed: {error}") from error


def _culprit(stop: tuple[str, ...], patterns: tuple[str, ...], max_held: int | None) -> str:
    """The first part that is wrong without those behind it."""
    for name, parts in (("stop", {}), ("stopscan_patterns", {"patterns": patterns, "max_held": max_held})):
        try:
            StopSet(stop, **parts)  # type: ignore[arg-type]
        except ValueError:
            return name
    return "stopscan_protect"


@shared
def reportable(stops: Sequence[str]) -> tuple[str, ...]:
    """The stops that an engine can report that takes the first of its list where several complete at one character.

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
    return tuple(stop for place, stop in enumerate(stops) if place in kept)
