"""In the detokenizer: text of the requests that have stops, from their token ids, as soon as it is safe."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Sequence
from copy import copy
from typing import Any

from stopscan.engines import Failures
from stopscan.sglang._scheduler import KEY
from stopscan.sglang._spec import Everywhere, Spec
from stopscan.tokens import TokenScanner, Vocabulary

# As many as sglang keeps.
MAX_ROWS = 1 << 16


class Row:
    """One request: its spec, its scanner, and what sglang has to be told to take it over."""

    def __init__(self, spec: Spec, recv: Any, place: int) -> None:
        self.spec = spec
        self.offset = recv.read_offsets[place]
        self.decoded = recv.decoded_texts[place]
        self.decode_ids = list(recv.decode_ids[place][: self.offset])
        self.scanner: TokenScanner | Everywhere | None = None
        # How many characters clients have.
        self.given = 0
        # Since a fault of ours: sglang's text, which has no hold. None before.
        self.text: str | None = None

    def feed(self, manager: Any, recv: Any, place: int) -> str:
        """The row's new text."""
        ids, reason = list(recv.output_ids[place]), recv.finished_reasons[place]
        if self.scanner is None:
            self.scanner = self.spec.scanner(Vocabulary(manager.tokenizer))
        if reason and ids and isinstance(reason.get("matched"), int):
            ids = manager.trim_matched_stop(ids, reason, recv.no_stop_trim[place])
        text = self.scanner.feed_many(ids)
        if reason and self.scanner.finish is None:
            text += self.scanner.flush("abort" if reason["type"] == "abort" else "length")
        self.given += len(text)
        return text

    def rest(self, reason: Any) -> str:
        """What clients do not have of sglang's whole text, up to the stop."""
        text = self.text or ""
        return text[self.given : self.spec.end_of(text)]

    def certain(self, reason: Any) -> str:
        """As ``rest`` where the spec cannot be used: up to the words that sglang was told, or nothing."""
        text, matched = self.text or "", reason.get("matched")
        if isinstance(matched, str):
            return text[self.given : max(text.find(matched), self.given)]
        return text[self.given :]


class Detokenizer:
    """The hook of the detokenizer. A fault of ours concerns one row, so that it is caught there."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._rows: OrderedDict[str, Row] = OrderedDict()

    def decode(self, manager: Any, recv: Any) -> Generator[tuple[Any, ...] | None, list[str], list[str] | None]:
        """Around `_decode_batch_token_id_output`: the new text of each row."""
        if recv.customized_info is not None:
            self._learn(recv)
        if not self._rows:
            yield None
            return None
        rows = [self._rows.get(rid) for rid in recv.rids]
        ours = [self._text(row, manager, recv, place) if row else None for place, row in enumerate(rows)]
        theirs = [place for place, text in enumerate(ours) if text is None]
        part = _part(recv, theirs)
        failed = {place: row for place, row in enumerate(rows) if row and ours[place] is None}
        for place, row in failed.items():
            self._hand_over(part, theirs.index(place), row)
        for place, text in zip(theirs, (yield (manager, part)), strict=True):
            ours[place] = text
        for place, row in failed.items():
            ours[place] = self._own(row, ours[place] or "", recv.finished_reasons[place])
        for rid, reason in zip(recv.rids, recv.finished_reasons, strict=True):
            if reason is not None:
                self._rows.pop(rid, None)
        return [text or "" for text in ours]

    def _learn(self, recv: Any) -> None:
        """Takes the specs out of the message: what is left in it goes on to the client."""
        from sglang.srt.managers.io_struct import unwrap_from_pickle, wrap_as_pickle

        info = unwrap_from_pickle(recv.customized_info)
        specs = info.pop(KEY, None)
        if specs is None:
            return
        recv.customized_info = wrap_as_pickle(info) if info else None
        for place, (rid, values) in enumerate(zip(recv.rids, specs, strict=True)):
            if values and values[0] is not None:
                self._rows[rid] = Row(Spec(*values[0]), recv, place)
        while len(self._rows) > MAX_ROWS:
            self._rows.popitem(last=False)

    def _text(self, row: Row, manager: Any, recv: Any, place: int) -> str | None:
        """The row's new text; ``None`` if sglang is to make it."""
        row.decode_ids += recv.output_ids[place]
        if row.text is not None:
            return None
        try:
            return row.feed(manager, recv, place)
        except BaseException as error:
            self._failures.note(error, "gets sglang's own text at its end")
            return None

    @staticmethod
    def _hand_over(part: Any, place: int, row: Row) -> None:
        """Lets sglang decode the row: at first all of it, as in a message that begins the request.

        sglang is not told the string that matched: it would cut at the first one, which may stand in the reasoning.
        """
        if row.text is None:
            part.decode_ids[place] = row.decode_ids
            part.read_offsets[place] = row.offset
            part.decoded_texts[place] = row.decoded
            row.text = ""
        reason = part.finished_reasons[place]
        if reason and isinstance(reason.get("matched"), str):
            part.finished_reasons[place] = {**reason, "matched": None}

    def _own(self, row: Row, text: str, reason: Any) -> str:
        """What clients do not have of sglang's text: all at the end, where the stop is known."""
        row.text = (row.text or "") + text
        if reason is None:
            return ""
        try:
            return row.rest(reason)
        except BaseException as error:
            self._failures.note(error, "may lack the end of its text")
            return row.certain(reason)


def _part(recv: Any, places: Sequence[int]) -> Any:
    """The message with some of its rows."""
    part, count = copy(recv), len(recv.rids)
    for name in recv.__struct_fields__:
        value = getattr(recv, name)
        if isinstance(value, list) and len(value) == count:
            setattr(part, name, [value[place] for place in places])
    return part
