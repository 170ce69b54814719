"""What the slowest sets of patterns cost that a server's user could send: `python benches/pattern_costs.py` (a minute).

A set is taken within 5 ms or refused within 3 ms of this thread's processor time. The sets are of the shapes that were
slowest so far, in many sizes, and random ones.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from stopscan import StopSet

ROLES = r"\n(User{0}|Human) ?\d*:"
SHAPES = [ROLES, r"(?i)\n(User{0}|Human) ?\d*:", r"\n?{0}\d+\.\d+:", r"\n?7{0}\d+\.\d+:"]
SIZES = [100, 150, 200, 240, 280, 320, 340, 500, 1000]
LARGE = [
    r"[ab]*a[ab]{9}c", r"(foo|fob|bar){200}x", r"([a-z]{1,9} ){1,60}q", "(?i)" + "word " * 200,
    "|".join(f"w{i}x" for i in range(300)), r"[^>]{1,900}<", r"\d{1,400}\w{1,400}!", r"(a|bc)*" * 60 + "d",
]  # fmt: skip
ATOMS = [
    r"\d+", r"\s*", r"\w{1,5}", "ab", "x?", "[a-z]+", "[^>]{1,9}", r"\b", "(a|bc)*", "Z", ":", "(?i)end", r"\.",
    "(foo|fob|bar)+",
]  # fmt: skip


def sets(rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Patterns, with a name for their set."""
    for shape in SHAPES:
        for size in SIZES:
            yield f"{size} of `{shape.format(1)}`", [shape.format(i) for i in range(size)]
    for large in LARGE:
        for size in (0, 1, 10, 50, 100, 150):
            yield f"{size} roles beside `{large[:30]}`", [large, *(ROLES.format(i) for i in range(size))]
    for _ in range(2_500):
        size = rng.choice([1, 3, 10, 40, 100, 300, 600])
        yield (
            f"{size} random ones",
            ["".join(rng.choices(ATOMS, k=rng.randint(1, 6))) + rng.choice(":!;Q") + str(i) for i in range(size)],
        )


def cost(patterns: list[str], passes: int) -> tuple[float, bool]:
    """The ms of the fastest pass, and whether the patterns are taken."""
    best, taken = float("inf"), False
    for _ in range(passes):
        begun = time.thread_time_ns()
        try:
            StopSet(patterns=patterns)
            taken = True
        except ValueError:
            taken = False
        best = min(best, (time.thread_time_ns() - begun) / 1e6)
    return best, taken


def main() -> None:
    """Prints the ten slowest sets that are taken, and the ten slowest that are refused."""
    rows = []
    for name, patterns in sets(random.Random(3)):
        ms, taken = cost(patterns, 2)
        rows.append((*(cost(patterns, 7) if ms > 1.5 else (ms, taken)), name))
    for wanted, word in ((True, "taken"), (False, "refused")):
        slowest = sorted((row for row in rows if row[1] is wanted), reverse=True)[:10]
        print(*(f"{word}: {ms:.2f} ms, {name}" for ms, _, name in slowest), sep="\n")


if __name__ == "__main__":
    main()
