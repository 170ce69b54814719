"""Stops that a request names, and a server reads wrongly."""

from __future__ import annotations

from typing import Any

from staged.defects.defect import wrong
from staged.request import Refusal, right_stops


def letters(given: Any) -> list[str]:
    return list(given) if isinstance(given, str) else right_stops(given)


def commas(given: Any) -> list[str]:
    return [part for stop in right_stops(given) for part in stop.split(",")]


def only_lists(given: Any) -> list[str]:
    return right_stops([] if isinstance(given, str) else given)


def crashes_on_null(given: Any) -> list[str]:
    assert given is not None
    return right_stops(given)


def crashes_without_stops(given: Any) -> list[str]:
    assert given
    return right_stops(given)


def unique(given: Any) -> list[str]:
    stops = right_stops(given)
    assert len({*stops}) == len(stops)
    return stops


def at_most_four(given: Any) -> list[str]:
    stops = right_stops(given)
    if len(stops) > 4:
        raise Refusal("invalid value")
    return stops


DEFECTS = [
    wrong("a string taken for its letters", "a-string", "finish cost", stops=letters),
    wrong("a string ignored", "a-string", "text finish cost", whole=True, stops=only_lists),
    wrong("stops split at commas", "stops-with-commas", "text finish cost", stops=commas),
    wrong(
        "a stop of its own where none is given",
        "an-empty-list",
        "text finish cost",
        stops=lambda given: [*right_stops(given), "the"],
    ),
    wrong("null crashes", "null", "text", stops=crashes_on_null),
    wrong("a missing stop crashes", "no-stop", "text", stops=crashes_without_stops, whole=True),
    wrong("a stop given twice crashes", "twice", "text", stops=unique),
    wrong("too many stops are refused without a word", "five", "form", stops=at_most_four),
]
