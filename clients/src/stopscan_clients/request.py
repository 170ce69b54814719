"""Reads the stops of a request, and makes the body that is sent on to the server."""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import stopscan.engines
from stopscan import StopSet
from stopscan.engines import Defaults, read_options
from stopscan.regions.shared import NAMES, read_protect, start_region
from stopscan_clients.apis import CHAT, GEMINI, OLLAMA, TABLE, camel
from stopscan_clients.body import Plan
from stopscan_clients.framing import LIMIT, dumps
from stopscan_clients.machine import ScanOptions
from stopscan_clients.native import LIMITS, native_stops
from stopscan_clients.paths import dotted, get, items, put, without
from stopscan_clients.wire_format import WireFormat

# For each API: a pattern for the paths of its requests. The path of a request tells which field has the stops, and what
# an error must look like. It does not tell the form of the answer, because the answer itself shows its form.
ROUTES = [(re.compile(row.path), row) for row in TABLE if row.path]
STREAM_PATHS = re.compile(r"(:stream\w+|[-_]stream)$")
SIGNED = ("x-amz-date", "x-amz-content-sha256", "digest", "content-digest", "signature")
# The fields of the object `stopscan` in a request. ``read_options``, which the adapters for engines also use, reads the
# fields in `OPTIONS`. The fields in `REGIONS` are read in this file, because a request may define regions here.
OPTIONS = ("patterns", "visible_patterns", "max_held", "include_stop", "start_protected", "repeat")
REGIONS = ("regions", "stop_in", "protect")
OF_TOKENS = ("stopscan.stop_token_ids", "stopscan.min_tokens")
# Fields of vLLM and sglang that say whether the stop stays in the text. They are also sent on to the server.
KEEPS_STOP = ("include_stop_str_in_output", "no_stop_trim")
COUNTS = {dotted(path) for _, api in ROUTES for path in api.choices}
# JSON of many small values takes 30 times its size in memory, so the values are counted before it is parsed.
SEPARATORS, MOST_VALUES = (b",", b"[", b"{"), 2_000_000
# However JSON spells the key "stopscan", the body contains one of these: the plain key, the beginning of an escape, or
# a zero byte of UTF-16.
MARKS = (b'"stopscan"', b"\\u00", b"\0")


@dataclass(frozen=True)
class Limits(stopscan.engines.Limits):
    body: int = LIMIT  # bytes, after decompression


NO_LIMITS = Limits(*[sys.maxsize] * 4)


class TooLargeError(Exception):
    """The request would cost too much to read. The answer is a 413."""


def values_in(content: bytes) -> int:
    """Returns about how many values the JSON has, without parsing it. Counts the separators, even if they are in
    strings."""
    return sum(map(content.count, SEPARATORS))


def route_of(method: str, path: str) -> WireFormat | None:
    """Returns the ``WireFormat`` of the API that takes requests at this path, or ``None`` if no API does. Only a POST
    has stops, so the result for any other method is ``None``."""
    return next((api for route, api in ROUTES if route.search(path)), None) if method == "POST" else None


def is_signed(headers: Mapping[str, str]) -> bool:
    """Returns whether the request is signed. A signed request cannot be changed: its signature would be wrong then."""
    return any(name in headers for name in SIGNED)


def plan_of(
    method: str,
    path: str,
    headers: Mapping[str, str],
    content: bytes,
    own: ScanOptions,
    api: str | None,
    limits: Limits,
) -> Plan:
    """Returns how the answer to a request is cut, and the body to send on. The only stops in that body are those that a
    server of ``api`` can find itself. ``own`` are the options of the transport.

    All arguments and the result can be pickled: the proxy reads long bodies in another process.

    Raises ``TooLargeError``, or ``ValueError`` or ``TypeError`` if the body cannot be read, or if its stops or options
    are wrong or exceed the ``limits``. The messages are for the client.
    """
    route = route_of(method, path)
    streamed = STREAM_PATHS.search(path) is not None
    body = _body_of(route, headers, content, len(own.stops) > 0, limits.body)
    if not isinstance(body, dict):
        return Plan(own, streamed)
    streamed = streamed or bool(body.get("stream", route is OLLAMA))
    body = in_camel_case(body) if route is GEMINI else body
    own = replace(own, choices=choices_in(body))
    if route is None and "stopscan" not in body:
        return Plan(own, streamed)
    field = route.stops if route is not None else "stop"
    options = _options(own, field, body, limits)
    plan = Plan(options, streamed, get(body, *dotted(field)) is not None or "stopscan" in body)
    if is_signed(headers) or not (len(options.stops) or "stopscan" in body):
        return plan
    bare = sent = without_stops(body, dotted(field))
    if route is not None and not streamed:
        # A server removes the stop from the text, and looks for stops from the first token on. So the server gets no
        # stops if a stop must stay in the text, or if stops must be ignored in the first tokens (`min_tokens`).
        here = options.include_stop or options.min_tokens or options.stops.visible
        limits_as = next(name for name in (api, route.limits, route.name, "none") if name in LIMITS)
        native = [] if here else native_stops(limits_as, options.stops)[0]
        if native:
            sent = put(bare, native, *dotted(field))
        elif options.min_tokens and route is CHAT and not _has_logprobs(body):
            # Logprobs show where the first `min_tokens` tokens end, so the server is asked for them. The client did not
            # ask for them, so they are removed from the answer.
            sent = {**bare, "logprobs": 0 if "prompt" in body else True}
            plan = replace(plan, options=replace(options, hides_tokens=True))
    return replace(plan, body=dumps(sent), bare=None if sent is bare else dumps(bare))


def _body_of(route: WireFormat | None, headers: Mapping[str, str], content: bytes, has_stops: bool, most: int) -> Any:
    """Returns the parsed body of a request. Returns ``None`` if the body is not JSON. Also returns ``None``, without
    parsing, if the path is unknown, the body has no object ``stopscan``, and the transport has no stops.

    Raises ``ValueError`` if the body should be JSON but cannot be read. Its stops cannot be removed, so it must not
    reach the server.
    """
    try:
        content = _decompressed(content, headers.get("content-encoding", ""), most)
        if route is None and not has_stops and not any(mark in content for mark in MARKS):
            return None
        if values_in(content) > MOST_VALUES:
            raise TooLargeError(f"the request has more than {MOST_VALUES:,} values")
        return json.loads(content) if content else None
    except (RecursionError, ValueError) as error:
        if route is None or not ("json" in headers.get("content-type", "") or b'"stopscan"' in content):
            return None
        raise ValueError(f"the body of the request cannot be read: {error}") from None


def _decompressed(content: bytes, encodings: str, most: int) -> bytes:
    """Returns the content of a request without its compression (gzip, deflate). Raises ``TooLargeError`` if the result
    has more than ``most`` bytes, and ``ValueError`` for any other encoding."""
    for encoding in reversed(re.findall(r"[^\s,]+", encodings.lower())):
        if encoding not in ("gzip", "x-gzip", "deflate", "identity"):
            raise ValueError(f"the content-encoding {encoding!r} is not known")
        content = content if encoding == "identity" else _inflated(content, most)
    return content


def _inflated(content: bytes, most: int) -> bytes:
    for bits in (47, -15):  # first as gzip or zlib, then as deflate without a header, which some clients send
        inflating = zlib.decompressobj(bits)
        with suppress(zlib.error):
            out = inflating.decompress(content, most + 1)
            if len(out) > most:
                raise TooLargeError(f"the request is longer than {most:,} bytes")
            if inflating.eof and not inflating.unused_data:
                return out
    raise ValueError("it is not what its content-encoding says")


def without_stops(body: Any, at: tuple[Any, ...]) -> Any:
    """Returns a request without its stops, which are at the path ``at``, and without the object ``stopscan``."""
    rest = without(without(body, "stopscan"), *at)
    if len(at) > 1 and get(rest, at[0]) == {}:  # it had only the stops
        return without(rest, at[0])
    return rest


def _has_logprobs(body: Any) -> bool:
    return body.get("logprobs") is not None and body["logprobs"] is not False


def choices_in(body: Any) -> int:
    """Returns how many choices a request wants."""
    count = next((n for n in (get(body, *path) for path in COUNTS) if type(n) is int and n > 0), 1)
    prompt = items(get(body, "prompt"))
    return count * (len(prompt) if prompt and isinstance(prompt[0], str | list) else 1)


def echoed_in(body: Any) -> tuple[int, ...]:
    """Returns the lengths of a request's prompts if the choices of the answer will repeat them (``echo``), otherwise
    ``()``."""
    if not get(body, "echo"):
        return ()
    prompts = prompt if isinstance(prompt := get(body, "prompt"), list) else [prompt]
    if not all(isinstance(prompt, str) for prompt in prompts):
        raise ValueError("echo with stops needs a prompt of text: the length of a prompt of token ids is unknown")
    return (*map(len, prompts),)


def in_camel_case(body: Any) -> Any:
    """Returns a request to Gemini with the keys of its configuration in camel case. Gemini also accepts the snake case
    of its protocol buffers."""
    config = get(body, "generationConfig") or get(body, "generation_config")
    if not isinstance(config, dict):
        return body
    spelled = {camel(name): value for name, value in config.items()}
    return {**without(body, "generation_config"), "generationConfig": spelled}


def _options(own: ScanOptions, field: str, body: Any, limits: Limits) -> ScanOptions:
    """Returns the options by which the answer is cut: those of the transport (``own``) together with those of the
    request. ``field`` is the path of the request's stops."""
    given = _stopscan_of(body, limits)
    stop = get(body, *dotted(field))
    has_stops = stop is not None or bool(given)
    if not (has_stops or len(own.stops)):
        return own
    keeps_stop = {name: body[name] for name in KEEPS_STOP if body.get(name) is not None}
    if "stopscan.include_stop" in given:  # wins
        keeps_stop = {"include_stop": given["stopscan.include_stop"]}
    graph = {name: given.pop(f"stopscan.{name}", None) for name in REGIONS}
    given.setdefault("stopscan.max_held", own.stops.max_held)
    defaults = Defaults(repeat=own.stops.repeat, limits=limits)
    known = (*OPTIONS, *REGIONS)  # with `REGIONS`, because an error about an unknown field lists all fields
    try:
        others = {"stop": stop, "min_tokens": body.get("min_tokens"), **keeps_stop}
        # Without protected regions, `read_options` would refuse `start_protected`. It does not see the regions of the
        # request, so it gets the usual names as `default`. `start_region` below checks the option again, against the
        # regions of the set.
        read: Any = read_options(given, defaults, default=NAMES, prefix="stopscan.", fields=known, own=others)
    except ValueError as error:
        raise ValueError(re.sub(r"^stop\b(?!\.)", field, str(error))) from None
    stops = _merged(own.stops, read.stops, limits, **graph) if has_stops else own.stops
    options = replace(
        own,
        stops=stops,
        include_stop=read.include_stop if keeps_stop else own.include_stop,
        min_tokens=read.min_tokens,
        begin=own.begin if read.start_protected is None else {"region": start_region(stops, "", read.start_protected)},
        echoed=echoed_in(body) if len(stops) else (),
    )
    options.scanner()  # made only to raise an error for a wrong region before the stream begins
    return options


def _stopscan_of(body: Any, limits: Limits) -> dict[str, Any]:
    """Returns the options in the object ``stopscan`` of a request, with their full names, such as
    ``stopscan.patterns``."""
    given = body.get("stopscan")
    if not isinstance(given, dict | None):
        raise TypeError(f"stopscan must be an object, not {type(given).__name__}")
    # An object `stopscan` may fill the whole body of a request. If it is much too long, it is refused before its
    # options are read. JSON may write a byte of text with six characters. So this limit is higher than the exact
    # limits, which are checked afterwards.
    sizes = accumulate(map(len, json.JSONEncoder().iterencode(given)))
    if any(size > 8 * limits.bytes for size in sizes):
        raise ValueError(f"stopscan has more than {8 * limits.bytes:,} bytes")
    options = {f"stopscan.{name}": value for name, value in (given or {}).items() if value is not None}
    tokens = [name for name in OF_TOKENS if name in options]
    if tokens:
        raise ValueError(f"{tokens[0]} works on tokens, which only the server sees: use the server's own field")
    return options


def _merged(own: StopSet, new: StopSet, limits: Limits, regions: Any, stop_in: Any, protect: Any) -> StopSet:
    """Returns the stops of the transport (``own``) and of the request (``new``) together. If both have the same option,
    the option of the request is used."""
    graph: Any = regions or own.regions or {}
    states = graph if isinstance(graph, Mapping) else {}  # `StopSet` raises for anything else
    known = list(dict.fromkeys(state.partition("/")[0] for state in states))
    names, pairs = read_protect(protect or [], (*NAMES, *known))
    for name in names:
        if name not in known:
            raise ValueError(f"stopscan.protect: unknown region {name!r}; give pairs of markers, or stopscan.regions")
    if names and (stop_in is not None or pairs):
        raise ValueError("stopscan.protect can name regions only without pairs of markers and without stopscan.stop_in")
    count, size = len(states if regions else ()) + len(pairs), len(json.dumps([regions, pairs]))
    if count > limits.regions:
        raise ValueError(f"stopscan.regions and stopscan.protect have {count} regions; the limit is {limits.regions}")
    if size > limits.bytes:
        raise ValueError(f"stopscan.regions and stopscan.protect have {size} bytes; the limit is {limits.bytes}")
    if names:
        regions, stop_in = graph, [name for name in known if name not in names]
    elif regions is None and protect is None:
        regions, pairs, stop_in = own.regions, [*own.protect], own.stop_in if stop_in is None else stop_in
    return StopSet(
        [*own.stop, *(stop for stop in new.stop if stop not in own.visible)],
        patterns=[*own.patterns, *(pattern for pattern in new.patterns if pattern not in own.visible_patterns)],
        visible=own.visible,
        visible_patterns=[
            *own.visible_patterns,
            *(pattern for pattern in new.visible_patterns if pattern not in own.patterns),
        ],
        regions=regions,
        protect=pairs or None,
        stop_in=stop_in,
        max_held=new.max_held,
        repeat=new.repeat,
    )


def error_body(route: WireFormat | None, message: str, status: int = 400) -> dict[str, Any]:
    """Returns an error in the form of the request's API. If the API is unknown, the form is OpenAI's."""
    wrong = status < 500  # the request is at fault, not a server
    kind, code = ("invalid_request_error", "INVALID_ARGUMENT") if wrong else ("server_error", "UNAVAILABLE")
    forms: dict[str, dict[str, Any]] = {
        "anthropic": {"type": "error", "error": {"type": kind if wrong else "api_error", "message": message}},
        "gemini": {"error": {"code": status, "message": message, "status": code}},
        "bedrock": {"message": message},
        "ollama": {"error": message},
    }
    openai = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return openai if route is None else forms.get(route.errors or route.name, openai)
