"""What the kit reports about the events of a stream: the keys that each must have, and the order in which they come."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from needed import ABSENT
from sent import answered, data_of, each_api, edited, of_lines, paths

from stopscan_conformance.apis import APIS as BY_NAME
from stopscan_conformance.wire import Wire


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("openai-chat", "id model"),
        ("openai-completions", "id model"),
        ("responses-with-stop", "response.id response.model"),
        ("ollama-chat", "model"),
        ("ollama-generate", "model"),
        ("generate", "meta_info.id meta_info.prompt_tokens"),
    ],
)
def test_what_all_events_have_stays_the_same(staged_url: str, name: str, keys: str) -> None:
    wire, request = answered(staged_url, name, True)
    for key in keys.split():
        path = tuple(key.split("."))
        lines = wire.text.split("\n")
        at = max(at for at, line in enumerate(lines) if f'"{path[-1]}": ' in line and path in paths(data_of(line)))
        lines[at] = lines[at].partition("{")[0] + json.dumps(edited(data_of(lines[at]), path, 5))
        said = "; ".join(BY_NAME[name].form(of_lines(wire, lines), request))
        assert f"the stream changes its {path[-1]} from " in said, key


@pytest.mark.parametrize(
    ("name", "line", "path", "value", "said"),
    [
        ("openai-chat", '"content": "It"', "choices.0.delta.role", "assistant", None),
        ("openai-chat", '"content": "It"', "choices.0.delta.role", None, None),
        ("openai-chat", '"content": "It"', "choices.0.delta.role", "user", "'user' as role"),
        ("openai-chat", '"role"', "choices.0.delta.role", "user", "'user' as role"),
        ("openai-chat", '"content": "It"', "choices.0.delta", 5, "5 as delta"),
        ("openai-completions", '"text": "It"', "choices.0.finish_reason", "stop", "2 finish reasons"),
        ("openai-completions", '"text": "It"', "usage", None, None),
        ("openai-completions", '"text": "It"', "choices.1", {}, "lacks the key index"),
        ("responses-with-stop", '"type": "response.output_text.delta"', "type", "response.reasoning_text.delta",
         "reasoning_text.delta in a part of output_text"),
        ("responses-with-stop", '"type": "response.completed"', "type", "response.incomplete",
         "response.incomplete has completed as status"),
        ("responses-with-stop", '"type": "response.completed"', "response.output.1.content.0.text", "It",
         "other items"),
        ("responses-with-stop", '"type": "response.completed"', "response.output.1.id", "It", "other items"),
        ("responses-with-stop", '"type": "response.completed"', "response.status", "incomplete", "incomplete_details"),
        ("responses-with-stop", '"type": "response.output_item.done"', "item.id", "It", "another id"),
        ("responses-with-stop", '"type": "response.created"', "response.status", "queued", None),
        ("responses-with-stop", '"type": "response.in_progress"', "type", "response.completed", "ends twice"),
        ("responses-with-stop", '"type": "response.in_progress"', "type", "response.queued", "is named"),
        ("responses-with-stop", '"type": "response.in_progress"', "sequence_number", 2, "event 1 has 2"),
        ("anthropic", '"type": "content_block_stop"', "index", 7, "content_block_stop of block 7 in block "),
        ("anthropic", '"type": "text_delta"', "index", 7, "content_block_delta of block 7 in block 1"),
        ("anthropic", '"type": "text_delta"', "delta", {"type": "thinking_delta", "thinking": "so"},
         "thinking_delta in a block of text"),
        ("anthropic", '"type": "thinking_delta"', "delta", {"type": "signature_delta", "signature": "so"}, None),
        ("anthropic", '"type": "ping"', "type", "usage", "an event of the type usage"),
        ("anthropic", '"type": "message_start"', "message.content", [{}], "begins with content"),
        ("anthropic", '"type": "message_delta"', "type", "message_stop", "message_delta comes 0 times, not once"),
        ("ollama-chat", '"done": true', "done", False, "[]"),
        ("ollama-chat", '"content": "It"', "done", True, "[6, 12]"),
        ("ollama-chat", '"content": "It"', "done_reason", "stop", None),
        ("generate", '"type": "stop"', "text", "Is", "is missing in the next event"),
        ("generate", "It is 5 or", "meta_info.finish_reason", {"type": "stop"}, "[11, 14]"),
        ("generate", "It is 5 or", "meta_info.finish_reason", {}, None),
    ],
)  # fmt: skip
def test_one_event_is_wrong(staged_url: str, name: str, line: str, path: str, value: Any, said: str | None) -> None:
    wire, request = answered(staged_url, name, True)
    lines = wire.text.split("\n")
    at = next(at for at, one in enumerate(lines) if line in one)
    keys = tuple(int(key) if key.isdecimal() else key for key in path.split("."))
    holder = data = deepcopy(data_of(lines[at]))
    for key in keys[:-1]:
        holder = holder[key]
    holder[slice(1, 2) if keys[-1] == 1 else keys[-1]] = [value] if keys[-1] == 1 else value
    lines[at] = lines[at].partition("{")[0] + json.dumps(data)
    faults = [*BY_NAME[name].form(of_lines(wire, lines), request)]
    assert faults == [] if said is None else said in "; ".join(faults)


@pytest.mark.parametrize(
    ("name", "event", "said"),
    [
        ("responses-with-stop", "data: [DONE]", None),
        ("responses-with-stop", "data: 5", "an event has the data 5"),
        ("responses-with-stop", "data: no", "an event has the data 'no'"),
        ("anthropic", "data: 5", "an event has the data 5"),
        ("openai-chat", "data: 5", "a chunk is 5, not an object"),
        ("openai-completions", "data: no", "a chunk is 'no', not an object"),
        ("ollama-chat", "5", "a line is 5, not an object"),
        ("generate", "data: 5", "an answer is 5, not an object"),
    ],
)
def test_a_value_that_is_no_object_is_reported_once(staged_url: str, name: str, event: str, said: str | None) -> None:
    wire, request = answered(staged_url, name, True)
    end = "\n\n" if "data:" in wire.text else "\n"
    text = wire.text.replace(end, f"{end}{event}{end}", 1)
    assert [*BY_NAME[name].form(of_lines(wire, [text]), request)] == ([] if said is None else [said])
    cut = text.rpartition(event)[0] + event + end
    assert len([*BY_NAME[name].form(of_lines(wire, [cut]), request)]) > (said is not None)


@pytest.mark.parametrize(
    ("name", "kind"), [("responses-with-stop", "response.output_text.delta"), ("anthropic", "ping")]
)
def test_an_event_has_the_name_of_its_type(staged_url: str, name: str, kind: str) -> None:
    wire, request = answered(staged_url, name, True)
    for line, named in (("event: other\n", "other"), ("", "None")):
        text = wire.text.replace(f"event: {kind}\n", line, 1)
        faults = [*BY_NAME[name].form(of_lines(wire, [text]), request)]
        assert faults == [f"the event {kind} is named {named}"]


@pytest.mark.parametrize("name", ["openai-chat", "openai-completions"])
def test_usage_comes_only_if_requested(staged_url: str, name: str) -> None:
    wire, request = answered(staged_url, name, True)
    (fault,) = BY_NAME[name].form(wire, replace(request, usage=False))
    assert "no usage was asked for" in fault
    events = [event for event in wire.text.split("\n\n") if '"choices": []' not in event]
    bare = Wire(200, wire.media_type, bytearray("\n\n".join(events).encode()))
    assert [*BY_NAME[name].form(bare, replace(request, usage=False))] == []
    (fault,) = BY_NAME[name].form(bare, request)
    assert "the usage does not come once" in fault


def kind_of(event: str) -> str:
    data = data_of(event)
    if data is ABSENT or "type" in data:
        return event.strip() if data is ABSENT else str(data["type"])
    if "usage" in data:
        return "usage"
    ended = data.get("done") or '"finish_reason": "' in event or '"finish_reason": {' in event
    return "end" if ended else "role" if '"role": "assistant", "content": ""}, "f' in event else "text"


# The kit's check of the form accepts these changes to a correct stream of each API. The first set has the kinds of
# events that may be missing, the second set the kinds that may come twice, and the third set the pairs whose order may
# change. If a change makes the text wrong, other rules report it.
RESPONSES = {f"response.{kind}" for kind in ("content_part.added", "content_part.done", "in_progress", "created")}
RESPONSES |= {f"response.{kind}_text.done" for kind in ("output", "reasoning")}
FREE: dict[str, tuple[set[str], set[str], set[tuple[str, ...]]]] = {
    "openai-chat": ({"text"}, {"role", "text", "data: [DONE]"}, set()),
    "openai-completions": ({"text"}, {"text", "data: [DONE]"}, set()),
    "responses-with-stop": (
        {"response.in_progress"},
        RESPONSES,
        {("response.in_progress", "response.output_item.added")},
    ),
    "anthropic": (
        {"ping", "content_block_delta"},
        {"ping", "content_block_delta"},
        {("ping", "content_block_delta"), ("content_block_start", "ping")},
    ),
    "ollama-chat": ({"text"}, {"text"}, set()),
    "ollama-generate": ({"text"}, {"text"}, set()),
    "generate": ({"text"}, {"text"}, set()),
}


@each_api
def test_no_event_is_missing_or_twice_or_too_late(staged_url: str, name: str) -> None:
    wire, request = answered(staged_url, name, True)
    end = "\n\n" if "data:" in wire.text else "\n"
    events = wire.text.split(end)[:-1]

    def free(changed: list[str]) -> bool:
        numbers = count()
        text = re.sub(r'(?<="sequence_number": )\d+', lambda _: str(next(numbers)), end.join([*changed, ""]))
        return not [*BY_NAME[name].form(of_lines(wire, [text]), request)]

    kinds = [kind_of(event) for event in events]
    missing, twice, late = FREE[name]
    for at, kind in enumerate(kinds):
        assert kind in missing or not free([*events[:at], *events[at + 1 :]]), (at, kind)
        assert kind in twice or not free([*events[: at + 1], *events[at:]]), (at, kind)
        swapped = [*events[:at], *events[at + 1 : at + 2], events[at], *events[at + 2 :]]
        two = tuple(kinds[at : at + 2])
        assert two in late or len({*two}) < 2 or not free(swapped), (at, two)
