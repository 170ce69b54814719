"""What the APIs have in common: a request, and the parts of an answer as a client reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from stopscan.finish import Finish
from stopscan_conformance._connection import Connection
from stopscan_conformance._says import Said
from stopscan_conformance._wire import Wire

End = tuple[str, str | int | None]


@dataclass(frozen=True, eq=False)
class Request:
    """`stops` are the options about stops, by the names of OpenAI's APIs; what is not asked for is not there. `usage`
    asks a stream for its usage, where an API wants to be asked; None says that it is not wanted. `max_tokens` is None
    where the request has no limit. `said` is what else it says."""

    prompt: str
    stream: bool = False
    stops: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = 64
    usage: bool | None = True
    said: Said = field(default_factory=Said)

    @property
    def messages(self) -> list[dict[str, Any]]:
        content: Any = [{"type": "text", "text": self.prompt}] if self.said.parts else self.prompt
        before = [{"role": role, "content": text} for role, text in self.said.before]
        return [*before, {"role": "user", "content": content}]

    @property
    def text(self) -> str:
        """The prompt of an API that has no turns."""
        return "\n".join([*(text for _, text in self.said.before), self.prompt])

    def named(self, stop: str) -> dict[str, Any]:
        """The options, with the API's own name for the stop strings."""
        named = {stop if name == "stop" else name: value for name, value in self.stops.items()}
        return {**self.said.options, **named}

    def limit(self, name: str) -> dict[str, int]:
        """The limit by the API's own name, if there is one."""
        return {} if self.max_tokens is None else {name: self.max_tokens}


class Part(NamedTuple):
    """What one event, or a whole answer, tells a client. `head` has its "id" and "model", and of its usage "prompt" and
    "tokens", which are those of the answer; what an event does not tell is not there, or None."""

    text: str = ""
    reasoning: str = ""
    finish: Finish | None = None
    head: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Api:
    """`read` sends a request through the official client and gives what that reads. `form` finds what is wrong with an
    answer as it came. `told` is what an answer can tell of an end, and `unnamed` says what it lacks if it names no
    stop."""

    name: str
    read: Callable[[Connection, Request], AsyncIterator[Part]]
    form: Callable[[Wire, Request], Iterator[str]]
    told: Callable[[End], End]
    unnamed: str = ""
    lists_only: bool = False  # it takes no bare string and no null
    asks_for_usage: bool = False  # a stream tells its usage only if it is asked to
    harmony: bool = False
    raw: bool = False  # the prompt is the model's, without a chat template: a stop may fire in the reasoning
