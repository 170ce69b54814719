"""Sets of stops by what they are made of, shared by a check, its request, the children and retries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from stopscan import Repeat, StopSet
from stopscan._engine.graphs import Frozen, thawed
from stopscan.regions import protected

shared = lru_cache(maxsize=128)


@shared
def stop_set(
    stop: tuple[str, ...],
    patterns: tuple[str, ...],
    protect: tuple[Any, ...],
    max_held: int | None,
    repeat: Repeat | None = None,
    graph: Frozen = (),
) -> StopSet:
    """The set of these, made once as long as it is in use; ``protect`` has pairs of markers and names in ``graph``.

    Raises ``ValueError`` that begins with what is wrong.
    """
    culprit = "stop"
    try:
        StopSet(stop)
        culprit = "stopscan_patterns"
        made = StopSet(stop, patterns=patterns, max_held=max_held, repeat=repeat)
        culprit = "stopscan_protect"
        return protected(made, thawed(graph), protect) if protect else made
    except ValueError as error:
        if str(error).startswith("protect: "):
            raise ValueError(f"stopscan_protect {str(error).removeprefix('protect: ')}") from error
        raise ValueError(f"{culprit} is malformed: {error}") from error


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
