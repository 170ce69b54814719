from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stopscan import StopMatch
from stopscan_clients._request import Plan
from stopscan_clients._wire.aws import Aws
from stopscan_clients._wire.cutter import Cutter, cut_answer, sniffed
from stopscan_clients._wire.framing import BOM, LIMIT, Framing, Lines, Sse

MEDIA: dict[str, type[Framing]] = {
    "text/event-stream": Sse,
    "application/x-ndjson": Lines,
    "application/ndjson": Lines,
    "application/jsonl": Lines,
    "application/vnd.amazon.eventstream": Aws,
}
DECODED = ("", "identity", "gzip", "deflate")  # what both packages always decode


def media_of(response: Any) -> str:
    media: str = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return media


def streams(response: Any, plan: Plan) -> bool:
    """Whether the answer comes piece by piece, and not at once."""
    return plan.streamed or media_of(response) in MEDIA


class Body:
    """An answer's body on its way to the client, without the waiting. What goes wrong with it comes out behind what is
    ready: ``told`` gives that, and raises then."""

    def __init__(
        self, response: Any, plan: Plan, strict: bool, on_match: Callable[[int, StopMatch], object] | None
    ) -> None:
        self.matches: dict[int, StopMatch] = {}
        self.error: Exception | None = None
        self.over = False  # read to its end
        self.note: Callable[[Exception], object] | None = None  # is told what comes out
        self._response = response
        self._plan = plan
        self._strict = strict
        self._on_match = on_match
        self._told: set[int] = set()
        self._complaint: Exception | None = None  # of whoever was told of a match: it comes behind the closing events
        self._media = MEDIA.get(media_of(response))
        self._head = bytearray()  # of a body whose form is not known yet
        self._whole = False
        self._cutter: Cutter | None = None
        self._raw = False  # passes as it is
        # An encoding that httpx does not know passes there for none.
        encodings = response.headers.get("content-encoding", "").lower().split(",")
        unknown = [name.strip() for name in encodings if name.strip() not in DECODED]
        self.plain = all(name.strip() in DECODED[:2] for name in encodings)
        self.unread = bool(unknown) and not strict
        if unknown and strict:
            self.error = TypeError(f"an answer with the encoding {unknown[0]!r} cannot be read for stops")
        if self._media is Aws:  # the others are told by their first bytes: servers label them as they like
            self._frame(Aws)

    @property
    def ended(self) -> bool:
        return self._cutter is not None and self._cutter.ended

    def feed(self, data: bytes) -> bytes:
        """What comes out for the next piece; the cutter's ``feed`` takes the place of this when the form is known."""
        if self._raw:
            return data
        goes_on = self._head.startswith(b"{") and b"\n" not in data  # what it is, the end of its line tells
        self._head += data
        if len(self._head) > LIMIT:
            raise ValueError(f"an answer of more than {LIMIT:,} bytes")
        if self._whole or goes_on:
            return b""
        framing = sniffed(bytes(self._head), self._streamed)
        if framing is None:
            return b""
        if framing is False:
            self._whole = self._head.removeprefix(BOM).lstrip().startswith(b"{")
            framing = None if self._whole else self._media
        if framing is None:
            self._raw = not self._whole
            return bytes(self._head) if self._raw else b""
        self._frame(framing)
        return self.feed(bytes(self._head))

    @property
    def _streamed(self) -> bool:
        return self._plan.streamed or self._media is not None

    def end(self) -> bytes:
        self.over = True
        if self._cutter is not None:
            return self._cutter.end()
        return b"" if self._raw else self.whole(bytes(self._head))

    def whole(self, data: bytes) -> bytes:
        """What becomes of an answer that has come at once."""
        self.over = True
        framing = sniffed(data, self._streamed, ended=True) or None
        if framing is not None:
            self._frame(framing)
            assert self._cutter is not None
            return self._cutter.feed(data) + self._cutter.end()
        try:
            return cut_answer(data, self._plan.options, self.matches, self._strict)
        except TypeError as error:
            self.error = error
            return b""

    def broken(self) -> bytes:
        """What comes where the body has broken off: behind the stops, the closing events; else the held text."""
        return self._cutter.broken_off() if self._cutter is not None else b""

    def failed(self, error: Any) -> bytes:
        """What tells the client that the body has broken off: an error as its last event, where it has events."""
        return self._cutter.framing.failed(error) if self._cutter is not None else b""

    def told(self, out: bytes) -> Iterator[bytes]:
        """What is ready, and then the error of whoever was told of a match, or of the close."""
        for choice, match in self.matches.items():
            if self._on_match is not None and choice not in self._told:
                self._told.add(choice)
                try:
                    self._on_match(choice, match)
                except Exception as error:
                    self._complaint = self._complaint or error
        if out:
            yield out
        if self.over or self.ended:
            self.error = self.error or self._complaint
        if self.error is not None:
            failure, self.error, self._complaint = self.error, None, None
            if self.note is not None:
                self.note(failure)
            raise failure

    def _frame(self, framing: Any) -> None:
        self._cutter = Cutter(framing(), self._plan.options, self.matches, self._strict)
        self.feed = self._cutter.feed  # type: ignore[method-assign]
