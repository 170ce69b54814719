"""Answers of the right staged server, and functions that change something in them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from needed import ABSENT

from stopscan_conformance import APIS, Server
from stopscan_conformance.apis import APIS as BY_NAME
from stopscan_conformance.apis import Request
from stopscan_conformance.client import ask
from stopscan_conformance.wire import Wire

# `openai-responses` is left out, because `responses-with-stop` is the same route, and also takes stops.
PLAIN = [name for name in APIS if name != "openai-responses"]
each_api = pytest.mark.parametrize("name", PLAIN)
each_way = pytest.mark.parametrize("stream", [False, True])


@cache
def answered(url: str, name: str, stream: bool) -> tuple[Wire, Request]:
    request = Request("[think]", stream, {"stop": ["END"]})
    answer = asyncio.run(ask(Server(f"{url}/right", model="reciter"), BY_NAME[name], request))
    assert (answer.error, answer.faults) == (None, [])
    return answer.wire, request


def of_lines(wire: Wire, lines: list[str]) -> Wire:
    return Wire(200, wire.media_type, bytearray("\n".join(lines).encode()))


def data_of(line: str) -> Any:
    """Returns the JSON object in a line of a stream, or ABSENT if the line has none."""
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
