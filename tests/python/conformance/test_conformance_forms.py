"""The form of an answer is judged whatever a server sends: nothing that it sends raises."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import chain, count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needed import ABSENT, KINDS, NEEDED, PROBES

from stopscan.conformance import APIS, Server
from stopscan.conformance._answer import ask
from stopscan.conformance._apis import APIS as BY_NAME
from stopscan.conformance._apis import Request
from stopscan.conformance._wire import Wire

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PLAIN = [name for name in APIS if not name.startswith("harmony")]
each_api = pytest.mark.parametrize("name", PLAIN)
each_way = pytest.mark.parametrize("stream", [False, True])


@cache
def answered(url: str, name: str, stream: bool) -> tuple[Wire, Request]:
    request = Request("[think]", stream, {"stop": ["END"]})
    answer = asyncio.run(ask(Server(f"{url}/right", model="reciter"), BY_NAME[name], request))
    assert (answer.error, answer.faults) == (None, [])
    return answer.wire, request


def broken(data: st.DataObject, value: Any) -> Any:
    """The value with something in it that is not there, or is something else."""
    if isinstance(value, (dict, list)) and value and data.draw(st.booleans()):
        key = data.draw(st.sampled_from([*value] if isinstance(value, dict) else [*range(len(value))]))
        changed = value.copy()
        if data.draw(st.booleans()):
            changed[key] = broken(data, value[key])
        else:
            del changed[key]
        return changed
    return data.draw(JSON)


@each_way
@each_api
@settings(max_examples=150)
@given(data=st.data())
def test_form_of_anything(staged_url: str, name: str, stream: bool, data: st.DataObject) -> None:
    wire, request = answered(staged_url, name, stream)
    text = wire.text
    payloads = [line for line in text.splitlines() if "{" in line]
    line = data.draw(st.sampled_from(payloads))
    head, brace, body = line.partition("{")
    changed = head + json.dumps(broken(data, json.loads(brace + body)))
    other = Wire(200, wire.media_type, bytearray(text.replace(line, changed, 1).encode()))
    assert all(isinstance(fault, str) for fault in BY_NAME[name].form(other, request))


def of_lines(wire: Wire, lines: list[str]) -> Wire:
    return Wire(200, wire.media_type, bytearray("\n".join(lines).encode()))


def data_of(line: str) -> Any:
    """The JSON in a line, if there is any."""
    _, brace, rest = line.partition("{")
    return json.loads(brace + rest) if brace else ABSENT


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(value, dict):
            yield (*before, key)
        yield from paths(inner, (*before, key))


def edited(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    data = holder = deepcopy(data)
    for key in path[:-1]:
        holder = holder[key]
    if value is ABSENT:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return data


@each_way
@each_api
def test_each_key_is_held_to_what_it_has_to_be(staged_url: str, name: str, stream: bool) -> None:
    wire, request = answered(staged_url, name, stream)
    lines = wire.text.split("\n")
    known = {at: data for at, data in enumerate(map(data_of, lines)) if data is not ABSENT}
    for kind in NEEDED[name, stream]:
        holders = {at: {*paths(data)} for at, data in known.items() if not kind or data["type"] == kind}
        needed = {path: need for need, keys in NEEDED[name, stream][kind].items() for path in keys.split()}
        for path in {*chain.from_iterable(holders.values())}:
            key = ".".join(map(str, path))
            accepted = set()
            for label, value in PROBES.items():
                changed = [*lines]
                for at in (at for at, there in holders.items() if path in there):
                    changed[at] = lines[at].partition("{")[0] + json.dumps(edited(known[at], path, value))
                faults = "; ".join(BY_NAME[name].form(of_lines(wire, changed), request))
                accepted |= set() if faults else {label}
                assert not faults or needed.get(key) == "fixed" or str(path[-1]) in faults
            assert accepted == KINDS[needed.pop(key, "anything")], (kind, key)
        assert needed == {}


def kind_of(event: str) -> str:
    data = data_of(event)
    if data is ABSENT or "type" in data:
        return event.strip() if data is ABSENT else str(data["type"])
    if "usage" in data:
        return "usage"
    ended = data.get("done") or '"finish_reason": "' in event or '"finish_reason": {' in event
    return "end" if ended else "role" if '"role": "assistant", "content": ""}, "f' in event else "text"


# The events that may be missing, come twice, or come after the next; the texts' are for other promises.
RESPONSES = {f"response.{kind}" for kind in ("content_part.added", "content_part.done", "in_progress", "created")}
RESPONSES |= {f"response.{kind}_text.done" for kind in ("output", "reasoning")}
FREE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "openai-chat": ({"text"}, {"role", "text", "data: [DONE]"}, {"text"}),
    "openai-completions": ({"text"}, {"text", "data: [DONE]"}, {"text"}),
    "openai-responses": ({"response.in_progress"}, RESPONSES, {"response.in_progress"}),
    "anthropic": (
        {"ping", "content_block_delta"},
        {"ping", "content_block_delta"},
        {"ping", "content_block_start", "content_block_delta"},
    ),
    "ollama-chat": ({"text"}, {"text"}, {"text"}),
    "ollama-generate": ({"text"}, {"text"}, {"text"}),
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
        assert kind in late or swapped == events or not free(swapped), (at, kind)


@each_way
@each_api
@given(body=st.binary(max_size=60))
def test_form_of_noise(name: str, stream: bool, body: bytes) -> None:
    faults = list(BY_NAME[name].form(Wire(200, "", bytearray(body)), Request("[think]", stream)))
    assert faults
    assert len("; ".join(faults)) < 3000


def test_events_end_lines_as_the_standard_says() -> None:
    wire = Wire(200, "", bytearray("data: 1\r\rdata: 2\r\n\r\n: no\ndata:3\ndata: 4\u2028\n\ndata: 5\n".encode()))
    assert [event.data for event in wire.events()] == [1, 2, "3\n4\u2028"]
