from __future__ import annotations

from typing import Any

from stopscan.clients._choices import ChoiceMachine
from stopscan.clients._logprobs import spelled
from stopscan.clients._machine import Options
from stopscan.clients._objects import get, only, replace, sibling, without
from stopscan.clients._part import Token
from stopscan.finish import Finish, to_gemini

# What is said of a part's text, or of a thought. Anything else in a part is content, and ends the text before it.
REMARKS = frozenset({"text", "thought", "thought_signature", "thoughtSignature", "part_metadata", "partMetadata"})


class Gemini(ChoiceMachine):
    """Gemini: candidates with parts. Neighbouring parts of text are one text, in one event or in several."""

    def __init__(self, event: Any, options: Options) -> None:
        super().__init__(event, options)
        wire = isinstance(event, dict) and not any("_" in name for name in event)  # REST, and no model_dump
        self.reason = "finishReason" if wire else "finish_reason"
        self.usage = "usageMetadata" if wire else "usage_metadata"
        self.logprobs = "logprobsResult" if wire else "logprobs_result"
        self.columns = ("chosenCandidates", "topCandidates") if wire else ("chosen_candidates", "top_candidates")

    def choices(self, event: Any) -> Any:
        return get(event, "candidates") or ()

    def with_choices(self, event: Any, choices: list[Any]) -> Any:
        return replace(event, candidates=choices)

    def bare(self, event: Any) -> Any:
        return without(event, self.usage)

    def sole(self, event: Any) -> tuple[int, str] | None:
        fields = self.fields
        choices = fields(event).get("candidates")
        if not choices or len(choices) > 1:
            return None
        choice = fields(choices[0])
        parts = fields(choice.get("content")).get("parts")
        if not parts or len(parts) > 1 or choice.get(self.reason):
            return None
        part = fields(parts[0])
        text = part.get("text")
        return (choice.get("index") or 0, text) if text and not part.get("thought") else None

    def scan(self, event: Any, choice: Any) -> Any:
        parts = self._parts(choice)
        runs = _runs(parts) if len(parts) > 1 and self.index(choice) not in self.matches else ()
        return self._scan_runs(event, choice, runs) if len(runs) > 1 else super().scan(event, choice)

    def _scan_runs(self, event: Any, choice: Any, runs: list[list[Any]]) -> Any:
        """Text, a call, text again, all in one event: each run is scanned as a candidate of its own."""
        tokens = self.tokens(choice, _text(self._parts(choice)))
        parts: list[Any] = []
        rows: list[Any] = []
        new, changed, end = choice, False, 0
        for run in runs:
            begin, end = end, end + len(_text(run))
            own = self._with(choice, run, [row for place, row in tokens if begin <= place < end])
            new = super().scan(event, own)
            changed = changed or new is not own
            parts += self._parts(new)
            rows += [row for _, row in self.tokens(new, "")]
            if self.index(choice) in self.matches:
                break
        return self._with(new, parts, rows) if changed else choice

    def look(self, choice: Any) -> tuple[Any, Any]:
        parts = self._parts(choice)
        if len(parts) == 1 and _is_text(parts[0]):
            return get(parts[0], "text"), self.finished(choice)
        return _text(parts), self.finished(choice) or any(map(_is_content, parts))

    def finished(self, choice: Any) -> bool:
        return self.options.whole or bool(get(choice, self.reason))

    def tokens(self, choice: Any, text: str) -> list[Token]:
        result = get(choice, self.logprobs)
        chosen, top = (get(result, name) or () for name in self.columns)
        tops = top if len(top) == len(chosen) else [None] * len(chosen)
        return [(begin, (entry, top)) for (begin, entry), top in zip(spelled(chosen, text), tops, strict=True)]

    def with_text(self, choice: Any, text: str, rows: list[Any]) -> Any:
        parts = []
        for part in self._parts(choice):
            if _is_text(part):  # the first takes all of the text
                part, text = replace(part, text=text), ""
            parts.append(part)
        return self._with(choice, parts, rows)

    def cut(self, choice: Any, text: str, rows: list[Any]) -> Any:
        cut = self.with_text(choice, text, rows)
        return self._with_parts(cut, [part for part in self._parts(cut) if not _is_content(part)])

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        role = get(get(choice, "content"), "role") or "model"
        content = sibling(choice, "Content", role=role, parts=[sibling(choice, "Part", text=text)])
        index = get(choice, "index")
        return only(choice, content=content, **({} if index is None else {"index": index}), **self._rows(choice, rows))

    def with_finish(self, choice: Any, finish: Finish) -> Any:
        fields = to_gemini(finish)
        if isinstance(choice, dict):
            return replace(choice, **{self.reason: fields["finishReason"]})
        # The client's objects have an enumeration here; their class knows which.
        return replace(choice, finish_reason=type(choice).model_validate(fields).finish_reason)

    def _parts(self, choice: Any) -> Any:
        return get(get(choice, "content"), "parts") or ()

    def _with_parts(self, choice: Any, parts: list[Any]) -> Any:
        return replace(choice, content=replace(get(choice, "content"), parts=parts))

    def _with(self, choice: Any, parts: list[Any], rows: list[Any]) -> Any:
        return self._with_parts(replace(choice, **self._rows(choice, rows)), parts)

    def _rows(self, choice: Any, rows: list[Any]) -> dict[str, Any]:
        result = get(choice, self.logprobs)
        if result is None:
            return {}
        columns = {self.columns[0]: [chosen for chosen, _ in rows], self.columns[1]: [top for _, top in rows]}
        return {self.logprobs: replace(result, **{k: v for k, v in columns.items() if get(result, k) is not None})}


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


def _text(parts: Any) -> str:
    return "".join([get(part, "text") for part in parts if _is_text(part)])


def _is_text(part: Any) -> bool:
    return isinstance(get(part, "text"), str) and not get(part, "thought")


def _is_content(part: Any) -> bool:
    fields = part if isinstance(part, dict) else vars(part)
    return any(value is not None and name not in REMARKS for name, value in fields.items())
