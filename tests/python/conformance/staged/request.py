"""What is asked, the same for all APIs, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Refusal(Exception):  # noqa: N818
    """An error that says why; by default a 400."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class Ask:
    prompt: str
    stream: bool
    max_tokens: int
    stops: list[str]
    stop_token_ids: list[int]
    usage: bool = True
    apart: bool = True  # reasoning and answer


def right_stops(given: Any) -> list[str]:
    """The stop strings of a request."""
    stops = [given] if isinstance(given, str) else given or []
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise Refusal(f"stop must be a string or a list of strings, not {given!r}")
    if "" in stops:
        raise Refusal(f"stop {stops.index('')} is empty")
    return stops
