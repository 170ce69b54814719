"""What the APIs have in common: a request in, an answer out."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from channels import HEADERS, UNTIL_ANSWER, Channels, Kind
from engine import Engine, Row

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm import RowScanner

MAX_STOPS = 64
MAX_TOKENS = 4096


@dataclass(frozen=True)
class Ask:
    """A request. `apart` asks for the reasoning and the answer apart from each other."""

    prompt: str | list[dict[str, str]]
    max_tokens: int
    stop: Any = None
    stop_token_ids: Any = None
    stream: bool = False
    stop_in_reasoning: bool = False
    apart: bool = True

    def start(self, engine: Engine) -> Reply:
        """The reply, about to begin. Raises `ValueError` or `TypeError` for a bad request."""
        stops = StopSet(self.stop, protect=HEADERS if self.stop_in_reasoning else UNTIL_ANSWER)
        if len(stops) > MAX_STOPS:
            raise ValueError(f"{len(stops)} stops are more than {MAX_STOPS}")
        if self.max_tokens < 1:
            raise ValueError(f"at least one token must be allowed, not {self.max_tokens}")
        prompt = _encode(engine.tokenizer, self.prompt)
        scanner = RowScanner(
            engine.tokenizer,
            stops,
            stop_token_ids=self.stop_token_ids or (),
            max_tokens=self.max_tokens,
            protect="reasoning" if engine.tokenizer.has_thinking and not self.stop_in_reasoning else (),
            prompt=prompt,
        )
        return Reply(self, engine.name, Row(engine, prompt, self.max_tokens, scanner))


class Reply:
    """An answer as it comes: iterate over its parts, then read `finish` and `tokens`."""

    def __init__(self, ask: Ask, model: str, row: Row) -> None:
        self.ask = ask
        self.model = model
        self.id = uuid.uuid4().hex
        self.created = time.time()
        self.prompt_tokens = len(row.prompt)
        self._row = row

    async def __aiter__(self) -> AsyncIterator[tuple[Kind, str]]:
        channels = Channels()
        async for text in self._row:
            if not self.ask.apart:
                yield "answer", text
                continue
            for part in channels.feed(text):
                yield part
        for part in channels.flush():
            yield part

    async def whole(self) -> tuple[str, str]:
        """The answer and the reasoning."""
        parts = [part async for part in self]
        return _joined(parts, "answer"), _joined(parts, "reasoning")

    @property
    def finish(self) -> Finish:
        """Why it ended, once it has."""
        assert self._row.scanner.finish is not None
        return self._row.scanner.finish

    @property
    def tokens(self) -> int:
        """How many were generated, the one that ended it included."""
        return self._row.scanner.tokens_seen


def event(data: dict[str, Any], *, named: bool = False) -> str:
    """A server-sent event, with its type as its name where the API wants that."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def chat(messages: Any, system: Any = None) -> list[dict[str, str]]:
    """The messages of any API, their contents as text."""
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise ValueError("there are no messages")
    given = [{"role": "system", "content": system}] if system else []
    return [{"role": _text(m.get("role")), "content": _text(m.get("content"))} for m in [*given, *messages]]


def _text(content: Any) -> str:
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    if not isinstance(content, str):
        raise ValueError(f"text is missing: {content!r}")
    return content


def _encode(tokenizer: Any, prompt: Any) -> list[int]:
    if isinstance(prompt, list):
        return list(tokenizer.apply_chat_template(prompt, add_generation_prompt=True))
    ids = tokenizer.encode(_text(prompt))
    if not ids:
        raise ValueError("the prompt is empty")
    return list(ids)


def _joined(parts: list[tuple[Kind, str]], kind: Kind) -> str:
    return "".join(text for each, text in parts if each == kind)
