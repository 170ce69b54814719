"""What a request says of stops: where its API has them, and what goes on to the server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from stopscan import StopSet
from stopscan_clients._json import get, items, put, without
from stopscan_clients._machines.machine import Options
from stopscan_clients._native import native_stops
from stopscan_clients._wire.framing import dumps
from stopscan.regions import NAMES, begins, read_protect
from stopscan.repeats import requested


class Route(NamedTuple):
    path: re.Pattern[str]
    api: str  # of `native_stops`, if none is given
    stops: tuple[str, ...]  # where the body has them
    errors: str  # the form of an error


def _route(path: str, api: str, stops: str, errors: str = "openai") -> Route:
    return Route(re.compile(path), api, tuple(stops.split(".")), errors)


ROUTES = [
    _route(r"/completions$", "openai", "stop"),  # chat, text, fim, agents
    _route(r"/responses$", "responses", "stop"),
    _route(r"^(?!.*/threads/).*/messages$", "anthropic", "stop_sequences", "anthropic"),
    _route(r":(streamR|r)awPredict$", "anthropic", "stop_sequences", "anthropic"),
    _route(r"/invoke(-with-response-stream)?$", "anthropic", "stop_sequences", "bedrock"),
    _route(r"/converse(-stream)?$", "bedrock", "inferenceConfig.stopSequences", "bedrock"),
    _route(r":(streamG|g)enerateContent$", "gemini", "generationConfig.stopSequences", "gemini"),
    _route(r"/api/(chat|generate)$", "ollama", "options.stop", "ollama"),
    _route(r"/v2/chat$", "cohere", "stop_sequences", "bedrock"),
]
STREAM_PATHS = re.compile(r"(:stream\w+|-stream)$")
SIGNED = ("x-amz-date", "x-amz-content-sha256", "digest", "content-digest", "signature")
OF_TOKENS = dict.fromkeys(("stop_token_ids", "min_tokens"), "give it to the server, in the server's own field")
OPTIONS = ("include_stop", "max_held", "patterns", "protect", "regions", "repeat", "start_protected", "stop_in")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with a request and its answer. ``body`` goes on in the place of the request's own, if it is
    not ``None``; if the server refuses its stops, ``bare`` does."""

    options: Options
    streamed: bool
    body: bytes | None = None
    bare: bytes | None = None
    key: tuple[str, Any] | None = None  # route and model: what a refusal is remembered of


def route_of(method: str, path: str) -> Route | None:
    return next((route for route in ROUTES if route.path.search(path)), None) if method == "POST" else None


def choices_asked(stream: Any) -> int:
    """Returns how many choices the request of an ``openai`` stream asks for, also under LiteLLM's wrapper; 1 if there
    is no request to be seen.

    A choice may have begun when another has not: only the request tells that there will be two.
    """
    return choices_in(body_asked(stream))


def body_asked(stream: Any) -> Any:
    """Returns the JSON of the request of an ``openai`` stream, ``None`` if it is not to be seen."""
    try:
        return json.loads(getattr(stream, "completion_stream", stream).response.request.content)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # httpx raises RuntimeErrors for what is not there
        return None


def choices_in(body: Any) -> int:
    """Returns how many choices a request asks for."""
    asked = get(body, "n") or get(body, "generationConfig", "candidateCount") or 1
    prompt = items(get(body, "prompt"))
    prompts = len(prompt) if prompt and isinstance(prompt[0], str | list) else 1
    return prompts * (asked if isinstance(asked, int) else 1)


def echoed_in(body: Any) -> Callable[[int], int]:
    """Returns how many characters of its prompt each choice of a text completion begins with."""
    prompts = get(body, "prompt")
    prompts = prompts if isinstance(prompts, list) else [prompts]
    if not get(body, "echo"):
        return lambda index: 0
    if not all(isinstance(prompt, str) for prompt in prompts):
        raise ValueError(
            "echo with a prompt of token ids: nobody tells here where the prompt ends and the answer begins"
        )
    each = get(body, "n") if type(get(body, "n")) is int and get(body, "n") > 0 else 1
    return lambda index: len(prompts[index // each]) if index // each < len(prompts) else 0


def planned(
    route: Route, path: str, content: bytes, own: Options, api: str | None, refused: Callable[[Any], bool], signed: bool
) -> Plan | None:
    """Returns the plan for a request, ``None`` if it has no stops. ``ValueError`` or ``TypeError`` for stops that
    cannot be: the message is for who sent them."""
    try:
        body = json.loads(content)
    except (RecursionError, ValueError):
        body = None
    if not isinstance(body, dict):
        return Plan(own, True) if len(own.stops) else None
    if route.api == "gemini":
        body = _in_camel_case(body)
    options = _options(own, route, body)
    if not len(options.stops) and "stopscan" not in body:
        return None
    streamed = bool(body.get("stream", route.api == "ollama")) or STREAM_PATHS.search(path) is not None
    if signed:
        return Plan(options, streamed)
    rest = _stripped(without(body, "stopscan"), route.stops)
    bare = dumps(rest)
    key = (path, json.dumps(get(body, "model")))
    native = (
        [] if streamed or options.include_stop or refused(key) else native_stops(api or route.api, options.stops)[0]
    )
    if not native:
        return Plan(options, streamed, bare)
    return Plan(options, streamed, dumps(put(rest, native, *route.stops)), bare, key)


def _stripped(body: Any, path: tuple[str, ...]) -> Any:
    """The body without its stops, and without an object that had nothing else."""
    key, *deeper = path
    if not deeper:
        return without(body, key)
    if not isinstance(body.get(key), dict):
        return body
    left = _stripped(body[key], tuple(deeper))
    return {**body, key: left} if left else without(body, key)


def _options(own: Options, route: Route, body: Any) -> Options:
    told = body.get("stopscan")
    if not isinstance(told, dict | None):
        raise TypeError(f"stopscan must be an object, not {type(told).__name__}")
    told = {name: value for name, value in (told or {}).items() if value is not None}  # null: what the transport has
    for name in told:
        if name in OF_TOKENS:
            raise ValueError(f"stopscan.{name} cannot be kept here, where tokens are not seen: {OF_TOKENS[name]}")
        if name not in OPTIONS:
            raise ValueError(f"stopscan.{name} is no option here; there are {', '.join(OPTIONS)}")
    stops = get(body, *route.stops)
    if not isinstance(stops, str | list | None):
        raise TypeError(f"{'.'.join(route.stops)} must be a string or a list of strings")
    made = own.stops if stops is None and not told else _merged(own.stops, stops or [], told)
    include, start = (_flag(told, name) for name in ("include_stop", "start_protected"))
    begin = {"region": begins(made, "", start)} if start is not None else own.begin
    options = Options(
        made,
        own.include_stop if include is None else include,
        own.drain,
        begin,
        lambda: choices_in(body),
        echoed_in(body if len(made) and route.api == "openai" else None),
    )
    options.scanner()  # a beginning that cannot be is the request's error, and not the stream's
    return options


def _in_camel_case(body: Any) -> Any:
    """A request to Gemini, whose JSON may have the names of the protocol buffers."""
    config = get(body, "generationConfig") or get(body, "generation_config")
    if not isinstance(config, dict):
        return body
    stops = config.get("stopSequences") or config.get("stop_sequences")
    config = (
        without(config, "stop_sequences")
        if stops is None
        else put(without(config, "stop_sequences"), stops, "stopSequences")
    )
    return put(without(body, "generation_config"), config, "generationConfig")


def _flag(told: dict[str, Any], name: str) -> bool | None:
    value = told.get(name)
    if not isinstance(value, bool | None):
        raise TypeError(f"stopscan.{name} must be true or false")
    return value


def _merged(own: StopSet, asked: str | list[Any], told: dict[str, Any]) -> StopSet:
    """The transport's stops and the request's. An option of the request takes the place of the transport's."""
    patterns = told.get("patterns", [])
    if not isinstance(patterns, list):
        raise TypeError("stopscan.patterns must be a list of strings")
    stops = [stop for stop in ([asked] if isinstance(asked, str) else asked) if stop not in own.visible]
    options: dict[str, Any] = {
        "patterns": [*own.patterns, *patterns],
        "visible": own.visible,
        "max_held": told.get("max_held", own.max_held),
        "repeat": requested(told.get("repeat"), own.repeat, name="stopscan.repeat"),
    }
    regions, stop_in = told.get("regions"), told.get("stop_in")
    protect: Any = told.get("protect")
    graph = regions or own.regions or {}
    states = graph if isinstance(graph, Mapping) else ()  # what is none, the set complains of
    there = list(dict.fromkeys(state.partition("/")[0] for state in states))
    names, pairs = read_protect(protect or [], (*NAMES, *there))
    for name in names:
        if name not in there:
            raise ValueError(f"stopscan.protect: no region {name!r} is known here; give pairs of markers, or regions")
    if names and (stop_in is not None or pairs):
        other = "stopscan.stop_in" if pairs == [] else "pairs of markers"
        raise ValueError(f"stopscan.protect and {other} exclude each other where protect names regions")
    StopSet(stops)  # an error counts from the request's first stop
    if names:
        live = [name for name in there if name not in names]
        return StopSet([*own.stop, *stops], regions=graph, stop_in=live, **options)
    if regions is None and protect is None:
        stop_in = own.stop_in if stop_in is None else stop_in
        regions, pairs = own.regions, [*own.protect]
    return StopSet([*own.stop, *stops], regions=regions, protect=pairs or None, stop_in=stop_in, **options)


def error_body(form: str, message: str, status: int = 400) -> dict[str, Any]:
    """Returns an error as the API writes it."""
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
