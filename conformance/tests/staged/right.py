"""Servers that are right, but unusual: each does something that its API, HTTP or JSON allows."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, NamedTuple

from staged.app import Staged
from staged.edits import before, chunk, done, every, first, last_choice, lose, put, typed, with_choices, with_usage
from staged.generation import CHECKPOINT, EOS, Generation, Piece, Scanner, joined_bursts
from staged.request import Ask, Refusal, right_stops
from stopscan import StopScanner, StopSet

CHAT, COMPLETIONS, RESPONSES = "openai-chat", "openai-completions", "responses-with-stop"
MESSAGES, OLLAMA_CHAT, OLLAMA, GENERATE = "anthropic", "ollama-chat", "ollama-generate", "generate"
EVENTS = (CHAT, RESPONSES, MESSAGES)
ALL = (CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA_CHAT, OLLAMA, GENERATE)
App = Callable[[Any, Any, Any], Any]


class Right(NamedTuple):
    """A test server that is unusual, but does nothing wrong. `apis` are the APIs through which it is tested."""

    staged: Staged
    apis: tuple[str, ...]
    lacks: bool = False  # the server does not have an optional feature
    alike: bool = True  # official clients read the same from it as from `Staged()`, which has no changes


def unusual(
    name: str, apis: str | tuple[str, ...] = CHAT, /, lacks: bool = False, alike: bool = True, **changes: Any
) -> Right:
    return Right(Staged(name, **changes), (apis,) if isinstance(apis, str) else apis, lacks, alike)


# Wrappers of the server that change how it uses HTTP.


def redirects(status: int) -> Callable[[App], App]:
    """Returns a wrapper that answers each request with a redirect to another path. The client sends the request to that
    path, and then gets the answer."""

    def around(app: App) -> App:
        async def moved(scope: Any, receive: Any, send: Any) -> None:
            name, _, path = scope["path"][1:].partition("/")
            if path.startswith("moved/"):
                await app({**scope, "path": f"/{name}/{path.removeprefix('moved/')}"}, receive, send)
                return
            location = scope["raw_path"].split(b"/", 2)
            target = b"/" + location[1] + b"/moved/" + location[2]
            await send({"type": "http.response.start", "status": status, "headers": [(b"location", target)]})
            await send({"type": "http.response.body", "body": b""})

        return moved

    return around


def one_at_a_time(app: App) -> App:
    """Answers like a server with one thread: a request waits until the answer to the previous request has been sent."""
    locks: list[asyncio.Lock] = []

    async def alone(scope: Any, receive: Any, send: Any) -> None:
        locks[:] = locks or [asyncio.Lock()]
        async with locks[0]:
            await app(scope, receive, send)

    return alone


def busy(times: int, status: int = 503) -> Callable[[App], App]:
    """Returns a wrapper that first refuses each request with stops: it answers `times` times with `status` and the
    header Retry-After. After that, it answers the request as usual."""

    def around(app: App) -> App:
        seen: Counter[bytes] = Counter()

        async def limited(scope: Any, receive: Any, send: Any) -> None:
            message = await receive()
            body = message.get("body", b"")
            while message.get("more_body"):
                message = await receive()
                body += message["body"]
            seen[body] += 1
            if b'"stop' in body and seen[body] <= times:
                await send({"type": "http.response.start", "status": status, "headers": [(b"retry-after", b"0.02")]})
                await send({"type": "http.response.body", "body": b"{}"})
                return
            again = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def received() -> Any:
                return next(again, None) or await receive()

            await app(scope, received, send)

        return limited

    return around


def sending(change: Callable[[Any, dict[str, Any]], Any]) -> Callable[[App], App]:
    """Returns a wrapper of an ASGI application. In place of each message from the application, it sends the messages
    that `change(message, known)` returns. `known` has the headers of the request and the media type of the answer."""

    def around(app: App) -> App:
        async def changed(scope: Any, receive: Any, send: Any) -> None:
            known: dict[str, Any] = {"request": dict(scope["headers"])}

            async def sent(message: Any) -> None:
                if message["type"] == "http.response.start":
                    known["type"] = dict(message["headers"]).get(b"content-type", b"")
                for one in change(message, known):
                    await send(one)

            await app(scope, receive, sent)

        return changed

    return around


def is_start(message: Any) -> bool:
    return bool(message["type"] == "http.response.start")


def with_headers(message: Any, *headers: tuple[bytes, bytes]) -> Any:
    names = [name for name, _ in headers]
    kept = [one for one in message["headers"] if one[0] not in names]
    return {**message, "headers": [*kept, *headers]}


def part(body: bytes) -> Any:
    return {"type": "http.response.body", "body": body, "more_body": True}


def torn(message: Any, known: Any) -> Any:
    """Sends the body in pieces of one to five bytes, some of which end inside a character, a line end or a name."""
    body = message.get("body", b"")
    if is_start(message) or len(body) < 2:
        return [message]
    pieces, at = [], 0
    while at < len(body):
        size = 1 + (at * 7 + len(body)) % 5
        pieces.append(part(body[at : at + size]))
        at += size
    return [*pieces[:-1], {**message, "body": pieces[-1]["body"]}]


def with_charset(message: Any, known: Any) -> Any:
    header = (b"content-type", known["type"] + b"; charset=UTF-8")
    return [with_headers(message, header) if is_start(message) else message]


def closing(message: Any, known: Any) -> Any:
    """Closes the connection after each answer."""
    return [with_headers(message, (b"connection", b"close")) if is_start(message) else message]


def whole_body(message: Any, known: Any, change: Callable[[Any, bytes], tuple[Any, bytes]]) -> Any:
    """Passes the beginning and the body of a whole answer to `change`, and sends what `change` returns. Streams stay
    unchanged."""
    if known["type"] != b"application/json":
        return [message]
    if is_start(message):
        known["start"], known["body"] = message, b""
        return []
    known["body"] += message.get("body", b"")
    if message.get("more_body"):
        return []
    start, body = change(known["start"], known["body"])
    return [start, {"type": "http.response.body", "body": body}]


def zipped(message: Any, known: Any) -> Any:
    def change(start: Any, body: bytes) -> tuple[Any, bytes]:
        if b"gzip" not in known["request"].get(b"accept-encoding", b""):
            return start, body
        return with_headers(start, (b"content-encoding", b"gzip")), gzip.compress(body)

    return whole_body(message, known, change)


def measured(message: Any, known: Any) -> Any:
    """Sends a whole answer with the header content-length. The other test servers send it in HTTP chunks."""
    return whole_body(message, known, lambda start, body: (
        with_headers(start, (b"content-length", str(len(body)).encode())), body))  # fmt: skip


def blanks_first(message: Any, known: Any) -> Any:
    """Sends blanks before the JSON. Some servers send blanks while they generate the answer, to keep the connection
    open."""
    return whole_body(message, known, lambda start, body: (start, b" \n \r\n" + body))


def comment_last(message: Any, known: Any) -> Any:
    if is_start(message) or message.get("more_body") or known["type"] != b"text/event-stream":
        return [message]
    return [{**message, "body": message.get("body", b"") + b": that was all\n\n", "more_body": True}, {
        "type": "http.response.body", "body": b""}]  # fmt: skip


def opening_at_once(message: Any, known: Any) -> Any:
    """Sends all events up to the first text together."""
    if is_start(message) or known.get("begun"):
        return [message]
    known["waiting"] = known.get("waiting", b"") + message.get("body", b"")
    if b"_delta" not in known["waiting"] and message.get("more_body"):
        return []
    known["begun"] = True
    return [{**message, "body": known["waiting"]}]


# How an event or a line is written.


def lines_of_data(name: str | None, data: str) -> str:
    """Writes an event with several lines of data."""
    head = f"event: {name}\n" if name else ""
    return head + "".join(f"data: {line}\n" for line in data.split("\n")) + "\n"


def unknown_fields(name: str | None, data: str) -> str:
    head = f"event: {name}\n" if name else ""
    return f"colour: blue\n{head}data: {data}\nempty\n\n"


def name_last(name: str | None, data: str) -> str:
    return f"data: {data}\n" + (f"event: {name}\n" if name else "") + "\n"


def solidus(data: Any) -> str:
    return json.dumps(data).replace("/", "\\/")


# Additions that the APIs allow in an answer.


def more(data: Any) -> Any:
    """Adds fields that no API documents."""
    choices = [{**choice, "provider_fields": {"a": [1]}} for choice in data.get("choices", [])]
    return {**data, "x_provider": {"name": "staged"}, "timings": None, **({"choices": choices} if choices else {})}


def message_more(data: Any) -> Any:
    fields = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "tool_calls": None}
    return put(lambda message: {**message, **fields}, "choices", 0, "message")(data)


def null_stop(data: Any) -> Any:
    return put(lambda choice: {"matched_stop": None, "stop_reason": None, **choice}, "choices", 0)(data)


def role_in_each(data: Any) -> Any:
    return put(lambda delta: {"role": "assistant", **delta}, "choices", 0, "delta")(data)


def filtered(data: Any) -> Any:
    safe = {"hate": {"filtered": False, "severity": "safe"}}
    return {**data, "choices": [{**choice, "content_filter_results": safe} for choice in data["choices"]]}


PROMPT_FILTER = {"id": "", "object": "", "created": 0, "model": "", "choices": [],
                 "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}  # fmt: skip
EMPTY = {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None}]}


def with_an_empty_one(data: Any) -> Any:
    return [data] if last_choice(data) else [data, {**data, **EMPTY}]


async def reason_in_the_last(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Sends the last text and the finish reason in one event, as sglang does."""
    held: Any = None
    async for data in source:
        ended = isinstance(data, dict) and data["meta_info"]["finish_reason"] is not None
        if held is not None and not ended:
            yield held
        held = None
        if isinstance(data, str) or ended:
            yield data
        else:
            held = data


def full_usage(data: Any) -> Any:
    counts = {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return put(lambda usage: {**counts, **usage}, "usage")(data)


async def signed(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Sends a signature at the end of each block of reasoning."""
    thinking = False
    async for data in source:
        if data["type"] == "content_block_start":
            thinking = data["content_block"]["type"] == "thinking"
        if data["type"] == "content_block_stop" and thinking:
            delta = {"type": "signature_delta", "signature": "c2lnbmVk"}
            yield {"type": "content_block_delta", "index": data["index"], "delta": delta}
        yield data


def speculated(made: Generation) -> int:
    """Counts three tokens too many if a stop ended the answer, as after a step of speculative decoding that generates
    three more tokens after the stop. The count is never above the token limit."""
    return min(made.tokens + 3 * (made.end[0] == "stop_sequence"), made.ask.max_tokens)


CACHE: set[int] = set()


def cached_prompt(message: Any) -> Any:
    """Changes the usage as if the server had a cache of prompts. If an earlier prompt was equally long, the server
    takes the prompt from its cache: all its tokens except one are counted as read from the cache."""
    tokens = message["usage"]["input_tokens"]
    new, read = (1, tokens - 1) if tokens in CACHE else (tokens, 0)
    CACHE.add(tokens)
    return {**message, "usage": {**message["usage"], "input_tokens": new, "cache_read_input_tokens": read}}


PING = {"type": "ping"}


def pinged(data: Any) -> Any:
    return data if data["type"] == "message_stop" else [data, PING]


async def queued(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Sends the event `response.queued` after `response.created`."""
    number = 0
    async for data in source:
        yield {**data, "sequence_number": number}
        number += 1
        if data["type"] == "response.created":
            response = {**data["response"], "status": "queued"}
            yield {"type": "response.queued", "sequence_number": number, "response": response}
            number += 1


# Fields of the request that OpenAI's Responses API repeats in a response.
ECHO = {
    "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0, "error": None, "user": None,
    "max_output_tokens": None, "previous_response_id": None, "reasoning": {"effort": None, "summary": None},
    "store": False, "text": {"format": {"type": "text"}}, "truncation": "disabled", "background": False,
}  # fmt: skip


def echoed(response: Any) -> Any:
    return {**ECHO, **response}


def nanoseconds(data: Any) -> Any:
    return {**data, "created_at": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f789Z")}


def empty_thinking(data: Any) -> Any:
    return put(lambda message: {"thinking": "", **message}, "message")(data)


async def slowly_begun(made: Generation) -> AsyncIterator[tuple[str, str]]:
    """Waits before the first text, as after a long prompt, or while a model is loaded."""
    await asyncio.sleep(0.3)
    async for one in made.texts():
        yield one


# Other ways to send text, and servers that lack a feature.


def unnamed(made: Generation) -> tuple[str, Any]:
    """Reports EOS if a stop ended the answer: OpenAI's answers have the same finish reason for both, and no field that
    names the stop."""
    return ("eos", None) if made.end[0] in ("stop_sequence", "stop_token") else made.end


def without_ids(ask: Ask) -> Ask:
    """Ignores `stop_token_ids`, a field that the API does not have."""
    return replace(ask, stop_token_ids=[])


def together(ask: Ask) -> Ask:
    """Leaves the reasoning in the text, with its markers."""
    return replace(ask, apart=False)


def plain(ask: Ask) -> Ask:
    """Does only what OpenAI documents: no stop tokens, and no separate reasoning."""
    return replace(ask, apart=False, stop_token_ids=[])


def refuses_ids(ask: Ask) -> Ask:
    """Refuses `stop_token_ids`, as OpenAI does."""
    if "stop_token_ids" in ask.body:
        raise Refusal("Unrecognized request argument supplied: stop_token_ids")
    return ask


def counts_no_prompt(data: Any) -> Any:
    usage = {**data["usage"], "prompt_tokens": 0, "total_tokens": data["usage"]["completion_tokens"]}
    return {**data, "usage": usage}


async def letters(made: Generation) -> AsyncIterator[tuple[str, str]]:
    async for kind, text in made.texts():
        for letter in text:
            yield kind, letter


async def without_reasoning(made: Generation) -> AsyncIterator[tuple[str, str]]:
    async for kind, text in made.texts():
        if kind == "answer":
            yield kind, text


async def joins_the_end(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Puts the finish reason into the last chunk that has text."""
    before = None
    async for data in source:
        if before is not None and with_choices(data) and data["choices"][0]["finish_reason"]:
            end = data["choices"][0]
            first = before["choices"][0]
            named = {key: value for key, value in end.items() if key not in ("delta", "text")}
            before, data = None, {**before, "choices": [{**first, **named}]}
        if before is not None:
            yield before
        before = data if with_choices(data) and not data["choices"][0]["finish_reason"] else None
        if before is None:
            yield data


class Anywhere(Scanner):
    """Also finds stops in reasoning."""

    def __init__(self, stops: list[str]) -> None:
        self._scanner = StopScanner(StopSet(stops))


def summarized(data: Any) -> Any:
    """Sends the reasoning as a summary, as OpenAI's own models do."""
    text = json.dumps(data)
    text = text.replace("reasoning_text", "reasoning_summary_text")
    data = json.loads(text)
    kind = data.get("type", "")
    for item in [*((data.get("response") or data).get("output") or ()), *([data["item"]] if "item" in data else [])]:
        if item["type"] == "reasoning":
            item["summary"] = [{**part, "type": "summary_text"} for part in item.pop("content")]
    if kind.startswith("response.content_part") and data["part"]["type"] == "reasoning_summary_text":
        data["type"] = kind.replace("content_part", "reasoning_summary_part")
        data["part"]["type"] = "summary_text"
    if "reasoning_summary" in data.get("type", ""):
        data["summary_index"] = data.pop("content_index")
    return data


def uncounted(data: Any) -> Any:
    return {key: value for key, value in data.items() if not key.endswith("eval_count")}


def names_eos(made: Generation) -> tuple[str, Any]:
    return ("stop_token", CHECKPOINT.eos_token_id) if made.end[0] == "eos" else made.end


def at_most_four(given: Any) -> list[str]:
    stops = right_stops(given)
    if len(stops) > 4:
        raise Refusal(f"at most 4 stop strings are supported, not {len(stops)}")
    return stops


def none_at_all(status: int) -> Callable[[Any], list[str]]:
    """Returns a function that refuses a request with stops, with the status `status`. Frameworks differ in the status
    that they use for a refusal."""

    def stops(given: Any) -> list[str]:
        if given:
            raise Refusal("stop is not supported", status)
        return []

    return stops


def passes_empty_over(given: Any) -> list[str]:
    return right_stops([stop for stop in given if stop != ""] if isinstance(given, list) else given)


class OtherModel(Generation):
    def pieces(self) -> Iterator[Piece]:
        return iter([(1, b"Hello!"), (CHECKPOINT.eos_token_id, EOS)])


class Dies(Generation):
    """Answers three requests with stops, and hangs from the fourth on. The first of the three comes from the kit's
    `probe`."""

    stopped = 0

    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        Dies.stopped += bool(self.ask.stops)
        await asyncio.sleep(600 if Dies.stopped > 3 else 0)
        async for part in super().texts():
            yield part


# The statuses of a refused request, and those of a server that failed.
REFUSALS = (400, 404, 405, 413, 415, 422, 501)
FAILURES = (409, 500, 503)

# Servers that refuse, fail or lack something, for tests of what the command `stopscan-conformance` prints.
OTHERS = [
    *(Staged(f"stops are a {status}", stops=none_at_all(status)) for status in REFUSALS + FAILURES),
    Staged("a speculative step behind a stop", counted=speculated),
    Staged("no role", events=first(with_choices, lose("choices", 0, "delta", "role"))),
    Staged("always busy", around=busy(10**9)),
    Staged("locked", key="secret"),
    Staged("another model", generation=OtherModel),
    Staged("dies", generation=Dies),
]


def as_vllm(data: Any) -> Any:
    """Sends the stop and the reasoning in the fields that vLLM uses."""
    text = json.dumps(data).replace('"matched_stop"', '"stop_reason"').replace('"reasoning_content"', '"reasoning"')
    return json.loads(text)


def framed(name: str | None, data: str, blank: str = " ") -> str:
    event = f"event:{blank}{name}\n" if name else ""
    return f"{event}data:{blank}{data}\n\n"


RIGHT = [
    unusual("plain, four stops", (CHAT, COMPLETIONS), lacks=True, told=unnamed, ask=refuses_ids, stops=at_most_four),
    unusual("plain, and counts no prompt", CHAT, lacks=True, told=unnamed, ask=without_ids,
            whole_answer=counts_no_prompt, events=every(with_usage, counts_no_prompt)),
    unusual("stops are not named", (CHAT, COMPLETIONS), lacks=True, told=unnamed),
    unusual("ids are passed over", (CHAT, COMPLETIONS, MESSAGES), lacks=True, ask=without_ids),
    unusual("ids are refused", (CHAT, COMPLETIONS, MESSAGES), lacks=True, ask=refuses_ids),
    unusual("busy at first", CHAT, alike=False, around=busy(2)),
    unusual("limited at first", MESSAGES, alike=False, around=busy(1, 429)),
    unusual("a prompt cache", MESSAGES, whole_answer=cached_prompt,
            events=every(typed("message_start"), put(cached_prompt, "message"))),
    unusual("cumulative input tokens", MESSAGES,
            events=every(typed("message_delta"), put(9000, "usage", "input_tokens"))),
    unusual("moved for now", ALL, around=redirects(307)),
    unusual("moved for ever", ALL, around=redirects(308)),
    unusual("one at a time", (CHAT, MESSAGES, OLLAMA_CHAT), around=one_at_a_time),
    unusual("torn", ALL, around=sending(torn)),
    unusual("with a charset", ALL, around=sending(with_charset)),
    unusual("closed after each", ALL, around=sending(closing)),
    unusual("zipped", ALL, around=sending(zipped)),
    unusual("with its length", ALL, around=sending(measured)),
    unusual("blanks before JSON", ALL, around=sending(blanks_first)),
    unusual("a comment after the end", EVENTS, around=sending(comment_last)),
    unusual("opening events at once", MESSAGES, around=sending(opening_at_once)),
    unusual("several lines of data", EVENTS, dumps=lambda data: json.dumps(data, indent=1), frame=lines_of_data),
    unusual("fields that no event has", EVENTS, frame=unknown_fields),
    unusual("the name behind the data", (RESPONSES, MESSAGES), frame=name_last),
    unusual("keys in order", ALL, dumps=lambda data: json.dumps(data, sort_keys=True)),
    unusual("nothing between", ALL, dumps=lambda data: json.dumps(data, separators=(",", ":"))),
    unusual("every solidus escaped", ALL, dumps=solidus),
    unusual("lines that end in CR LF", (OLLAMA_CHAT, OLLAMA), frame=lambda name, data: f"{data}\r\n"),
    unusual("more than documented", (CHAT, COMPLETIONS, OLLAMA_CHAT, OLLAMA, GENERATE),
            whole_answer=more, events=every(chunk, more)),
    unusual("more in a message", CHAT, whole_answer=message_more),
    unusual("no stop is null", (CHAT, COMPLETIONS), whole_answer=null_stop, events=every(with_choices, null_stop)),
    unusual("no logprobs", (CHAT, COMPLETIONS), whole_answer=lose("choices", 0, "logprobs")),
    unusual("a role in each chunk", CHAT, events=every(with_choices, role_in_each)),
    unusual("the first content is null", CHAT, events=first(with_choices, put(None, "choices", 0, "delta", "content"))),
    unusual("the last content is empty", CHAT, events=every(last_choice, put("", "choices", 0, "delta", "content"))),
    unusual("empty deltas between", CHAT, events=every(with_choices, with_an_empty_one)),
    unusual("the first chunk has no choices", (CHAT, COMPLETIONS), events=first(with_choices, before(PROMPT_FILTER))),
    unusual("filters in each choice", (CHAT, COMPLETIONS), whole_answer=filtered, events=every(with_choices, filtered)),
    unusual("no prompt_eval_count", (OLLAMA_CHAT, OLLAMA), lacks=True, whole_answer=lose("prompt_eval_count"),
            events=every(chunk, lose("prompt_eval_count"))),
    unusual("no durations", (OLLAMA_CHAT, OLLAMA), whole_answer=lose("total_duration"),
            events=every(chunk, lose("total_duration"))),
    unusual("nanoseconds", (OLLAMA_CHAT, OLLAMA), whole_answer=nanoseconds, events=every(chunk, nanoseconds)),
    unusual("thinking that is empty", OLLAMA_CHAT, whole_answer=empty_thinking, events=every(chunk, empty_thinking)),
    unusual("the reason with the last text in sglang", GENERATE, events=reason_in_the_last),
    unusual("pings everywhere", MESSAGES, events=every(chunk, pinged)),
    unusual("signed reasoning", MESSAGES, events=signed),
    unusual("all of the usage at the end", MESSAGES, events=every(typed("message_delta"), full_usage)),
    unusual("one token at the start", MESSAGES,
            events=every(typed("message_start"), put(1, "message", "usage", "output_tokens"))),
    unusual("a response that waited", RESPONSES, events=queued),
    unusual("padded deltas", RESPONSES, events=every(
        lambda data: data["type"].endswith(".delta"), lambda data: {**data, "obfuscation": "aX3"})),
    unusual("all that was asked", RESPONSES, whole_answer=echoed,
            events=every(lambda data: "response" in data, put(echoed, "response"))),
    unusual("a slow beginning", (CHAT, MESSAGES, OLLAMA_CHAT), chunks=slowly_begun),
    unusual("as vLLM", CHAT, alike=False, whole_answer=as_vllm, events=every(chunk, as_vllm)),
    unusual("three tokens each", (*EVENTS, OLLAMA_CHAT, GENERATE), chunks=joined_bursts(3)),
    unusual("letter by letter", (*EVENTS, OLLAMA_CHAT, GENERATE), chunks=letters),
    unusual("reasoning in the text", (CHAT, MESSAGES, OLLAMA_CHAT), lacks=True, alike=False, ask=together),
    unusual("reasoning left out", CHAT, alike=False, chunks=without_reasoning),
    unusual("EOS is named", (CHAT, GENERATE), alike=False, told=names_eos),
    unusual("EOS is not counted", MESSAGES, alike=False, counted=lambda made: made.tokens - (made.end[0] == "eos")),
    unusual("four stops", CHAT, lacks=True, stops=at_most_four),
    unusual("empty stops passed over", CHAT, stops=passes_empty_over),
    unusual("CR LF", EVENTS, frame=lambda name, data: framed(name, data).replace("\n", "\r\n")),
    unusual("CR", EVENTS, frame=lambda name, data: framed(name, data).replace("\n", "\r")),
    unusual("comments", EVENTS, frame=lambda name, data: f": ping\n\n{framed(name, data, blank='')}"),
    unusual("ids and retries", EVENTS, frame=lambda name, data: f"id: 7\nretry: 100\n{framed(name, data)}"),
    unusual("a byte order mark", EVENTS, alike=False, mark=b"\xef\xbb\xbf"),
    unusual("nulls", CHAT, events=every(with_choices, lambda data: {**data, "usage": None, "service_tier": None})),
    unusual("as they are", (*EVENTS, GENERATE), dumps=lambda data: json.dumps(data, ensure_ascii=False)),
    unusual("an alias", CHAT, told_model="reciter-2026-11"),
    unusual("no usage", CHAT, whole_answer=lose("usage")),
    unusual("the reason with the last text", (CHAT, COMPLETIONS), events=joins_the_end),
    unusual("a tag", OLLAMA_CHAT, model="reciter:latest"),
    unusual("plain", (CHAT, COMPLETIONS), lacks=True, alike=False, ask=plain, scanner=Anywhere,
            told=lambda made: (made.end[0], None)),
    unusual("no ids", (OLLAMA_CHAT, MESSAGES), lacks=True, alike=False, ask=plain),
    unusual("summaries", RESPONSES, whole_answer=summarized, events=every(chunk, summarized)),
    unusual("no counts", (OLLAMA_CHAT, OLLAMA), lacks=True, whole_answer=uncounted, events=every(done, uncounted)),
]  # fmt: skip
