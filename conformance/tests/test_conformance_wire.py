"""What came over the wire, as it came, and the events in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from stopscan_conformance._wire import Event, Wire


def test_a_copy_of_what_is_read_is_kept() -> None:
    class Response:
        status_code = 206
        headers = {"content-type": " Text/Event-Stream ; charset=utf-8"}  # noqa: RUF012
        sizes: list[int | None] = []  # noqa: RUF012

        async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
            self.sizes.append(chunk_size)
            for part in (b"one", b"", b"two\xff"):
                yield part

    async def read() -> list[bytes]:
        await wire.tap(response)
        return [part async for part in response.aiter_bytes(7)]

    wire, response = Wire(body=bytearray(b"an answer before")), Response()
    assert asyncio.run(read()) == [b"one", b"", b"two\xff"]
    assert (wire.status, wire.media_type, wire.text) == (206, "text/event-stream", "onetwo\N{REPLACEMENT CHARACTER}")
    assert response.sizes == [7]
    response.headers.clear()
    asyncio.run(wire.tap(response))
    assert wire.media_type == ""


def test_events_have_names_and_data() -> None:
    body = (
        'event: a\ndata: {"b": 1}\n\ndata:no\ndata: more\n\nevent: c\n\nid: 5\ndata:  [2\ndata\ndata: ]\n\nevent: d\n'
    )
    events = [*Wire(200, "", bytearray(body.encode())).events()]
    assert events == [Event("a", {"b": 1}), Event(None, "no\nmore"), Event(None, [2])]


def test_lines_of_json() -> None:
    wire = Wire(200, "", bytearray('{"a": 1}\n\n \n2\r\nno\n"\u2028"'.encode()))
    assert [*wire.lines()] == [Event(None, {"a": 1}), Event(None, 2), Event(None, "no"), Event(None, "\u2028")]
    assert wire.json() is None
    assert Wire(200, "", bytearray(b" [1]\n")).json() == [1]


def test_json_that_is_too_deep_to_read_is_a_text() -> None:
    deep = "[" * 100_000
    wire = Wire(200, "", bytearray(f"data: {deep}\n\n".encode()))
    assert [*wire.events()] == [Event(None, deep)]


def test_events_end_lines_as_the_standard_says() -> None:
    wire = Wire(200, "", bytearray("data: 1\r\rdata: 2\r\n\r\n: no\ndata:3\ndata: 4\u2028\n\ndata: 5\n".encode()))
    assert [event.data for event in wire.events()] == [1, 2, "3\n4\u2028"]
