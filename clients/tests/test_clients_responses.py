"""Streams of OpenAI's Responses API. A text comes in deltas, and then four closing events each repeat the whole text. A
stop must cut the text in all of these events."""

from __future__ import annotations

from typing import Any

import pytest
import wire
from events import field
from responses_events import CLOSING, NAMED, answer, kinds

from stopscan import StopSet
from stopscan_clients import scan_events


def test_the_repeats_are_cut_too() -> None:
    for drain in (False, True):
        events = answer(["first"], ["one E", "ND two"], ["third"])
        out = list(scan_events(events, "END", drain=drain))
        by_kind = {event["type"].removeprefix("response."): event for event in out}
        assert by_kind["output_text.done"]["text"] == "one "
        assert by_kind["content_part.done"]["part"]["text"] == "one "
        assert [part["text"] for part in by_kind["output_item.done"]["item"]["content"]] == ["first", "one "]
        assert by_kind["output_item.done"]["item"]["status"] == "completed"
        response = by_kind["completed"]["response"]
        assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
        assert [part["text"] for part in response["output"][1]["content"]] == ["first", "one "]
        assert (response["status"], response["incomplete_details"]) == ("completed", None)
        assert response["usage"]["output_tokens"] == (wire.TOKENS if drain else 0)
        assert "END" not in repr(out).replace(NAMED, "")
        assert "later" not in repr(out)
        assert kinds(out)[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]


def test_the_numbers_go_on() -> None:
    out = list(scan_events(answer(["one E", "ND two"]), "END"))
    assert [event["sequence_number"] for event in out] == list(range(len(out)))


def test_an_uncut_event_is_the_very_object() -> None:
    events = answer(["one E", "N"], ["D"])
    out = list(scan_events(events, "END"))
    deltas = [event["delta"] for event in out if event["type"] == "response.output_text.delta"]
    assert deltas == ["one ", "", "EN", "D", "later"]
    ours = [event for event in out if not any(event is source for source in events)]
    assert len(ours) == 3
    assert len(out) == len(events) + 1


def test_a_limit_after_the_stop_does_not_count() -> None:
    events = answer(["one END"])
    response = {
        **events[-1]["response"],
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    }
    incomplete = {**events[-1], "type": "response.incomplete", "response": response}
    without_output = {**incomplete, "response": {**response, "output": []}}
    for variant in ([*events[:-1], incomplete], [*events[:-1], without_output], [incomplete]):
        *before, last = scan_events(variant, "END", drain=True)
        assert field(last, "type") == "response.completed"
        numbers = [event["sequence_number"] for event in (*before, last)]
        assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
        assert field(last, "response", "status") == "completed"
        assert field(last, "response", "incomplete_details") is None
        assert field(last, "response", "usage", "output_tokens") == wire.TOKENS


def test_a_text_without_deltas_is_cut() -> None:
    events = [event for event in answer(["one END two"]) if not event["type"].endswith("text.delta")]
    whole = list(scan_events(answer(["one END two"]), "END"))[-4:]
    for skipped in range(4):
        kept = [e for e in events if e["type"] not in [closed["type"] for closed in whole[:skipped]]]
        for drain in (False, True):
            stream = scan_events(kept, "END", drain=drain)
            out = list(stream)
            assert stream.matches[0].offset == 4
            at = next(number for number, event in enumerate(kept) if "END" in repr(event))
            assert kinds(out) == kinds([*kept[:at], *whole])
            assert "END" not in repr(out).replace(NAMED, "")
            assert [part["text"] for part in out[-1]["response"]["output"][1]["content"]] == ["one "]


@pytest.mark.parametrize("last", ["completed", "incomplete", "failed", "cancelled"])
@pytest.mark.parametrize("skipped", range(4))
def test_held_text_comes_before_whichever_event_closes_its_text(skipped: int, last: str) -> None:
    """LlamaStack sends no `output_text.done` (ogx-ai/ogx#5309), and a failed response may end without any `done` event.
    So each of the closing events must release the held text."""
    stream = wire.ResponsesStream()
    stream.item({"id": "rs", "type": "reasoning", "summary": []})
    stream.message(["one E", "N"])
    events = [event for event in stream.completed() if event["type"] not in CLOSING[:skipped]]
    events[-1]["type"] = f"response.{last}"
    out = list(scan_events(events, "END"))
    begin = -4 + skipped
    assert [id(event) for event in out[begin:]] == [id(event) for event in events[begin:]]
    assert [event["delta"] for event in out[:begin] if "delta" in event] == ["one ", "", "EN"]
    assert out[begin - 1]["delta"] == "EN"


def test_an_event_may_close_several_texts() -> None:
    stream = wire.ResponsesStream()
    stream.message(["a E"], ["b E"])
    events = [event for event in stream.completed() if event["type"] not in CLOSING[:2]]
    out = list(scan_events(events, "END"))
    assert [(e["content_index"], e["delta"]) for e in out if "delta" in e] == [(0, "a "), (0, "E"), (1, "b "), (1, "E")]
    assert out[-2:] == events[-2:]


@pytest.mark.parametrize("closed", range(4))
def test_a_drained_stream_that_breaks_off_is_closed(closed: int) -> None:
    events = wire.responses(["one END"])[: -4 + closed]
    out = list(scan_events(events, "END", drain=True))
    assert kinds(out)[-5:] == kinds(wire.responses(["one END"]))[-5:]
    assert "END" not in repr(out).replace(NAMED, "")


def test_all_held_text_comes_when_the_stream_breaks_off() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0}
    stream = scan_events(
        [{**delta, "content_index": at, "delta": text} for at, text in ((0, "a E"), (1, "b EN"))], "END"
    )
    assert [next(stream)["delta"], stream.held] == ["a ", {0: "E"}]
    out = [next(stream), next(stream)]
    assert [(event["content_index"], event["delta"]) for event in out] == [(0, "E"), (1, "b ")]
    assert stream.held == {0: "EN"}
    assert [(event["content_index"], event["delta"]) for event in stream] == [(1, "EN")]
    assert stream.held == {}


@pytest.mark.parametrize("response", [None, {}, {"output": None}, {"output": []}])
def test_a_last_event_may_say_nothing_of_the_output(response: Any) -> None:
    *events, last = wire.responses(["one E"])
    last = {**last, "response": response}
    assert list(scan_events([*events, last], "END"))[-1] is last


def test_a_ping_passes_after_the_stop() -> None:
    events = wire.responses(["one END"])
    alive: list[dict[str, Any]] = [{"type": "keepalive"}]
    at = next(number for number, event in enumerate(events) if "END" in repr(event)) + 1
    later = {"type": "response.web_search_call.searching", "output_index": 7}
    out = list(scan_events([*events[:at], *alive, events[0], later, *events[at:]], "END", drain=True))
    assert out[at : at + 1] == alive
    assert kinds(out[at + 1 :]) == ["output_text.done", "content_part.done", "output_item.done", "completed"]


def test_deltas_without_text_pass_between_two_with_some() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0}  # without content_index, which may be left out
    for nothing in (delta, {**delta, "delta": None}, {**delta, "delta": ""}):
        stream = scan_events([{**delta, "delta": "one E"}, nothing, {**delta, "delta": "ND"}], "END")
        out = list(stream)
        assert out[:2] == [{**delta, "delta": "one "}, nothing]
        assert stream.matches[0].offset == 4
        assert out[-1]["response"]["output"][0]["content"][0]["text"] == "one "


def test_held_text_waits_while_another_text_closes() -> None:
    """Events of several items and parts may alternate, so the end of one text must not release the held text of another
    text."""
    stream = wire.ResponsesStream()
    stream.message(["a"], ["b"])
    stream.message(["c"])
    others = [event for event in stream.events if event["type"] in CLOSING]
    for place in ((0, 2), (2, 0), (1, 1)):
        where = {"type": "response.output_text.delta", "output_index": place[0], "content_index": place[1]}
        head, two = ({**where, "delta": text} for text in ("one E", "ND"))
        for other in others:
            own = other["type"] in CLOSING[2:] and other["output_index"] == place[0]
            if not own:
                opened = scan_events([head, other, two], "END")
                out = list(opened)
                assert [event.get("delta") for event in out[:3]] == ["one ", None, ""]
                assert out[1] is other
                assert opened.matches[0].offset == 4


def test_a_cut_part_and_item_keep_the_named_fields() -> None:
    events = answer(["one END"])
    added = next(event for event in events if event["type"] == "response.content_part.added")
    added["part"] = {**added["part"], "note": "n"}
    events[4]["item"].update(note="i", phase="final_answer")
    *_, part, item, completed = scan_events(events, "END")
    assert "note" not in str([part, item, completed])
    assert item["item"]["phase"] == "final_answer"
    assert completed["response"]["output"][-1] == item["item"]


@pytest.mark.parametrize("kind", ["created", "queued", "in_progress"])
def test_the_response_is_known_from_whichever_event_tells_it(kind: str) -> None:
    events = answer(["one END"])
    first = {**events[0], "type": f"response.{kind}"}
    rest = [event for event in events if event["type"] not in ("response.created", "response.in_progress")]
    last = list(scan_events([first, *rest], "END"))[-1]
    assert last["response"]["id"] == first["response"]["id"]


def test_annotations_beyond_the_stop_go_with_the_text() -> None:
    stream = wire.ResponsesStream()
    stream.message(["one [a] E", "ND [b]"])
    where = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    cites = [
        {"type": "url_citation", "start_index": b, "end_index": e, "url": "u", "title": "t"}
        for b, e in ((4, 7), (12, 15))
    ]
    number = next(n for n, event in enumerate(stream.events) if event["type"].endswith("text.delta"))
    for cite in cites:
        added = {"type": "response.output_text.annotation.added", "annotation_index": 0, "annotation": cite}
        stream.events.insert(number + 1, {**added, **where, "sequence_number": 99})
    stream.output[0]["content"][0]["annotations"] = cites
    for drain in (False, True):
        out = list(scan_events(stream.completed(), "END", drain=drain))
        assert out[-1]["response"]["output"][0]["content"][0]["annotations"] == cites[:1]


def test_refusals_are_not_scanned() -> None:
    stream = wire.ResponsesStream()
    refusal = {"type": "refusal", "refusal": "I END"}
    where = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    stream.add("response.output_item.added", output_index=0, item=wire.output_message([], "in_progress"))
    stream.add("response.content_part.added", **where, part={"type": "refusal", "refusal": ""})
    stream.add("response.refusal.delta", **where, delta="I END")
    stream.add("response.refusal.done", **where, refusal="I END")
    stream.add("response.content_part.done", **where, part=refusal)
    stream.output.append(wire.output_message([refusal]))
    stream.add("response.output_item.done", output_index=0, item=stream.output[0])
    events = stream.completed()
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]


def test_reasoning_text_is_not_scanned() -> None:
    events = answer(["one"])
    part = {"type": "reasoning_text", "text": "END"}
    where = {"item_id": "rs", "output_index": 0, "content_index": 0, "sequence_number": 0}
    events[2:2] = [
        {"type": "response.reasoning_text.delta", **where, "delta": "END"},
        {"type": "response.content_part.done", **where, "part": part},
    ]
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]


@pytest.mark.parametrize("skipped", range(4))
def test_a_made_delta_has_the_next_events_number(skipped: int) -> None:
    """`sequence_number` gives the order of the events. The API's events keep their numbers. A delta that the machine
    makes has the number of the API's event that follows it."""
    events = [event for event in answer(["a E"], ["b", " EN"], ["c E"]) if event["type"] not in CLOSING[:skipped]]
    events = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    error = {"type": "error", "message": "no", "sequence_number": len(events)}
    for drain in (False, True):
        for variant in ([*events, error], events, [*events[:-5], error], events[:-5]):
            out = list(scan_events(variant, "END", drain=drain))
            numbers = [event["sequence_number"] for event in out]
            assert len(numbers) > len(variant)
            assert numbers == sorted(numbers)
            assert {*numbers} >= {event["sequence_number"] for event in variant}
        numbers = [event["sequence_number"] for event in scan_events(events, ["END", "later"], drain=drain)]
        assert sorted(numbers) == numbers
        assert numbers[-1] > numbers[-2]


def test_closing_events_have_higher_numbers() -> None:
    stops = StopSet(["ENDING"], patterns=["E?ND$"])
    *_, delta, head, two, three, four = list(scan_events(wire.responses(["one ENDI", "END"]), stops))
    assert (delta["delta"], head["type"]) == ("ENDI", CLOSING[0])
    numbers = [event["sequence_number"] for event in (delta, head, two, three, four)]
    assert numbers == [*range(numbers[0], numbers[0] + 5)]


def test_the_numbers_stay_if_no_event_is_made() -> None:
    events = answer(["one", " E"], ["ND"])
    events = [{**event, "sequence_number": number // 2} for number, event in enumerate(events)]
    assert [id(event) for event in scan_events(events, "NEVER")] == [id(event) for event in events]
    for event in events:
        del event["sequence_number"]
    assert "sequence_number" not in repr(list(scan_events(events, "END")))
