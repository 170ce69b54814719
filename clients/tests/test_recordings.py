"""Streams that the APIs themselves have sent (`recordings/`, with their sources). A stream without a match must stay
unchanged. With a match, it must be cut where a brute-force search cuts its text, and the events must still fit the
types of the API's own client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from events import field, text_of
from pydantic import ValidationError
from reference import Reference
from test_recorded import checker, through

from stopscan_clients.framing import Aws, Lines, Sse

RECORDINGS = {path.name: path for path in sorted((Path(__file__).parent / "recordings").glob("*_*.*"))}
FORMS: dict[str, tuple[type[Lines], str]] = {
    ".sse": (Sse, "text/event-stream"),
    ".ndjson": (Lines, "application/x-ndjson"),
    ".aws": (Aws, "application/vnd.amazon.eventstream"),
}
PLACES: dict[str, Any] = {
    "anthropic": lambda event: field(event, "index"),
    "cohere": lambda event: field(event, "index"),
    "bedrock": lambda event: field(event, "contentBlockDelta", "contentBlockIndex"),
    "responses": lambda event: (field(event, "output_index"), field(event, "content_index")),
}
TYPED = [name for name in RECORDINGS if name.startswith(("chat", "responses", "anthropic", "gemini"))]


def api_of(name: str) -> str:
    return name.partition("_")[0]


def events_in(name: str, body: bytes) -> list[Any]:
    framing = FORMS[Path(name).suffix][0]()
    payloads = [framing.payload(frame) for frame in framing.split(body)]
    return [json.loads(payload) for payload in payloads if payload not in (None, b"[DONE]")]


def texts(name: str, body: bytes) -> dict[Any, str]:
    """Returns the text of each part of an answer, by the place of the part (such as the index of its choice)."""
    by_choice: dict[Any, str] = {}
    for event in events_in(name, body):
        text = text_of(api_of(name), event)
        if text:
            place = PLACES.get(api_of(name), lambda event: 0)(event)
            by_choice[place] = by_choice.get(place, "") + text
    return by_choice


def cut(by_choice: dict[Any, str], stop: str) -> tuple[dict[Any, str], bool]:
    shortened = {}
    for place, text in by_choice.items():
        oracle = Reference([stop])
        shortened[place] = oracle.feed(text) + oracle.flush()
        if oracle.match is not None:
            return {at: kept for at, kept in shortened.items() if kept}, True
    return shortened, False


def media(name: str) -> str:
    return FORMS[Path(name).suffix][1]


@pytest.mark.parametrize("size", [1, 97, 1 << 20])
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_without_a_match_is_unchanged(name: str, size: int) -> None:
    whole = RECORDINGS[name].read_bytes()
    out, body = through([whole[at : at + size] for at in range(0, len(whole), size)], ["\0 never"], media(name))
    assert (out, body.matches) == (whole, {})


@pytest.mark.parametrize("name", RECORDINGS)
def test_cuts_of_recordings_equal_brute_force(name: str) -> None:
    whole = RECORDINGS[name].read_bytes()
    by_choice = texts(name, whole)
    pieces = [whole[at : at + 97] for at in range(0, len(whole), 97)]
    for text in by_choice.values():
        for begin in range(0, len(text), 1 + len(text) // 40):
            stop = text[begin : begin + 1 + begin % 5]
            expected, fires = cut(by_choice, stop)
            for drain in (False, True):
                out, body = through(pieces, [stop], media(name), drain=drain)
                assert (texts(name, out), bool(body.matches)) == (expected, fires), (stop, drain)


def faults(api: str, event: Any) -> set[Any]:
    """Returns what the client's types find wrong in an event. A client has a type for each kind of event, and the event
    is checked with all of them. Some of them do not allow the event's ``type``: they are for other kinds of events, and
    what they find is left out."""
    try:
        checker(api)(event)
    except ValidationError as error:
        wrong = [(fault["loc"], fault["type"]) for fault in error.errors()]
        others = {loc[0] for loc, kind in wrong if loc[1:] == ("type",) and kind == "literal_error"}
        return {fault for fault in wrong if fault[0][0] not in others}
    return set()


@pytest.mark.parametrize("drain", [False, True])
@pytest.mark.parametrize("name", TYPED)
def test_cut_recordings_fit_the_clients_types(name: str, drain: bool) -> None:
    valid_as_the_recording(name, drain)


def valid_as_the_recording(name: str, drain: bool) -> None:
    """Checks the cut streams of a recording with the client's types. The types may also find faults in the uncut
    recording, because an API may send more than they allow. Only other faults count."""
    api, whole = api_of(name), RECORDINGS[name].read_bytes()
    known = set().union(*(faults(api, event) for event in events_in(name, whole)))
    for text in texts(name, whole).values():
        for begin in range(0, len(text), 1 + len(text) // 9):
            out, body = through([whole], [text[begin : begin + 3]], media(name), drain=drain)
            assert body.matches
            assert set().union(*(faults(api, event) for event in events_in(name, out))) <= known
