"""Several answers of one request: each row has its own text and end, and usage counts all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stopscan.finish import from_openai
from stopscan_conformance._apis import Api
from stopscan_conformance._connection import Connection
from stopscan_conformance._exchange import Exchange, NotSupported
from stopscan_conformance._paths import PATHS, body_of
from stopscan_conformance._promises import Findings
from stopscan_conformance._server import Server
from stopscan_conformance._wire import Wire


@dataclass
class Row:
    text: str = ""
    end: tuple[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """One request for a row of each exchange: `n` of one prompt, or a list of prompts."""

    api: Api
    rows: Sequence[Exchange]
    prompts: bool = False

    def body(self, model: str) -> dict[str, Any]:
        """What is sent."""
        body = body_of(self.api.name, model, self.rows[0].request)
        return body | ({"prompt": [row.request.prompt for row in self.rows]} if self.prompts else {"n": len(self.rows)})

    async def __call__(self, server: Server) -> Findings:
        body = self.body(server.model)
        connection = Connection(server)
        try:
            answer = await asyncio.wait_for(connection.http.post(PATHS[self.api.name], json=body), server.timeout)
        except Exception as error:
            return {"text": f"no answer: {type(error).__name__}: {error}"}
        finally:
            await connection.close()
        if answer.status_code in (400, 404, 405, 413, 415, 422, 501):
            raise NotSupported(f"{answer.status_code}: {answer.text[:200]}")
        return self.judged(answer.status_code, answer.content, stream=self.rows[0].request.stream)

    def judged(self, status: int, content: bytes, *, stream: bool) -> Findings:
        """What is wrong with the rows."""
        if status != 200:
            return {"text": f"{status}: {content[:200].decode(errors='replace')}"}
        wire = Wire(body=bytearray(content))
        parts = [event.data for event in wire.events()] if stream else [wire.json()]
        rows, tokens = read([part for part in parts if isinstance(part, dict)])
        if sorted(rows) != [*range(len(self.rows))]:
            return {"text": f"there are the rows {sorted(rows)}, not {len(self.rows)}"}
        expected = [row.expected for row in self.rows]
        text = [
            f"row {index} has the text {rows[index].text!r}, not {one.answers[0][0]!r}"
            for index, one in enumerate(expected)
            if rows[index].text not in [answer for answer, _ in one.answers]
        ]
        finish = [
            f"row {index} ended by {rows[index].end}, not {one.ends[0]}"
            for index, one in enumerate(expected)
            if rows[index].end not in one.ends
        ]
        sums = range(sum(min(one.tokens) for one in expected), sum(max(one.tokens) for one in expected) + 1)
        cost = None if tokens in (None, *sums) else f"{tokens} tokens counted of all rows, not {sums[-1]}"
        return {"text": "; ".join(text) or None, "finish": "; ".join(finish) or None, "cost": cost}


def read(parts: Sequence[dict[str, Any]]) -> tuple[dict[int, Row], int | None]:
    """The rows by their index, and the tokens of all."""
    rows: dict[int, Row] = {}
    tokens = None
    for part in parts:
        usage = part.get("usage")
        tokens = usage.get("completion_tokens") if isinstance(usage, dict) else tokens
        for choice in _choices(part):
            row = rows.setdefault(choice.get("index", -1), Row())
            said = choice.get("delta") or choice.get("message") or {}
            row.text += said.get("content") or choice.get("text") or ""
            finish = from_openai({**part, "choices": [{**choice, "index": 0}]})
            row.end = (finish.reason, finish.matched_stop) if finish else row.end
    return rows, tokens


def _choices(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    choices = part.get("choices")
    yield from (one for one in choices if isinstance(one, dict)) if isinstance(choices, list) else ()
