"""A request in a form that is the same for all APIs, and the checks that refuse a wrong request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Refusal(Exception):  # noqa: N818
    """Raised for a request that is refused. `status` is the status of the answer."""

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
    apart: bool = True  # whether the reasoning is sent apart from the answer
    rows: int = 1
    prompts: list[str] = field(default_factory=list)  # all prompts, if the request has a list of them
    body: Mapping[str, Any] = field(default_factory=dict)
    client: Any = None  # the connection
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    slower: int = 1  # how many times slower than usual the answer comes


def right_limit(given: Any) -> int:
    """Returns the token limit `given` in a request, or 8192 if it is None. Raises `Refusal` if it is not a positive
    integer."""
    if given is None:
        return 8192
    if type(given) is not int or given < 1:
        raise Refusal(f"the limit must be a positive integer, not {given!r}")
    return given


def right_options(body: Mapping[str, Any]) -> None:
    """Refuses a temperature or `top_p` that is not a number."""
    for name in ("temperature", "top_p"):
        if body.get(name) is not None and type(body[name]) not in (int, float):
            raise Refusal(f"{name} must be a number, not {body[name]!r}")


def right_stops(given: Any) -> list[str]:
    """The stop strings of a request."""
    stops = [given] if isinstance(given, str) else given or []
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise Refusal(f"stop must be a string or a list of strings, not {given!r}")
    if "" in stops:
        raise Refusal(f"stop {stops.index('')} is empty")
    return stops
