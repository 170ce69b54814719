"""The form of an answer is judged whatever a server sends: nothing that it sends raises."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    if (name, stream) not in KNOWN:
        KNOWN[name, stream] = answered(staged_url, name, stream)
    wire, request = KNOWN[name, stream]
    text = wire.text
    payloads = [line for line in text.splitlines() if "{" in line]
    line = data.draw(st.sampled_from(payloads))
    head, brace, body = line.partition("{")
    changed = head + json.dumps(broken(data, json.loads(brace + body)))
    other = Wire(200, wire.media_type, bytearray(text.replace(line, changed, 1).encode()))
    assert all(isinstance(fault, str) for fault in BY_NAME[name].form(other, request))


KNOWN: dict[tuple[str, bool], tuple[Wire, Request]] = {}


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
