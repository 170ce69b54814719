"""What is asked of a server: the stagings, and the scanner's vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stopscan_conformance.scripts import plain_vectors, stagings

# More than the longest script has that ends by itself, but for those that are asked for a part of.
MAX_TOKENS = 200


class _Missing:
    def __repr__(self) -> str:
        return "no stop"


MISSING = _Missing()


@dataclass(frozen=True, eq=False)
class Scenario:
    """A script and what is asked of it. `stop` is the value as the request has it, and `stop_pieces` are the indexes of
    the pieces whose tokens stop."""

    topic: str
    name: str
    why: str
    script: str
    pieces: tuple[bytes, ...]
    stop: Any = MISSING
    stop_pieces: tuple[int, ...] = ()
    max_tokens: int | None = MAX_TOKENS

    @property
    def stops(self) -> list[str]:
        """The stop strings that the request names."""
        if self.stop is MISSING or self.stop is None:
            return []
        return [self.stop] if isinstance(self.stop, str) else list(dict.fromkeys(self.stop))


def scenarios(*, vectors: bool = False) -> list[Scenario]:
    """The scenarios of all topics, and those of the vectors that a request can state."""
    return [
        *(_asked(staging, ask) for staging in stagings() for ask in staging["asks"]),
        *(map(_of_vector, plain_vectors()) if vectors else ()),
    ]


def _asked(staging: dict[str, Any], ask: dict[str, Any]) -> Scenario:
    options = {**ask, "stop_pieces": tuple(ask.get("stop_pieces", ()))}
    return Scenario(**{key: staging[key] for key in ("topic", "why", "script", "pieces")}, **options)


def _of_vector(vector: dict[str, Any]) -> Scenario:
    stop = list(dict.fromkeys(vector["stop"])) or MISSING
    return Scenario("vectors", vector["name"], vector["why"], vector["name"], vector["pieces"], stop)
