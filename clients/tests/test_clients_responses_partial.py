"""Streams of Responses in which something is missing: the beginning of the stream, or the indexes of events."""

from __future__ import annotations

from events import field
from responses_events import CLOSING, answer, kinds, llama_cpp

from stopscan_clients import scan_events


def test_the_rest_of_a_stream_that_was_broken_off() -> None:
    """A stream that is resumed with `starting_after` has no `response.created`, and the first deltas are missing."""
    rest = answer(["one ", "two E", "ND three"])[-12:]
    assert kinds(rest)[0] == "output_text.delta"
    stream = scan_events(rest, "END")
    out = list(stream)
    assert [field(e, "type").removeprefix("response.") for e in out[-4:]] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    response = field(out[-1], "response")
    assert [field(response, name) for name in ("object", "status")] == ["response", "completed"]
    assert field(response, "usage", "total_tokens") == 0  # not null: clients such as Vercel's need a number
    item = field(response, "output", 0)
    assert [field(item, name) for name in ("type", "role", "status")] == ["message", "assistant", "completed"]
    assert field(item, "id") == field(rest[0], "item_id") == field(out[-4], "item_id") == field(out[-3], "item_id")
    part = field(item, "content", 0)
    assert [field(part, name) for name in ("type", "text", "annotations")] == ["output_text", "two ", []]
    assert [field(event, "output_index") for event in out[-4:-1]] == [1, 1, 1]
    assert [field(event, "content_index") for event in out[-4:-1]] == [0, 0, None]


def test_llama_cpp_20607_events_that_say_no_index() -> None:
    closing = ["output_text.done", "content_part.done", "output_item.done", "completed"]
    for drain in (False, True):
        stream = scan_events(llama_cpp("one E", "ND two", "three"), "END", drain=drain)
        out = list(stream)
        assert stream.matches[0].offset == 4
        deltas = [field(event, "delta") for event in out if field(event, "type") == "response.output_text.delta"]
        assert deltas == ["one ", ""]
        assert kinds(out)[:5] == kinds(llama_cpp())[:5]
        assert [kind for kind in kinds(out)[7:] if kind in closing][-4:] == closing
        assert len(out) == 11, "the call is not there"
        items = [field(out[-2], "item"), field(out[-1], "response", "output", 1)]
        assert [field(item, "id") for item in items] == ["msg_1", "msg_1"]
        assert [field(item, "content", 0, "text") for item in items] == ["one ", "one "]
        assert len(field(out[-1], "response", "output")) == 2
    events = llama_cpp("one E", "N")
    out = list(scan_events(events, "END"))
    assert [field(event, "delta") for event in out if not any(event is source for source in events)] == [
        "one ",
        "",
        "EN",
    ]
    assert kinds(out)[-5:] == [*closing[:3], "output_item.done", "completed"]
    assert "output_text.delta" not in kinds(out)[kinds(out).index("function_call_arguments.delta") :]


def test_text_without_a_place_is_of_the_last_item() -> None:
    events = [event | {"item_id": None} for event in llama_cpp("one E", "ND two", "three")]
    reasoning_done = next(event for event in events if event["type"] == CLOSING[2])
    events = [event for event in events if "fc_1" not in repr(event.get("item")) and event is not reasoning_done]
    for begin in (0, 2, 4):
        for drain in (False, True):
            out = list(scan_events(events[begin:], "END", drain=drain))
            assert kinds(out)[-4:] == [kind.removeprefix("response.") for kind in (*CLOSING, "response.completed")]
            assert "two" not in repr(out)
            assert "three" not in repr(out)
            assert field(out[-1], "response", "output", -1, "content", 0, "text") == "one "


def test_held_text_does_not_pass_an_earlier_stop() -> None:
    rest = answer(["one END two", " E"])
    rest = rest[next(number for number, event in enumerate(rest) if event.get("delta") == " E") :]
    out = list(scan_events(rest, "END"))
    assert kinds(out) == ["output_text.delta", "output_text.done", "content_part.done", "output_item.done", "completed"]
    assert (out[0]["delta"], out[1]["text"]) == (" ", "one ")
