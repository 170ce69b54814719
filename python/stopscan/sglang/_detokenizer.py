"""In the detokenizer: text of the requests that have stops, from their token ids, as soon as it is safe."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from stopscan.sglang._everywhere import Everywhere
from stopscan.sglang._requests import KEY, Requests
from stopscan.sglang._spec import Spec
from stopscan.tokens import TokenScanner

# As many as sglang keeps.
MAX_ROWS = 1 << 16


class Row:
    """One request: its scanner, and what sglang has to be told to take it over."""

    def __init__(self, spec: Spec, decoded: str, decode_ids: Sequence[int], offset: int) -> None:
        self.spec = spec
        self.scanner: TokenScanner | Everywhere | None = None
        self.decoded = decoded
        self.decode_ids = list(decode_ids)
        self.offset = offset
        # How many characters clients have.
        self.given = 0
        # Since the scanner failed: sglang's text, which has no hold. None before.
        self.text: str | None = None


class Detokenizer:
    """The hook of the detokenizer. No exception of ours leaves it: it would end the whole server."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._rows: OrderedDict[str, Row] = OrderedDict()

    def decode(self, original: Callable[..., Any], manager: Any, recv: Any) -> list[str]:
        """Around `_decode_batch_token_id_output`: the new text of each row."""
        try:
            self._learn(manager, recv)
        except BaseException as error:
            # What is left in it would go on to clients.
            recv.customized_info = None
            self._requests.circuit.note(error, "goes on with sglang's own text")
        if not self._rows:
            texts: list[str] = original(manager, recv)
            return texts
        rows = [self._rows.get(rid) for rid in recv.rids]
        ours = [self._text(manager, recv, place, row) if row else None for place, row in enumerate(rows)]
        theirs = [place for place, text in enumerate(ours) if text is None]
        if theirs:
            failed = {place: row for place, row in enumerate(rows) if row and ours[place] is None}
            part = _part(recv, theirs) if failed or len(theirs) < len(ours) else recv
            for place, row in failed.items():
                self._hand_over(part, theirs.index(place), row)
            for place, text in zip(theirs, original(manager, part), strict=True):
                ours[place] = text
            for place, row in failed.items():
                ours[place] = self._own(row, ours[place] or "", recv.finished_reasons[place])
        for rid, reason in zip(recv.rids, recv.finished_reasons, strict=True):
            if reason is not None:
                self._rows.pop(rid, None)
        return [text or "" for text in ours]

    def _learn(self, manager: Any, recv: Any) -> None:
        """Takes the specs out of the message: what is left in it goes on to the client."""
        if recv.customized_info is None:
            return
        from sglang.srt.managers.io_struct import unwrap_from_pickle, wrap_as_pickle

        info = unwrap_from_pickle(recv.customized_info)
        specs = info.pop(KEY, None)
        if specs is None:
            return
        recv.customized_info = wrap_as_pickle(info) if info else None
        for place, (rid, values) in enumerate(zip(recv.rids, specs, strict=True)):
            if values is not None:
                self._rows[rid] = self._row(manager, recv, place, Spec(*values))
        while len(self._rows) > MAX_ROWS:
            self._rows.popitem(last=False)

    def _row(self, manager: Any, recv: Any, place: int, spec: Spec) -> Row:
        offset = recv.read_offsets[place]
        prompt = recv.decode_ids[place][:offset]
        row = Row(spec, recv.decoded_texts[place], prompt, offset)
        try:
            row.scanner = spec.scanner(self._requests.vocabulary(manager.tokenizer), prompt)
        except BaseException as error:
            self._requests.circuit.note(error, "gets sglang's own text at its end")
        return row

    def _text(self, manager: Any, recv: Any, place: int, row: Row) -> str | None:
        """The row's new text; ``None`` if sglang is to make it."""
        if row.text is not None:
            return None
        ids, reason = list(recv.output_ids[place]), recv.finished_reasons[place]
        row.decode_ids += ids
        if row.scanner is None:
            return None
        try:
            if reason and ids and isinstance(reason.get("matched"), int):
                ids = manager.trim_matched_stop(ids, reason, recv.no_stop_trim[place])
            text = row.scanner.feed_many(ids)
            if reason and row.scanner.finish is None:
                text += row.scanner.close("abort" if reason["type"] == "abort" else "length")
            row.given += len(text)
            return text
        except BaseException as error:
            row.scanner = None
            self._requests.circuit.note(error, "gets sglang's own text at its end")
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
            end = row.spec.end_of(row.text)
        except BaseException as error:
            end = len(row.text)
            self._requests.circuit.note(error, "has the stop in its text")
        return row.text[row.given : end]


def _part(recv: Any, places: Sequence[int]) -> Any:
    """The message with some of its rows."""
    part, count = copy(recv), len(recv.rids)
    for name in recv.__struct_fields__:
        value = getattr(recv, name)
        if isinstance(value, list) and len(value) == count:
            setattr(part, name, [value[place] for place in places])
    return part
