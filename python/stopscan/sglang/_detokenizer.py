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
    """One request: its scanner, and what sglang would have to be told to take it over."""

    def __init__(
        self, spec: Spec, scanner: TokenScanner | Everywhere, decoded: str, decode_ids: Sequence[int], offset: int
    ) -> None:
        self.spec = spec
        self.scanner: TokenScanner | Everywhere | None = scanner
        self.decoded = decoded
        self.decode_ids = list(decode_ids)
        self.offset = offset
        self.given = 0
        self.skip = 0


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
            part = recv if len(theirs) == len(ours) else _part(recv, theirs)
            for place, row in ((place, rows[place]) for place in theirs):
                if row is not None and row.skip < 0:
                    self._hand_over(part, theirs.index(place), row)
            for place, text in zip(theirs, original(manager, part), strict=True):
                ours[place] = self._rest(rows[place], text)
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
                try:
                    self._rows[rid] = self._row(manager, recv, place, Spec(*values))
                except BaseException as error:
                    self._requests.circuit.note(error, "goes on with sglang's own text")
        while len(self._rows) > MAX_ROWS:
            self._rows.popitem(last=False)

    def _row(self, manager: Any, recv: Any, place: int, spec: Spec) -> Row:
        offset = recv.read_offsets[place]
        prompt = recv.decode_ids[place][:offset]
        scanner = spec.scanner(self._requests.vocabulary(manager.tokenizer), prompt)
        return Row(spec, scanner, recv.decoded_texts[place], prompt, offset)

    def _text(self, manager: Any, recv: Any, place: int, row: Row) -> str | None:
        """The row's new text; ``None`` if sglang is to make it."""
        if row.scanner is None:
            return None
        ids, reason = list(recv.output_ids[place]), recv.finished_reasons[place]
        row.decode_ids += ids
        try:
            if reason and ids and isinstance(reason.get("matched"), int):
                ids = manager.trim_matched_stop(ids, reason, recv.no_stop_trim[place])
            text = row.scanner.feed_many(ids)
            if reason and row.scanner.finish is None:
                text += row.scanner.close("abort" if reason["type"] == "abort" else "length")
            row.given += len(text)
            return text
        except BaseException as error:
            row.scanner, row.skip = None, -1
            self._requests.circuit.note(error, "goes on with sglang's own text")
            return None

    @staticmethod
    def _hand_over(part: Any, place: int, row: Row) -> None:
        """Makes the message one that begins the request, so that sglang decodes all of it once."""
        part.decode_ids[place] = row.decode_ids
        part.read_offsets[place] = row.offset
        part.decoded_texts[place] = row.decoded
        row.skip = row.given

    @staticmethod
    def _rest(row: Row | None, text: str) -> str:
        """What of sglang's ``text`` was not given already."""
        if row is None:
            return text
        skipped = min(row.skip, len(text))
        row.skip -= skipped
        return text[skipped:]


def _part(recv: Any, places: Sequence[int]) -> Any:
    """The message with some of its rows."""
    part, count = copy(recv), len(recv.rids)
    for name in recv.__struct_fields__:
        value = getattr(recv, name)
        if isinstance(value, list) and len(value) == count:
            setattr(part, name, [value[place] for place in places])
    return part
