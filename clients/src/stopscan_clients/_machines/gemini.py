from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from stopscan_clients._json import get, items, number, only, put
from stopscan_clients._machines.choices import ChoiceMachine, refilled
from stopscan_clients._machines.logprobs import spelled
from stopscan_clients._machines.machine import Fields, Sole, Token
from stopscan.finish import Finish, from_gemini, to_gemini

# What is said of a part's text, or of a thought. Anything else in a part is content, and ends the text before it.
REMARKS = frozenset({"text", "thought", "thought_signature", "thoughtSignature", "part_metadata", "partMetadata"})


class Gemini(ChoiceMachine):
    """Gemini: candidates with parts. Neighbouring parts of text are one text, in one event or in several."""

    API = "gemini"
    CHOICES = "candidates"
    TEXT = MESSAGE = ("content", "parts")
    USAGE = ("usageMetadata", "usage_metadata")
    KEPT = ("index", "logprobsResult", "logprobs_result")
    read_finish, write_finish = from_gemini, to_gemini

    def choices(self, event: Any) -> list[Any]:
        self.python_names = self.python_names or (isinstance(event, dict) and any("_" in name for name in event))
        return super().choices(event)

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            (choice,) = top(event)["candidates"]
            choice = below(choice)
            (part,) = below(choice["content"])["parts"]
            part = below(part)
            text = part["text"]
            more = part.get("thought") or choice.get("finishReason") or choice.get("finish_reason")
            return (choice.get("index") or 0, text) if text and not more else None

        return sole

    def scan(self, event: Any, choice: Any) -> Any:
        parts = self._parts(choice)
        runs = _runs(parts) if len(parts) > 1 and number(choice.get("index")) not in self.matches else []
        if len(runs) < 2:
            return super().scan(event, choice)
        return self._run_by_run(choice, runs, partial(super().scan, event))

    def _run_by_run(self, choice: Any, runs: list[list[Any]], scan: Callable[[Any], Any]) -> Any:
        """Text, a call, text again, all in one event: each run is scanned as a candidate of its own."""
        tokens = self.tokens(choice, _text(self._parts(choice)))
        parts: list[Any] = []
        rows: list[Any] = []
        new, changed, end = choice, False, 0
        for run in runs:
            begin, end = end, end + len(_text(run))
            own = self._with(choice, run, [row for place, row in tokens if begin <= place < end])
            new = scan(own)
            changed = changed or new is not own
            parts += self._parts(new)
            rows += [row for _, row in self.tokens(new, "")]
            if number(choice.get("index")) in self.matches:
                break
        return self._with(new, parts, rows) if changed else choice

    def look(self, choice: Any) -> tuple[str, Any]:
        parts = self._parts(choice)
        return _text(parts), self.finished(choice) or any(map(_is_content, parts))

    def tokens(self, choice: Any, text: str) -> list[Token]:
        _, result, (chosen, top) = _logprobs(choice)
        entries, tops = items(get(result, chosen)), items(get(result, top))
        tops = tops if len(tops) == len(entries) else [None] * len(entries)
        return [(begin, (entry, top)) for (begin, entry), top in zip(spelled(entries, text), tops, strict=True)]

    def with_rows(self, choice: Any, rows: list[Any]) -> Any:
        name, result, columns = _logprobs(choice)
        if not isinstance(result, dict):
            return choice
        lists = zip(columns, ([chosen for chosen, _ in rows], [top for _, top in rows]), strict=True)
        return {**choice, name: {**result, **{key: row for key, row in lists if result.get(key) is not None}}}

    def with_text(self, choice: Any, text: str, rows: list[Any]) -> Any:
        return self._with(choice, refilled(self._parts(choice), _is_text, text), rows)

    def cut(self, choice: Any, text: str, rows: list[Any]) -> Any:
        cut = self.with_text(choice, text, rows)
        parts = self._parts(cut)
        kept = [part for part in parts if not _is_content(part)]
        return cut if len(kept) == len(parts) else put(cut, kept, *self.TEXT)

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        content = {"role": get(choice, "content", "role") or "model", "parts": [{"text": text}]}
        return self.with_rows({"content": content, **only(choice, *(self.KEPT if rows else ("index",)))}, rows)

    def with_finish(self, choice: Any, finish: Finish) -> Any:
        name = "finish_reason" if self.python_names else "finishReason"
        return {**choice, name: to_gemini(finish)["finishReason"]}

    def _whole(self, choice: Any) -> Any:
        return self._run_by_run(choice, _runs(self._parts(choice)), super()._whole)

    def _parts(self, choice: Any) -> list[Any]:
        return items(get(choice, "content", "parts"))

    def _with(self, choice: Any, parts: list[Any], rows: list[Any]) -> Any:
        return self.with_rows(put(choice, parts, *self.TEXT) if self._parts(choice) else choice, rows)


def _logprobs(choice: Any) -> tuple[str, Any, tuple[str, str]]:
    """How the result of the logprobs is called, itself, and its columns: on the wire, or as ``model_dump`` has them."""
    if get(choice, "logprobs_result") is not None:
        return "logprobs_result", get(choice, "logprobs_result"), ("chosen_candidates", "top_candidates")
    return "logprobsResult", get(choice, "logprobsResult"), ("chosenCandidates", "topCandidates")


def _runs(parts: list[Any]) -> list[list[Any]]:
    """The parts, cut before each text that does not go on with the one before."""
    runs: list[list[Any]] = [[]]
    ended = False
    for part in parts:
        if ended and _is_text(part):
            runs.append([])
            ended = False
        runs[-1].append(part)
        ended = ended or _is_content(part)
    return runs


def _text(parts: list[Any]) -> str:
    return "".join([part["text"] for part in parts if _is_text(part)])


def _is_text(part: Any) -> bool:
    return isinstance(get(part, "text"), str) and not get(part, "thought")


def _is_content(part: Any) -> bool:
    return isinstance(part, dict) and any(value is not None and name not in REMARKS for name, value in part.items())
