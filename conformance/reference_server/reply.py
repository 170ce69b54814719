"""`Ask`, a request of any API, and `Reply`, the answer to it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from engine import Engine, Row, Scanner
from fields import Stopping
from mlx_lm.sample_utils import make_sampler
from parts import Part, Parts
from prompts import Prompts
from starlette.exceptions import HTTPException

from stopscan.engines import CHAT, Checkpoint, Defaults
from stopscan.finish import Finish
from stopscan.mlx_lm import RowScanner, RowSegmenter
from stopscan.regions import PROTECTED, known, segments_of

MAX_TOKENS = 4096
Step = Literal["start", "delta", "stop", "end"]


class Model(NamedTuple):
    """The engine, the model's markers and prompts, and the server's defaults for options that a request leaves out."""

    engine: Engine
    checkpoint: Checkpoint
    prompts: Prompts
    defaults: Defaults


@dataclass(frozen=True)
class Ask:
    """A request. `prompt` is text, token ids or messages. With `apart`, reasoning, answer and tool calls are separate,
    and stops fire only in the answer. Without `apart`, stops fire everywhere. The request's option `protect`, or else
    the server's, replaces this choice of where stops fire.
    """

    prompt: str | list[int] | list[dict[str, Any]]
    max_tokens: int | None
    options: Stopping
    stream: bool = False
    apart: bool = True
    tools: Sequence[dict[str, Any]] = ()
    think: bool | None = None
    usage: bool = False  # whether a stream must report its token counts, in APIs that do so only on request

    def start(self, model: Model) -> Reply:
        """Returns the reply, which begins when it is iterated over. Compiles the stops and encodes the prompt, which
        takes time. Raises `HTTPException` for a request that cannot be answered.
        """
        engine = model.engine
        ids, tail = self._encoded(model.prompts)
        left = engine.context - len(ids)
        if not ids:
            raise HTTPException(400, "the prompt is empty: it has no tokens")
        if left < 1:
            raise HTTPException(400, f"{len(ids)} tokens do not fit into the context of {engine.context}")
        max_tokens = min(self.max_tokens or MAX_TOKENS, left)  # Continue, for one, asks for 32,000 of any model
        try:
            scanner = self._scanner(model, max_tokens, tail)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        row = Row(engine, ids, max_tokens, scanner, make_sampler(**self.options.sampling()))
        return Reply(self, engine.name, row, Parts(model.checkpoint.graph))

    def _encoded(self, prompts: Prompts) -> tuple[list[int], str]:
        """Returns the prompt's ids, and the text at its end in which a marker may open a region."""
        if isinstance(self.prompt, str):
            return prompts.of_text(self.prompt)
        if not self.prompt or isinstance(self.prompt[0], int):
            return prompts.of_ids(self.prompt)  # type: ignore[arg-type] # pydantic refuses a list of ids and others
        think = {} if self.think is None else {"enable_thinking": self.think}
        return prompts.of_messages(self.prompt, tools=self.tools or None, **think)  # type: ignore[arg-type]

    def _scanner(self, model: Model, max_tokens: int, prompt: str) -> Scanner:
        asked, own = self.options.options(model.defaults), model.defaults.protect
        default = own if own is not None else CHAT if self.apart else ()
        common = {"max_tokens": max_tokens, "prompt": prompt, **asked.row}
        protect, start = common.pop("protect"), common.pop("start_protected")
        if not self.apart:
            stops = model.checkpoint.stops(asked.stops, protect, default)
            return RowScanner(model.engine.tokenizer, stops, start_protected=start, **common)
        graph = model.checkpoint.graph
        segments = segments_of(asked.stops, graph, known(graph, default) if protect is None else protect)
        region = None if start is None else "reasoning" if start else segments.regions[0]
        return RowSegmenter(model.engine.tokenizer, segments, region=region, **common)


@dataclass
class Reply:
    """An answer as it comes: iterate over its parts, then read `finish` and the counts of tokens."""

    ask: Ask
    model: str
    row: Row
    _parts: Parts
    id: str = field(default_factory=lambda: uuid4().hex)
    created: float = field(default_factory=time.time)
    events: count[int] = field(default_factory=count)  # the numbers of the events, for an API that has them
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

    async def blocks(self) -> AsyncIterator[tuple[Step, int, Part]]:
        """Yields for each block a "start", a "delta" for each part, and a "stop" ("end" for the last block)."""
        index, block = -1, Part("answer", "")
        async for part in self:
            if index < 0 or part.call is not None or part.kind != block.kind:
                if index >= 0:
                    yield "stop", index, block
                index, block = index + 1, part._replace(text="")
                yield "start", index, block
            block = block._replace(text=block.text + part.text)
            yield "delta", index, part
        if index >= 0:
            yield "end", index, block

    async def whole(self) -> list[Part]:
        """Returns all blocks. If a loop ended the answer, keeps only one copy of the repeated text, but all copies with
        `include_stop`."""
        parts = [part async for step, _, part in self.blocks() if step in ("stop", "end")]
        match = self.row.scanner.match
        if match is not None and match.period is not None and parts and not self.ask.options.include_stop:
            last, copies = parts[-1], len(match.sequence) - match.period
            parts[-1] = last._replace(text=last.text[: len(last.text) - copies])
        return parts

    @property
    def finish(self) -> Finish:
        """Why the answer ended. Only for an answer that has ended."""
        finish = self.row.scanner.finish
        assert finish is not None
        return replace(finish, reason="tool_calls") if self._called and finish.reason == "eos" else finish

    @property
    def prompt_tokens(self) -> int:
        return len(self.row.prompt)

    @property
    def reasoning_tokens(self) -> int:
        scanner = self.row.scanner
        counts = scanner.tokens_in if isinstance(scanner, RowSegmenter) else {}
        return counts.get("reasoning", 0) + counts.get(f"reasoning{PROTECTED}", 0)

    @property
    def tokens(self) -> int:
        """The number of generated tokens, including the one that ended the answer."""
        return self.row.scanner.tokens_seen
