"""Wrong values of the fields of a request, alone and in pairs. The tests of each adapter send them in requests."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Any

NESTED: Any = "END"
for _ in range(200):
    NESTED = [NESTED]
WRONG: list[Any] = [
    None, True, False, 0, 1, -1, 5, 2**31, 2**32, 2**63, 10**12, 10**30, 1.5, -0.0, float("inf"), float("nan"), "", "x",
    "reasoning", "\ud800", "x" * 9000, [], [[]], [None], [5], [-1], [2**40], [True], [""], ["x"], [["a"]], [["<", ">"]],
    ["<", ">"], ["\ud800"], ["x"] * 2000, {}, {"a": 1}, {"": None}, [{}], NESTED,
]  # fmt: skip
# The options of stopscan, and two names that are no option.
OPTIONS = (
    "patterns",
    "visible_patterns",
    "max_held",
    "protect",
    "start_protected",
    "repeat",
    "default",
    "nonsense",
    "",
)


def singles(names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yields each of the fields with each wrong value."""
    for name in dict.fromkeys(names):
        for value in WRONG:
            yield {name: value}


def pairs(names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yields each pair of fields, with each wrong value in the first field and another wrong value in the second."""
    for first, second in combinations(names, 2):
        for number, value in enumerate(WRONG):
            yield {first: value, second: WRONG[(7 * number + len(first)) % len(WRONG)]}
