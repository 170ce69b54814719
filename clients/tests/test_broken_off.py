"""What a reader gets if a stream with ``drain=True`` breaks off or reports an error. Each test is for an old defect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import wire
from events import text_of
from memory import CHAT, Server, packages, post, read_all, text_in
from replay import aws, sse

from stopscan_clients import StopTransport, framing, scan_events


@packages
def test_a_drained_stream_gets_closing_events_that_never_came(package: Any) -> None:
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
def test_closing_events_come_once_and_before_the_error(last: list[bytes]) -> None:
    drained = [*map(sse, wire.chat(["one END", "two"])[:3]), *last]
    read = post(Server(httpx, drained), {"stream": True}, CHAT, "END", drain=True).content
    closing, _, behind = read.partition(b'"matched_stop":"END"')
    assert b"error" not in closing.replace(b'"refusal"', b"")
    assert b"matched_stop" not in behind
    assert (b'"error"' in behind) == (sse(ERROR) in last)


def test_a_drained_stream_closes_before_the_error() -> None:
    *_, closing, error = scan_events([*wire.chat(["one END", "two"])[:3], ERROR], "END", drain=True)
    assert closing["choices"][0]["matched_stop"] == "END"
    assert error is ERROR
    events, failed = wire.responses(["one END"]), {"type": "error", "message": "no"}
    at = next(number for number, event in enumerate(events) if "END" in repr(event)) + 1
    out = list(scan_events([*events[:at], failed], "END", drain=True))
    assert [event["type"] for event in out[-2:]] == ["response.completed", "error"]


WRONG = b'{"odd": "one"}'
AWS_WRONG_SIZE = b"\x00\x00\x00\x05" * 3
EARLY = wire.chat(["one ", "two E"])
HELD = wire.bedrock(["one ", "two E"])[:3]
NEUTRAL = {"choices": [], "usage": None}


def tried(data: bytes, media: str = "text/event-stream") -> tuple[bytes, Exception]:
    """Sends a body in one piece. Returns what a client reads before an error is raised, and the error."""
    client = httpx.Client(transport=StopTransport("END", transport=Server(httpx, [data], media)))
    seen: list[bytes] = []
    with pytest.raises((TypeError, ValueError)) as raised:
        read_all(client, seen)
    return b"".join(seen), raised.value


def test_events_before_a_wrong_size_come() -> None:
    read, error = tried(b"".join(map(aws, HELD)) + AWS_WRONG_SIZE, "application/vnd.amazon.eventstream")
    form = framing.Aws()
    out = [json.loads(form.payload(frame) or b"") for frame in form.split(read)]
    assert [text_of("bedrock", event) for event in out] == [None, "one ", "two ", "E"]
    assert "wrong size" in str(error)


def test_events_before_a_too_long_event_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "LIMIT", 1000)
    read, error = tried(b"".join(map(sse, EARLY[:3])) + b"data: " + b"x" * 2000)
    assert text_in(read) == "one two E"
    assert "longer than" in str(error)


def test_events_before_an_unknown_event_come() -> None:
    for last in (b"\n\n", b""):
        read, error = tried(b": hello\n\n" + sse(NEUTRAL) + b"data: " + WRONG + last)
        assert read == b": hello\n\n" + sse(NEUTRAL)
        assert "'odd'" in str(error)


def test_a_drained_stream_closes_before_a_wrong_event() -> None:
    stream = scan_events([*wire.chat(["one END", "two"])[:3], "odd"], "END", drain=True)
    assert [next(stream)["choices"][0].get("matched_stop") for _ in range(3)] == [None, None, "END"]
    with pytest.raises(TypeError, match="is not a dict"):
        next(stream)
