"""Reads the stops of a request, and makes the body that is sent on to the server."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from stopscan import StopSet
from stopscan.engines import Defaults, Limits, read_options
from stopscan.regions import NAMES, begins, read_protect
from stopscan_clients.api import Api
from stopscan_clients.body import Asked, loads
from stopscan_clients.framing import dumps
from stopscan_clients.machine import Options
from stopscan_clients.native import native_stops
from stopscan_clients.paths import dotted, get, items, put, without
from stopscan_clients.rows import ANTHROPIC, BEDROCK, CHAT, COHERE, GEMINI, LLAMA, OLLAMA, RESPONSES, camel

# The API for each path of a request. The API gives the field of the stops and the form of errors, but not the form of
# the answer, which is recognized in the answer itself.
ROUTES: list[tuple[re.Pattern[str], Api]] = [
    (re.compile(path), api)
    for path, api in (
        (r"/completions/?$", CHAT),  # chat, text, fim, agents
        (r"/responses/?$", RESPONSES),
        (r"^(?!.*/threads/).*/messages/?$", ANTHROPIC),
        (r":(streamR|r)awPredict$", ANTHROPIC),
        (r"/invoke(-with-response-stream)?$", replace(ANTHROPIC, errors="bedrock")),
        (r"/converse(-stream)?$", BEDROCK),
        (r":(streamG|g)enerateContent$", GEMINI),
        (r"/api/(chat|generate)/?$", OLLAMA),
        (r"/v2/chat/?$", COHERE),
        (r"/completion/?$", LLAMA),
    )
]
STREAM_PATHS = re.compile(r"(:stream\w+|-stream)$")
SIGNED = ("x-amz-date", "x-amz-content-sha256", "digest", "content-digest", "signature")
NO_LIMITS = Limits(*[sys.maxsize] * 4)
OF_TOKENS = ("stopscan.stop_token_ids", "stopscan.min_tokens")
# Fields of the object `stopscan` in a request. `OPTIONS` are read by ``read_options``, as in the adapters for engines.
# `REGIONS` are read here, because a request may define its own regions.
OPTIONS = ("patterns", "visible_patterns", "max_held", "include_stop", "start_protected", "repeat")
REGIONS = ("regions", "stop_in", "protect")
# JSON of many small values takes 30 times its size in memory, so the values are counted before it is parsed.
SEPARATORS, MOST_VALUES = (b",", b"[", b"{"), 2_000_000
COUNTS = {dotted(path) for _, api in ROUTES for path in api.choices}


def route_of(method: str, path: str) -> Api | None:
    """Returns the row of the API that takes requests at this path, or ``None``. Only POST requests have stops."""
    return next((api for route, api in ROUTES if route.search(path)), None) if method == "POST" else None


def is_signed(request: Any) -> bool:
    """Returns whether the request has a signature, which a change would make wrong."""
    return any(name in request.headers for name in SIGNED)


def asked_in(request: Any, route: Api | None, content: bytes, own: Options, api: str | None, limits: Limits) -> Asked:
    """Returns the options by which the answer to a request is cut, and the body to send on. The only stops in that body
    are those that a server of ``api`` can find itself.

    Raises ``ValueError`` or ``TypeError``, with a message for the client, if the stops or options in the request are
    wrong or exceed the ``limits``.
    """
    if route is None and not len(own.stops) and b'"stopscan"' not in content:
        return Asked(own)
    if sum(map(content.count, SEPARATORS)) > MOST_VALUES:
        raise OverflowError(f"the request has more than {MOST_VALUES:,} values")
    body = loads(content)
    streamed = STREAM_PATHS.search(request.url.path) is not None
    if not isinstance(body, dict):
        return Asked(own, streamed)
    streamed = streamed or bool(body.get("stream", route is OLLAMA))
    body = in_camel_case(body) if route is GEMINI else body
    own = replace(own, choices=choices_in(body))
    if route is None and "stopscan" not in body:
        return Asked(own, streamed)
    at = dotted(route.stops if route is not None else "stop")
    options = _options(own, at, body, limits)
    asked = Asked(options, streamed, get(body, *at) is not None or "stopscan" in body)
    if is_signed(request) or (not len(options.stops) and "stopscan" not in body):
        return asked
    rest = without(without(body, "stopscan"), *at)
    if len(at) > 1 and get(rest, at[0]) == {}:  # the object had only the stops
        rest = without(rest, at[0])
    native: list[str] = []
    if route is not None and not (streamed or options.include_stop):
        native, _ = native_stops(api or route.limits or route.name, options.stops)
    bare = dumps(rest)
    return replace(asked, body=dumps(put(rest, native, *at)), bare=bare) if native else replace(asked, body=bare)


def choices_in(body: Any) -> int:
    """Returns how many choices a request asks for."""
    asked = next((n for n in (get(body, *path) for path in COUNTS) if type(n) is int and n > 0), 1)
    prompt = items(get(body, "prompt"))
    return asked * (len(prompt) if prompt and isinstance(prompt[0], str | list) else 1)


def echoed_in(body: Any) -> Callable[[int], int]:
    """Returns a function that takes the index of a choice, and returns how many characters of the prompt are at the
    beginning of the choice (`echo`)."""
    prompts = prompt if isinstance(prompt := get(body, "prompt"), list) else [prompt]
    if not get(body, "echo"):
        return lambda index: 0
    if not all(isinstance(prompt, str) for prompt in prompts):
        raise ValueError("echo with stops needs a prompt of text: the length of a prompt of token ids is unknown")
    each = get(body, "n") if type(get(body, "n")) is int and get(body, "n") > 0 else 1
    return lambda index: len(prompts[index // each]) if index // each < len(prompts) else 0


def in_camel_case(body: Any) -> Any:
    """Returns a request to Gemini with its configuration in camel case. Gemini also takes the snake case of the
    protocol buffers."""
    config = get(body, "generationConfig") or get(body, "generation_config")
    if not isinstance(config, dict):
        return body
    spelled = {camel(name): value for name, value in config.items()}
    return {**without(body, "generation_config"), "generationConfig": spelled}


def _options(own: Options, at: tuple[str, ...], body: Any, limits: Limits) -> Options:
    told = body.get("stopscan")
    if not isinstance(told, dict | None):
        raise TypeError(f"stopscan must be an object, not {type(told).__name__}")
    # Options that are much too long are refused before they are read, because they may fill the whole body of a
    # request. JSON may spell a byte of text with six characters, so this limit is above the exact ones.
    sizes = accumulate(map(len, json.JSONEncoder().iterencode(told)))
    if any(size > 8 * limits.bytes for size in sizes):
        raise ValueError(f"stopscan has more than {8 * limits.bytes:,} bytes")
    told = {f"stopscan.{name}": value for name, value in (told or {}).items() if value is not None}
    tokens = [name for name in OF_TOKENS if name in told]
    if tokens:
        raise ValueError(f"{tokens[0]} works on tokens, which only the server sees: use the server's own field")
    stops = get(body, *at)
    if stops is None and not told:
        return replace(own, echoed=echoed_in(body if len(own.stops) else None))
    graph = {name: told.pop(f"stopscan.{name}", None) for name in REGIONS}
    told.setdefault("stopscan.max_held", own.stops.max_held)
    defaults = Defaults(repeat=own.stops.repeat, limits=limits)
    try:
        fields = (*OPTIONS, *REGIONS)  # `told` has no `REGIONS` now, but the message about unknown names lists them
        asked: Any = read_options(told, defaults, prefix="stopscan.", fields=fields, own={"stop": stops})
    except ValueError as error:
        raise ValueError(re.sub(r"^stop\b", ".".join(at), str(error))) from None
    made = _merged(own.stops, asked.stops, limits, **graph)
    options = replace(
        own,
        stops=made,
        include_stop=asked.include_stop if "stopscan.include_stop" in told else own.include_stop,
        begin=own.begin if asked.start_protected is None else {"region": begins(made, "", asked.start_protected)},
        echoed=echoed_in(body if len(made) else None),
    )
    options.scanner()  # raises for a wrong region here, before the stream begins
    return options


def _merged(own: StopSet, asked: StopSet, limits: Limits, regions: Any, stop_in: Any, protect: Any) -> StopSet:
    """Returns the stops of the transport and of the request together. An option of the request replaces
    the same option of the transport."""
    graph: Any = regions or own.regions or {}
    states = graph if isinstance(graph, Mapping) else {}  # `StopSet` raises for anything else
    there = list(dict.fromkeys(state.partition("/")[0] for state in states))
    names, pairs = read_protect(protect or [], (*NAMES, *there))
    for name in names:
        if name not in there:
            raise ValueError(f"stopscan.protect: unknown region {name!r}; give pairs of markers, or stopscan.regions")
    if names and (stop_in is not None or pairs):
        raise ValueError("stopscan.protect can name regions only without pairs of markers and without stopscan.stop_in")
    count, size = len(states if regions else ()) + len(pairs), len(json.dumps([regions, pairs]))
    if count > limits.regions:
        raise ValueError(f"stopscan.regions and stopscan.protect have {count} regions; the limit is {limits.regions}")
    if size > limits.bytes:
        raise ValueError(f"stopscan.regions and stopscan.protect have {size} bytes; the limit is {limits.bytes}")
    if names:
        regions, stop_in = graph, [name for name in there if name not in names]
    elif regions is None and protect is None:
        regions, pairs, stop_in = own.regions, [*own.protect], own.stop_in if stop_in is None else stop_in
    return StopSet(
        [*own.stop, *(stop for stop in asked.stop if stop not in own.visible)],
        patterns=[*own.patterns, *(pattern for pattern in asked.patterns if pattern not in own.visible_patterns)],
        visible=own.visible,
        visible_patterns=[*own.visible_patterns, *(one for one in asked.visible_patterns if one not in own.patterns)],
        regions=regions,
        protect=pairs or None,
        stop_in=stop_in,
        max_held=asked.max_held,
        repeat=asked.repeat,
    )


def error_body(route: Api | None, message: str, status: int = 400) -> dict[str, Any]:
    """Returns an error in the form of the API of a request. The form of an unknown API is that of OpenAI."""
    form = None if route is None else route.errors or route.name
    if form == "anthropic":
        kind = "invalid_request_error" if status < 500 else "api_error"
        return {"type": "error", "error": {"type": kind, "message": message}}
    if form == "gemini":
        code = "INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE"
        return {"error": {"code": status, "message": message, "status": code}}
    if form == "bedrock":
        return {"message": message}
    if form == "ollama":
        return {"error": message}
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
