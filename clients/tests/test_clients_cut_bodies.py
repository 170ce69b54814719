"""A body may end inside an event. The client then gets the held text, and then the bytes of that event, unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from stopscan import StopSet
from stopscan_clients.apis import api_of_event
from stopscan_clients.body import DONE, Body, Plan, loads
from stopscan_clients.framing import Array, Aws, Lines, Sse
from stopscan_clients.machine import ScanOptions

MEDIA: dict[str, tuple[str, type[Lines]]] = {
    ".sse": ("text/event-stream", Sse),
    ".ndjson": ("application/x-ndjson", Lines),
    ".aws": ("application/vnd.amazon.eventstream", Aws),
}


def bodies() -> Iterator[tuple[str, str, type[Lines], bytes]]:
    for path in sorted((Path(__file__).parent / "recordings").iterdir()):
        if path.suffix not in MEDIA:
            continue
        media, framing = MEDIA[path.suffix]
        yield path.name, media, framing, path.read_bytes()
        if path.name.startswith("gemini"):
            sse = Sse()
            events = [event for frame in sse.split(path.read_bytes()) if (event := sse.payload(frame))]
            yield f"{path.stem}.json", "application/json", Array, b"[" + b",\r\n".join(events) + b"\n]\n"


def read(framing: type[Lines], data: bytes) -> tuple[str, bytes]:
    """Returns the text of the complete events in a body, and the bytes of the incomplete event after them."""
    reader, api, text = framing(), None, ""
    frames = list(reader.split(data))
    last = bytes(reader.rest)
    if reader.as_read and (loads(reader.payload(last)) is not None or reader.payload(last) == DONE):
        frames, last = [*frames, last], b""
    for event in (loads(reader.payload(frame)) for frame in frames):
        api = api or (api_of_event(event) if isinstance(event, dict) else None)
        if api is not None and isinstance(event, dict):
            kind = api.kind(event) if api.each is None else None
            text += "".join(run.text for unit in api.units(event) for run in api.runs(unit, kind))
    return text, last


BODIES = {name: rest for name, *rest in bodies() if name != "cohere_tools.sse"}  # without text


def places(framing: type[Lines], data: bytes) -> list[int]:
    """Returns the places at which to cut a body: all places near the end of an event, and every 47th elsewhere."""
    ends = accumulate(map(len, framing().split(data)))
    return sorted(
        {*range(1, len(data), 47), *(end + at for end in ends for at in range(-2, 3) if end + at < len(data))}
    )


@pytest.mark.parametrize("name", BODIES)
def test_held_text_comes_before_torn_bytes(name: str) -> None:
    media, framing, data = BODIES[name]
    cuts = 0
    for end in places(framing, data):
        text, torn = read(framing, data[:end])
        if not text:
            continue
        body = Body(Plan(ScanOptions(StopSet(text[-1] + "\x01\x02")), True), media)
        out = b"".join([*body.emit(body.feed(data[:end])), *body.emit(body.end())])
        assert read(framing, out)[0] == text, end
        assert out.endswith(torn) or framing is Array, end
        cuts += 1
    assert cuts > 20
