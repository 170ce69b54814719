"""The form of OpenAI's Responses API, for the staged servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

from staged.forms import Data, Form, joined, text_of
from staged.generation import Generation
from staged.request import Ask


class Responses(Form):
    path = "/v1/responses"
    named = True

    def read(self, body: Data, stops: Any) -> Ask:
        return super().read({**body, "max_tokens": body.get("max_output_tokens")}, stops)

    def prompt(self, body: Data) -> str:
        given = body["input"]
        return given if isinstance(given, str) else text_of(given[-1]["content"])

    def response(self, made: Generation, status: str, output: list[Data]) -> Data:
        cut = made.told[0] == "length" and status != "in_progress"
        return {
            "id": made.id,
            "object": "response",
            "created_at": made.created,
            "model": made.staged.told_model or made.staged.model,
            "status": "incomplete" if cut else status,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": output,
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "usage": None if status == "in_progress" else self.used(made),
        }

    def ended(self, made: Generation) -> str:
        return "incomplete" if made.told[0] == "length" else "completed"

    def used(self, made: Generation) -> Data:
        prompt, tokens = made.prompt_tokens, made.counted
        return {"input_tokens": prompt, "output_tokens": tokens, "total_tokens": prompt + tokens}

    def part(self, kind: str, text: str) -> Data:
        if kind == "answer":
            return {"type": "output_text", "text": text, "annotations": []}
        return {"type": "reasoning_text", "text": text}

    def item(self, made: Generation, index: int, kind: str, content: list[Data], status: str = "completed") -> Data:
        item = {"id": f"item_{made.id}_{index}", "status": status, "content": content}
        if kind == "answer":
            return {**item, "type": "message", "role": "assistant"}
        return {**item, "type": "reasoning", "summary": []}

    async def whole(self, made: Generation) -> Data:
        answer, reasoning = await joined(made)
        parts = [(kind, text) for kind, text in (("reasoning", reasoning), ("answer", answer)) if text]
        last = [*["completed"] * (len(parts) - 1), self.ended(made)]
        items = [self.item(made, at, kind, [self.part(kind, text)], last[at]) for at, (kind, text) in enumerate(parts)]
        return self.response(made, "completed", items)

    async def events(self, made: Generation) -> AsyncIterator[Data | str]:
        numbers = count()
        async for kind, data in self._events(made):
            yield {"type": f"response.{kind}", "sequence_number": next(numbers), **data}

    async def _events(self, made: Generation) -> AsyncIterator[tuple[str, Data]]:
        yield "created", {"response": self.response(made, "in_progress", [])}
        yield "in_progress", {"response": self.response(made, "in_progress", [])}
        items: list[Data] = []
        last, text = "", ""
        async for kind, delta in made:
            if kind != last:
                for event in self._done(made, items, last, text):
                    yield event
                for event in self._added(made, len(items), kind):
                    yield event
                last, text = kind, ""
            text += delta
            yield f"{self.part(kind, '')['type']}.delta", {**self._place(made, len(items)), "delta": delta}
        for event in self._done(made, items, last, text, self.ended(made)):
            yield event
        response = self.response(made, "completed", items)
        yield response["status"], {"response": response}

    def _place(self, made: Generation, index: int) -> Data:
        return {"item_id": f"item_{made.id}_{index}", "output_index": index, "content_index": 0}

    def _added(self, made: Generation, index: int, kind: str) -> Iterator[tuple[str, Data]]:
        item = self.item(made, index, kind, [], "in_progress")
        yield "output_item.added", {"output_index": index, "item": item}
        yield "content_part.added", {**self._place(made, index), "part": self.part(kind, "")}

    def _done(
        self, made: Generation, items: list[Data], kind: str, text: str, status: str = "completed"
    ) -> Iterator[tuple[str, Data]]:
        if not kind:
            return
        part, index = self.part(kind, text), len(items)
        items.append(self.item(made, index, kind, [part], status))
        yield f"{part['type']}.done", {**self._place(made, index), "text": text}
        yield "content_part.done", {**self._place(made, index), "part": part}
        yield "output_item.done", {"output_index": index, "item": items[-1]}
