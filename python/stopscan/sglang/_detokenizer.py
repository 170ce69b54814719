"""In the detokenizer: text of the requests that have stops, from their token ids, as soon as it is safe."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Sequence
from copy import copy
from typing import Any

from sglang.srt.managers.io_struct import unwrap_from_pickle, wrap_as_pickle

from stopscan.engines import Failures
from stopscan.sglang._scheduler import KEY
from stopscan.sglang._spec import Everywhere, Spec
from stopscan.tokens import TokenScanner, Vocabulary

# As many as sglang keeps.
MAX_ROWS = 1 << 16


class Row:
    """One request: its spec, its scanner, and what is needed if a fault of ours leaves its text to the tokenizer."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.scanner: TokenScanner | Everywhere | None = None
        self.ids: list[int] = []
        # How many characters clients have.
        self.given = 0
        self.failed = False

    def feed(self, manager: Any, ids: Sequence[int], reason: Any) -> str:
        """The row's new text."""
        if self.scanner is None:
            self.scanner = self.spec.scanner(Vocabulary(manager.tokenizer))
        text = self.scanner.feed_many(ids)
        if reason and self.scanner.finish is None:
            text += self.scanner.flush("abort" if reason["type"] == "abort" else "length")
        return text

    def rest(self, manager: Any, **shown: bool) -> str:
        """What clients do not have of the whole text, up to the stop."""
        prompt = self.spec.options["prompt_token_ids"]
        text = manager.tokenizer.decode([*prompt, *self.ids], **shown)[len(manager.tokenizer.decode(prompt, **shown)) :]
        return str(text[self.given : self.spec.end_of(text)])


class Detokenizer:
    """The hook of the detokenizer. A fault of ours concerns one row, so that it is caught there."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._rows: OrderedDict[str, Row] = OrderedDict()

    def decode(self, manager: Any, recv: Any) -> Generator[tuple[Any, ...] | None, list[str], list[str] | None]:
        """Around `_decode_batch_token_id_output`: the new text of each row."""
        if recv.customized_info is not None:
            self._learn(recv)
        rows = [self._rows.get(rid) for rid in recv.rids] if self._rows else []
        if not any(rows):
            yield None
            return None
        ours = [self._text(row, manager, recv, place) if row else "" for place, row in enumerate(rows)]
        theirs = [place for place, row in enumerate(rows) if row is None]
        for place, text in zip(theirs, (yield (manager, _part(recv, theirs))), strict=True):
            ours[place] = text
        return ours

    def _learn(self, recv: Any) -> None:
        """Takes the specs out of the message: what is left in it goes on to the client."""
        info = unwrap_from_pickle(recv.customized_info)
        specs = info.pop(KEY, None) or ()
        recv.customized_info = wrap_as_pickle(info) if info else None
        for rid, values in zip(recv.rids, specs, strict=False):
            if values and values[0] is not None:
                self._rows[rid] = Row(Spec(*values[0]))
        while len(self._rows) > MAX_ROWS:
            self._rows.popitem(last=False)

    def _text(self, row: Row, manager: Any, recv: Any, place: int) -> str:
        ids, reason = list(recv.output_ids[place]), recv.finished_reasons[place]
        if reason:
            del self._rows[recv.rids[place]]
            if ids and isinstance(reason.get("matched"), int):
                ids = manager.trim_matched_stop(ids, reason, recv.no_stop_trim[place])
        row.ids += ids
        text = ""
        try:
            if not row.failed:
                text = row.feed(manager, ids, reason)
        except BaseException as error:
            row.failed = True
            self._failures.note(error, "gets the rest of its text at its end")
        if row.failed and reason:
            names = ("skip_special_tokens", "spaces_between_special_tokens")
            try:
                text = row.rest(manager, **{name: getattr(recv, name)[place] for name in names})
            except BaseException as error:
                self._failures.note(error, "lacks the end of its text")
        row.given += len(text)
        return text


def _part(recv: Any, places: Sequence[int]) -> Any:
    """The message with some of its rows."""
    part, count = copy(recv), len(recv.rids)
    for name in recv.__struct_fields__:
        value = getattr(recv, name)
        if isinstance(value, list) and len(value) == count:
            setattr(part, name, [value[place] for place in places])
    return part
