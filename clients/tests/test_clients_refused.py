"""Sources, events and options that `scan_events`, `ascan_events` and `truncate_response` must refuse, with an error.
Also tests the attribute ``closes`` of a stream."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import wire
from huggingface_hub import ChatCompletionStreamOutput
from openai.types.chat import ChatCompletionChunk
from sources import AsyncSource, Source, chunks

from stopscan_clients import ascan_events, scan_events, truncate_response


def test_objects_of_clients_are_refused_with_advice() -> None:
    chunk = wire.chat(["one END"])[1]
    objects = [
        # This client's chunk is a dict, but it is also refused, because it has its values also as attributes.
        ChatCompletionStreamOutput.parse_obj_as_instance(chunk),
        ChatCompletionChunk.model_validate(chunk),
        SimpleNamespace(type="ai", content="x"),
        "one",
        b"data: {}",
    ]
    for event in objects:
        with pytest.raises(
            TypeError, match=r"is not a dict: give its client a StopTransport .* or pass only the texts"
        ):
            next(scan_events([event], "END"))
        with pytest.raises(TypeError, match=f"{type(event).__name__} is not a dict"):
            truncate_response(event, "END")


def test_events_of_an_api_that_is_not_known() -> None:
    with pytest.raises(TypeError, match="not an event of a known API: a dict with the keys 'index', 'word'"):
        next(scan_events([{"index": 0, "word": "x"}], "END"))


def test_options_that_are_wrong() -> None:
    for scan in (
        lambda **options: scan_events([], "END", **options),
        lambda **options: ascan_events(AsyncSource(), "END", **options),
    ):
        for choices in ("2", True, 0):
            with pytest.raises(ValueError, match="choices must be a positive integer"):
                scan(choices=choices)
        for name in ("include_stop", "drain"):
            with pytest.raises(TypeError, match=name):
                scan(**{name: 1})


def test_closes_says_whether_the_source_can_be_closed() -> None:
    assert scan_events(Source(), "END").closes
    assert scan_events((event for event in ()), "END").closes
    assert not scan_events([], "END").closes
    assert ascan_events(AsyncSource(), "END").closes


def test_choices_must_be_a_positive_integer() -> None:
    """`scan_events` does not see the request, so ``choices`` tells it how many choices come. With ``choices=2``, the
    stop in choice 0 must not end the stream before choice 1 begins."""
    first, two = (wire.chat_chunk([wire.chat_choice(index, content="a END")]) for index in (0, 1))
    assert len(list(scan_events([first, two], "END"))) == 2
    stream = scan_events([first, two], "END", choices=2)
    assert len(list(stream)) == 4
    assert {*stream.matches} == {0, 1}


def test_matches_are_live_and_cannot_be_changed() -> None:
    stream = scan_events(wire.chat(["a END"]), "END")
    matches = stream.matches
    assert matches == {}
    list(stream)
    assert stream.matches[0].sequence == "END"
    with pytest.raises(TypeError):
        stream.matches[1] = stream.matches[0]  # type: ignore[index]


def test_ascan_events_takes_choices_too() -> None:
    async def read() -> None:
        first, two = (wire.chat_chunk([wire.chat_choice(index, content="a END")]) for index in (0, 1))
        stream = ascan_events(AsyncSource(first, two), "END", choices=2)
        assert len([event async for event in stream]) == 4

    asyncio.run(read())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: scan_events(ascan_events(AsyncSource(), "x"), "END"), "use ascan_events"),
        (lambda: scan_events(7, "END"), "not iterable"),
        (lambda: ascan_events([], "END"), "not an async iterable"),
        (lambda: next(scan_events(["one"], "END")), "builtins.str is not a dict"),
        (lambda: next(scan_events([{"type": ["text"]}], "END")), "not an event of a known API"),
        (lambda: next(scan_events([b"data: {}"], "END")), "builtins.bytes is not a dict"),
        (lambda: next(scan_events([{"delta": "x"}], "END")), "'delta'"),
        (lambda: next(scan_events([{"message": "Not Found"}], "END")), "'message'"),
    ],
)
def test_objects_and_unknown_answers_are_refused(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


def test_a_wrong_stop_is_refused_before_any_event() -> None:
    source = Source(*chunks("one"))
    for stop, error in (("", ValueError), (["a", 1], TypeError), (b"END", TypeError)):
        with pytest.raises(error):
            scan_events(source, stop)  # type: ignore[arg-type]
    assert len(list(source)) == 1
