"""The form of an answer is judged whatever a server sends: nothing that it sends raises."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import chain
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


def lines_of(wire: Wire) -> list[tuple[str, Any]]:
    """Its lines: what is before the JSON, and that, if there is any."""
    split = [line.partition("{") for line in wire.text.split("\n")]
    return [(head, json.loads(brace + rest) if brace else ABSENT) for head, brace, rest in split]


def written(wire: Wire, lines: list[tuple[str, Any]]) -> Wire:
    text = "\n".join(head + ("" if data is ABSENT else json.dumps(data)) for head, data in lines)
    return Wire(200, wire.media_type, bytearray(text.encode()))


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
    lines = lines_of(wire)
    typed = {data.get("type", "") if stream and data is not ABSENT else "" for _, data in lines}
    for kind in sorted(typed - {""} or typed):
        holders = {at: {*paths(data)} for at, (_, data) in enumerate(lines) if of(kind, data)}
        needed = {path: need for need, keys in NEEDED[name, stream][kind].items() for path in keys.split()}
        for path in {*chain.from_iterable(holders.values())}:
            key = ".".join(map(str, path))
            accepted = set()
            for label, value in PROBES.items():
                other = list(lines)
                for at, there in holders.items():
                    if path in there:
                        other[at] = (lines[at][0], edited(lines[at][1], path, value))
                faults = list(BY_NAME[name].form(written(wire, other), request))
                accepted |= set() if faults else {label}
                assert not faults or needed.get(key) == "fixed" or str(path[-1]) in "; ".join(faults)
            assert accepted == KINDS[needed.pop(key, "anything")], (kind, key)
        assert needed == {}


def of(kind: str, data: Any) -> bool:
    return data is not ABSENT and (not kind or data.get("type") == kind)


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
