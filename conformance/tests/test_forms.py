"""Whatever a server sends, the kit can judge its form, and does not raise an error."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needed import ABSENT, KINDS, NEEDED, PROBES
from sent import answered, data_of, each_api, each_way, edited, of_lines, paths

from stopscan_conformance.apis import APIS as BY_NAME
from stopscan_conformance.apis import Request
from stopscan_conformance.wire import Wire

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def broken(data: st.DataObject, value: Any) -> Any:
    """Returns a copy of a JSON value in which one part is removed, or replaced by another JSON value. `data` draws the
    part and the change."""
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


@each_way
@each_api
def test_each_key_takes_only_its_right_values(staged_url: str, name: str, stream: bool) -> None:
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
                assert not faults or needed.get(key) in ("fixed", "true", "1") or str(path[-1]) in faults
            last = max(at for at, there in holders.items() if path in there)
            one = [*lines[:last], without(lines[last], path), *lines[last + 1 :]]
            assert "absent" in accepted or [*BY_NAME[name].form(of_lines(wire, one), request)], (kind, key)
            assert accepted == KINDS[needed.pop(key, "anything")], (kind, key)
        assert needed == {}


def without(line: str, path: tuple[Any, ...]) -> str:
    return line.partition("{")[0] + json.dumps(edited(data_of(line), path, ABSENT))


@each_api
def test_an_answer_may_be_written_on_several_lines(staged_url: str, name: str) -> None:
    wire, request = answered(staged_url, name, False)
    text = json.dumps(wire.json(), indent=1)
    assert [*BY_NAME[name].form(of_lines(wire, [text]), request)] == []


@each_way
@each_api
@pytest.mark.parametrize("media", ["", "text/plain"])
def test_the_media_type_is_looked_at(staged_url: str, name: str, stream: bool, media: str) -> None:
    wire, request = answered(staged_url, name, stream)
    (fault,) = BY_NAME[name].form(Wire(200, media, wire.body), request)
    assert fault.startswith(f"the media type is {media or 'missing'}, not ")


@each_way
@each_api
@given(body=st.binary(max_size=60))
def test_form_of_noise(name: str, stream: bool, body: bytes) -> None:
    faults = list(BY_NAME[name].form(Wire(200, "", bytearray(body)), Request("[think]", stream)))
    assert faults
    assert len("; ".join(faults)) < 3000
