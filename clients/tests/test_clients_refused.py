"""What cannot be cut is refused before any of it is out, and what cannot be closed says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import anthropic
import pytest
import wire
from huggingface_hub import ChatCompletionStreamOutput, TextGenerationStreamOutput
from events import MAKERS
from sources import AsyncSource, Source, chunks

from stopscan_clients import ascan_events, scan_events


def test_huggingface_hub_attributes_are_a_copy_of_the_dict() -> None:
    """To change one side leaks the other: each side of each event says the same, and no text comes twice."""
    chunks = wire.chat(["one ", "E", "ND two"])
    events = [ChatCompletionStreamOutput.parse_obj_as_instance(chunk) for chunk in chunks]
    stream = scan_events(events, "END")
    out = list(stream)
    attributes = "".join(event.choices[0].delta.content or "" for event in out)
    items = "".join(event["choices"][0]["delta"].get("content") or "" for event in out)
    assert (attributes, items) == ("one ", "one ")
    assert {type(event) for event in out} == {ChatCompletionStreamOutput}
    assert (out[-1].choices[0].finish_reason, out[-1].choices[0].matched_stop) == ("stop", "END")
    assert out[1] is events[1]
    assert stream.matches[0].offset == 4


class Copied(dict[str, Any]):
    """Its attributes are a copy of its items, and nothing keeps them together."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.choices = self["choices"]


def test_an_event_that_still_has_the_old_text_after_a_cut_is_refused_at_the_first() -> None:
    source = iter([Copied(chunk) for chunk in wire.chat(["one ", "END"], usage=False)])
    stream = scan_events(source, "END")
    assert next(stream)["choices"][0]["delta"]["content"] == ""
    with pytest.raises(TypeError, match="Copied cannot be cut: its text does not change"):
        next(stream)


def test_a_class_of_a_client_that_is_not_known_is_refused() -> None:
    class Delta(anthropic.BaseModel):
        type: str
        delta: Any
        index: int

    Delta.__module__ = "elsewhere.types"
    with pytest.raises(TypeError, match=r"elsewhere.types.*Delta cannot be cut: no event types"):
        next(scan_events([Delta(type="content_block_delta", index=0, delta={})], "END"))


def test_text_generation_of_tgi_is_no_api_that_is_known() -> None:
    event = TextGenerationStreamOutput.parse_obj_as_instance({"index": 0, "token": {"id": 1, "text": "x"}})
    with pytest.raises(TypeError, match="no event of an API"):
        next(scan_events([event], "END"))


@pytest.mark.parametrize("api", MAKERS)
def test_the_first_text_is_cut_for_trial_and_that_changes_nothing(api: str) -> None:
    made = [MAKERS[api](event) for event in wire.WIRES[api](["one", "two", "thr"])]
    assert [id(event) for event in scan_events(made, "END")] == [id(event) for event in made]


def test_closes_says_whether_the_source_can_be_closed() -> None:
    assert scan_events(Source(), "END").closes
    assert scan_events((event for event in ()), "END").closes
    assert not scan_events([], "END").closes
    assert ascan_events(AsyncSource(), "END").closes


def test_how_many_choices_are_expected_can_be_said() -> None:
    """Of dicts nobody knows the request: a choice that has not begun when another ends is waited for."""
    one, two = (wire.chat_chunk([wire.chat_choice(index, content="a END")]) for index in (0, 1))
    assert len(list(scan_events([one, two], "END"))) == 2
    stream = scan_events([one, two], "END", choices=2)
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
        one, two = (wire.chat_chunk([wire.chat_choice(index, content="a END")]) for index in (0, 1))
        stream = ascan_events(AsyncSource(one, two), "END", choices=2)
        assert len([event async for event in stream]) == 4

    asyncio.run(read())


@dataclass(frozen=True)
class Frozen:
    choices: Any


@pytest.mark.parametrize("kind", [SimpleNamespace, Frozen])
def test_objects_that_are_of_no_client_are_refused(kind: Any) -> None:
    """Nobody knows how to copy them: a guess was a frozen dataclass's error in the middle of the stream."""
    event = kind(choices=[SimpleNamespace(index=0, delta=SimpleNamespace(content="one END"), finish_reason=None)])
    with pytest.raises(TypeError, match=f"{kind.__name__} cannot be cut"):
        next(scan_events([event], "END"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: scan_events(ascan_events(AsyncSource(), "x"), "END"), "use ascan_events"),
        (lambda: scan_events(7, "END"), "no iterable of events"),
        (lambda: ascan_events([], "END"), "no async iterable of events"),
        (lambda: next(scan_events(["one"], "END")), "builtins.str cannot be cut"),
        (lambda: next(scan_events([{"type": ["text"]}], "END")), "no event of an API"),
        (lambda: next(scan_events([b"data: {}"], "END")), "builtins.bytes cannot be cut"),
        (lambda: next(scan_events([{"delta": "x"}], "END")), "'delta'"),
        (lambda: next(scan_events([{"message": "Not Found"}], "END")), "'message'"),
        (lambda: next(scan_events([SimpleNamespace(type="ai", content="x")], "END")), "SimpleNamespace cannot be cut"),
    ],
)
def test_what_is_refused(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize("kind", ["chunk", "content.delta", "content.done", "refusal.delta", "text"])
def test_what_a_helper_has_made_is_refused(kind: str) -> None:
    with pytest.raises(TypeError, match=rf"'{kind}' is made by the client's stream\(\) helper: give the helper itself"):
        next(scan_events([{"type": kind, "delta": "x"}], "END"))


def test_a_bad_stop_is_refused_before_the_stream_is_touched() -> None:
    source = Source(*chunks("one"))
    for stop, error in (("", ValueError), (["a", 1], TypeError), (b"END", TypeError)):
        with pytest.raises(error):
            scan_events(source, stop)  # type: ignore[arg-type]
    assert len(list(source)) == 1
