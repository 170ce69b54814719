"""What the APIs have in common: a request in, an answer out."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

from body import Stopping
from engine import Engine, Row
from jinja2 import TemplateError
from mlx_lm.sample_utils import make_sampler
from parts import Call, Form, Part, Parts
from starlette.exceptions import HTTPException

from stopscan import StopSet
from stopscan._protect import PROMPT_TOKENS
from stopscan.finish import Finish
from stopscan.mlx_lm import RowScanner, RowSegmenter

MAX_TOKENS = 4096


@dataclass(frozen=True)
class Ask:
    """A request. `prompt` is text, token ids or messages; `apart` asks for reasoning, answer and calls apart."""

    prompt: str | list[int] | list[dict[str, Any]]
    max_tokens: int | None
    stopping: Stopping
    stream: bool = False
    apart: bool = True
    tools: list[dict[str, Any]] | None = None
    temperature: float = 0.0
    top_p: float = 0.0
    usage: bool = False  # of a stream, where the API wants to be asked

    def start(self, engine: Engine, form: Form) -> Reply:
        """The reply, about to begin. Raises `HTTPException` for what cannot be answered. Takes time: compiling and
        encoding.
        """
        ids, tail = self._encoded(engine.tokenizer)
        left = engine.context - len(ids)
        if not ids:
            raise HTTPException(400, "the prompt is empty: it has no tokens")
        if left < 1 or left < (self.max_tokens or 1):
            wanted = f" and {self.max_tokens} more" if self.max_tokens else ""
            raise HTTPException(400, f"{len(ids)} tokens{wanted} do not fit into the context of {engine.context}")
        max_tokens = self.max_tokens or min(MAX_TOKENS, left)
        try:
            scanner = self._scanner(engine.tokenizer, form, max_tokens, tail)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        row = Row(engine, ids, max_tokens, scanner, make_sampler(self.temperature, self.top_p))
        return Reply(self, engine.name, row, Parts(form))

    def _scanner(self, tokenizer: Any, form: Form, max_tokens: int, prompt: str) -> RowScanner | RowSegmenter:
        asked = self.stopping
        if not self.apart:
            return RowScanner(
                tokenizer,
                StopSet(asked.stop, patterns=asked.patterns),
                stop_token_ids=asked.stop_token_ids,
                max_tokens=max_tokens,
                protect=form.around(asked.protect),
                start_protected=asked.start_protected,
                prompt=prompt,
            )
        segments = form.apart(asked.stop, asked.patterns, asked.protect)
        start = asked.start_protected
        return RowSegmenter(
            tokenizer,
            segments,
            region=None if start is None else "reasoning" if start else segments.regions[0],
            stop_token_ids=asked.stop_token_ids,
            max_tokens=max_tokens,
            prompt=prompt,
        )

    def _encoded(self, tokenizer: Any) -> tuple[list[int], str]:
        """The prompt's ids, and what of its end is not the user's."""
        if isinstance(self.prompt, str):
            ids = list(tokenizer.encode(self.prompt))
            return ids, tokenizer.decode(ids[-PROMPT_TOKENS:])
        if not self.prompt or isinstance(self.prompt[0], int):
            ids = [token for token in self.prompt if isinstance(token, int)]
            unknown = [token for token in ids if not 0 <= token < tokenizer.vocab_size]
            if unknown:
                raise HTTPException(400, f"prompt: the model has no token {unknown[0]}")
            return ids, tokenizer.decode(ids[-PROMPT_TOKENS:])
        try:
            texts = [
                tokenizer.apply_chat_template(self.prompt, tools=self.tools, add_generation_prompt=add, tokenize=False)
                for add in (False, True)
            ]
        except TemplateError as error:  # templates refuse what they are not made for
            raise HTTPException(400, f"messages: {error}") from error
        ids = tokenizer.apply_chat_template(self.prompt, tools=self.tools, add_generation_prompt=True)
        return list(ids), texts[1][len(texts[0]) :] if texts[1].startswith(texts[0]) else ""


@dataclass
class Reply:
    """An answer as it comes: iterate over its parts, then read `finish` and the counts of tokens."""

    ask: Ask
    model: str
    row: Row
    _parts: Parts
    id: str = field(default_factory=lambda: uuid4().hex)
    created: float = field(default_factory=time.time)
    events: count[int] = field(default_factory=count)  # their numbers, where an API has them
    _called: bool = False

    async def __aiter__(self) -> AsyncIterator[Part]:
        async for segments in self.row:
            for part in self._parts.feed(segments):
                yield self._seen(part)
        for part in self._parts.end():
            yield self._seen(part)

    def _seen(self, part: Part) -> Part:
        self._called |= part.kind == "tool_call"
        return part

    async def whole(self) -> Whole:
        """All of it."""
        parts = [part async for part in self]
        texts = {kind: "".join(part.text for part in parts if part.kind == kind) for kind in ("answer", "reasoning")}
        return Whole(**texts, calls=[part.call for part in parts if part.call is not None])

    @property
    def finish(self) -> Finish:
        """Why it ended, once it has."""
        finish = self.row.scanner.finish
        assert finish is not None
        return replace(finish, reason="tool_calls") if self._called and finish.reason == "eos" else finish

    @property
    def prompt_tokens(self) -> int:
        return len(self.row.prompt)

    @property
    def reasoning_tokens(self) -> int:
        scanner = self.row.scanner
        return scanner.tokens_in.get("reasoning", 0) if isinstance(scanner, RowSegmenter) else 0

    @property
    def tokens(self) -> int:
        """How many were generated, the one that ended it included."""
        return self.row.scanner.tokens_seen


class Whole(NamedTuple):
    answer: str
    reasoning: str
    calls: list[Call]
