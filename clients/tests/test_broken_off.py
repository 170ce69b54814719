"""What a reader gets if a stream with ``drain=True`` breaks off or reports an error. Each test names an old defect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import wire
from memory import CHAT, Server, packages, post, read_all, text_in
from replay import sse

from stopscan_clients import StopTransport, scan_events


@packages
def test_closing_events_that_never_came_were_left_out_of_a_stream_that_is_drained(package: Any) -> None:
    def broken() -> Iterator[bytes]:
        yield from map(sse, wire.chat(["one END", "two"])[:3])
        raise package.ReadError("gone")

    client = package.Client(transport=StopTransport("END", transport=Server(package, broken()), drain=True))
    seen: list[bytes] = []
    with pytest.raises(package.ReadError):
        read_all(client, seen)
    read = b"".join(seen)
    assert text_in(read) == "one "
    assert read.count(b'"matched_stop":"END"') == 1


ERROR = {"error": {"message": "no"}}


@pytest.mark.parametrize("last", [[sse(ERROR)], [b"data: [DONE]\n\n"], [sse(ERROR), b"data: [DONE]\n\n"], []])
def test_closing_events_came_twice_or_behind_the_error(last: list[bytes]) -> None:
    drained = [*map(sse, wire.chat(["one END", "two"])[:3]), *last]
    read = post(Server(httpx, drained), {"stream": True}, CHAT, "END", drain=True).content
    closing, _, behind = read.partition(b'"matched_stop":"END"')
    assert b"error" not in closing.replace(b'"refusal"', b"")
    assert b"matched_stop" not in behind
    assert (b'"error"' in behind) == (sse(ERROR) in last)


def test_the_dicts_of_a_drained_stream_were_closed_behind_the_error() -> None:
    *_, closing, error = scan_events([*wire.chat(["one END", "two"])[:3], ERROR], "END", drain=True)
    assert closing["choices"][0]["matched_stop"] == "END"
    assert error is ERROR
    events, failed = wire.responses(["one END"]), {"type": "error", "message": "no"}
    at = next(number for number, event in enumerate(events) if "END" in repr(event)) + 1
    out = list(scan_events([*events[:at], failed], "END", drain=True))
    assert [event["type"] for event in out[-2:]] == ["response.completed", "error"]
