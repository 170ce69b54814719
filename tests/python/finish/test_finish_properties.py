"""A dict or an object of any shape is read without an error, so that a strange payload cannot break a client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

from finish_harness import APIS, as_object, read, write
from finish_payloads import CASES
from finish_streams import STREAMS
from hypothesis import given
from hypothesis import strategies as st

from stopscan.finish import Finish
from stopscan.finish._words import WORDS

REAL = [payload for cases in CASES.values() for payload, _ in cases]
REAL += [event for stream in STREAMS.values() for event in stream.events]


def places(part: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """The path to each value inside a payload, as keys and indices."""
    names = part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    for name in names:
        yield (*path, name)
        yield from places(part[name], *path, name)


real = st.integers(0, len(REAL) - 1).map(lambda number: deepcopy(REAL[number]))
values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=3)
    | st.sampled_from([*WORDS, "null", "content_filter: X", "FINISH_MATCHED_TOKEN: 2"])
    | real
)
names = st.sampled_from(sorted({str(name) for payload in REAL for path in places(payload) for name in path}))
shapes = st.recursive(
    values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)


@st.composite
def payloads(draw: st.DrawFn) -> Any:
    """A real payload with random values in up to three places."""
    payload = draw(real)
    for _ in range(draw(st.integers(0, 3))):
        paths = list(places(payload))
        if paths:
            *above, name = draw(st.sampled_from(paths))
            part = payload
            for step in above:
                part = part[step]
            part[name] = draw(shapes | shapes.map(as_object))
    return payload


@given(payload=payloads() | st.dictionaries(names, shapes), objects=st.booleans())
def test_no_payload_raises_or_is_changed(payload: Any, objects: bool) -> None:
    for api in APIS:
        given = as_object(payload) if objects else payload
        before = repr(given)
        finish = read(api, given)
        assert repr(given) == before
        if finish is not None:
            assert finish.offset is None
            assert Finish(**json.loads(json.dumps(asdict(finish)))) == finish
            for other in APIS:
                assert read(other, write(other, finish)) is not None


@given(fields=st.dictionaries(names, shapes))
def test_dicts_and_objects_are_read_alike(fields: dict[str, Any]) -> None:
    for api in APIS:
        assert read(api, fields) == read(api, SimpleNamespace(**fields))
