"""Makes sequences of token ids, with which two ways of decoding are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

SEQUENCES = 48
LENGTH = 12


def sequences(ids: Sequence[int], special: Sequence[int], count: int = SEQUENCES) -> Iterator[list[int]]:
    """Yields single ids and random sequences, some with special tokens. Equal arguments give equal samples."""
    draw = Random(len(ids))
    if not ids:
        return
    for _ in range(count):
        yield [draw.choice(ids)]
        yield draw.choices(ids, k=LENGTH)
        if special:
            yield [draw.choice(special), *draw.choices(ids, k=3), draw.choice(special), draw.choice(ids)]
