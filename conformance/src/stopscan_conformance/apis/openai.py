"""OpenAI's chat and text completions, with extensions that engines have: `stop_token_ids`, `matched_stop`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stopscan_conformance.apis import api as form
from stopscan_conformance.apis.api import NAME, NULL, Api, Data, End, Part, Request, inner, string
from stopscan_conformance.wire import Event, Wire

DONE = "[DONE]"
# Servers have two names for the field with the reasoning, and two for the field with the stop that fired. vLLM uses the
# second name of each pair. mlx-lm also uses `reasoning`.
REASONING = ("reasoning_content", "reasoning")
MATCHED = ("matched_stop", "stop_reason")
# The finish reasons in OpenAI's API reference. ENDS says what they mean, and has only those that the kit's requests can
# cause.
CHAT_WORDS = {"stop", "length", "tool_calls", "content_filter", "function_call"}
COMPLETION_WORDS = {"stop", "length", "content_filter"}
ENDS = {"stop": "eos", "length": "length"}


def chat_body(model: str, request: Request) -> Data:
    return {"model": model, "messages": request.messages, **_options(request)}


def completions_body(model: str, request: Request) -> Data:
    return {"model": model, "prompt": request.text, **_options(request)}


def _options(request: Request) -> Data:
    options = {True: {"include_usage": True}, None: {"include_usage": False}}.get(request.usage)
    usage = {"stream_options": options} if options and request.stream else {}
    limits = {} if request.max_tokens is None else dict.fromkeys(request.extras.limits, request.max_tokens)
    return {"stream": request.stream, **usage, **request.named("stop"), **limits}


def read_chat(wire: Wire, request: Request) -> Iterator[Part]:
    for event, choice in _read(wire, request):
        message = choice.get("delta") if request.stream else choice.get("message")
        reasoning = next(filter(None, (string(inner(message, name)) for name in REASONING)), "")
        yield Part(string(inner(message, "content")), reasoning, *_around(event, choice))


def read_completions(wire: Wire, request: Request) -> Iterator[Part]:
    for event, choice in _read(wire, request):
        yield Part(string(choice.get("text")), "", *_around(event, choice))


def _read(wire: Wire, request: Request) -> Iterator[tuple[Event, Data]]:
    """Yields the choices of each event, and an empty choice for an event without choices."""
    for event in wire.events() if request.stream else wire.whole():
        if inner(event.data, "error"):
            raise RuntimeError(f"an error in the answer: {form.short(event.data['error'])}")
        for choice in _choices(event.data) or [{}]:
            yield event, choice


def _around(event: Event, choice: Data) -> tuple[End | None, Data, float, Any]:
    """Returns four values: why a choice ended (or None), a dict with the id, model and token counts of its event, the
    time of the event, and the index of the choice."""
    usage = inner(event.data, "usage")
    head = {"id": inner(event.data, "id") or None, "model": inner(event.data, "model") or None}
    counts = {"prompt": inner(usage, "prompt_tokens"), "tokens": inner(usage, "completion_tokens")}
    return _end(choice), {**head, **counts}, event.time, choice.get("index")


def _end(choice: Data) -> End | None:
    matched = next((choice[name] for name in MATCHED if choice.get(name) is not None), None)
    word = choice.get("finish_reason")
    return None if word is None else end_of(word, matched)


def end_of(word: Any, matched: Any) -> End:
    """Returns why the answer ended. `word` is its finish reason, and `matched` is the stop that it names, or None."""
    if not isinstance(word, str) or word not in ENDS:
        return "unknown", word
    if matched is None or word != "stop":
        return ENDS[word], matched
    return ("stop_sequence" if isinstance(matched, str) else "stop_token"), matched


def spelled_chat(wire: Wire, request: Request) -> list[str] | None:
    """Returns the tokens that have log probabilities, or None if there are none."""
    entries = [form.objects(inner(choice.get("logprobs"), "content")) for _, choice in _read(wire, request)]
    return [str(entry.get("token")) for each in entries for entry in each] or None


def spelled_completions(wire: Wire, request: Request) -> list[str] | None:
    """Returns the tokens that have log probabilities, or None if there are none. The `text_offset` of a token must be
    the end of the token before it. If it is not, the number is added to the returned token, after its text."""
    spelled: list[str] = []
    first = known = None
    for _, choice in _read(wire, request):
        given = choice.get("logprobs")
        tokens, offsets = inner(given, "tokens") or [], inner(given, "text_offset") or []
        if isinstance(given, dict) and "tokens" not in given:
            spelled.append(f"(no tokens in {form.short(given)})")
        for index, token in enumerate(map(str, tokens if isinstance(tokens, list) else [])):
            offset = offsets[index] if index < len(offsets) else None
            first = offset if first is None else first
            known = known or 0
            moved = offset is not None and first is not None and offset - first != known
            known += len(token)
            spelled.append(f"{token}(text_offset {offset})" if moved else token)
    return spelled or None


def chat_form(wire: Wire, request: Request) -> Iterator[str]:
    if request.stream:
        yield from _stream_form(wire, request, "chat.completion.chunk", CHAT_WORDS, delta=dict)
        deltas = form.objects([choice.get("delta") for event in wire.events() for choice in _choices(event.data)])
        roles = [delta.get("role") for delta in deltas]
        if roles[:1] != ["assistant"]:
            yield f"the first delta has {roles[0] if roles else None!r} as role"
        for role in [role for role in roles if role not in ("assistant", None)][:1]:
            yield f"a delta has {form.short(role)} as role"
        for delta in deltas:
            yield from form.lacks("a delta", {"content": None, **delta}, content=(str, NULL))
            yield from _reasoning_form("a delta", delta)
    else:
        yield from _whole_form(wire, "chat.completion", CHAT_WORDS, message=dict)
        for choice in _choices(wire.json()):
            yield from form.lacks("the message", choice.get("message"), role={"assistant"}, content=(str, NULL))
            yield from _reasoning_form("the message", choice.get("message"))


def _reasoning_form(what: str, message: Any) -> Iterator[str]:
    for name in REASONING:
        if not isinstance(inner(message, name), (str, NULL)):
            yield f"{what} has {form.short(message[name])} as {name}"


def completions_form(wire: Wire, request: Request) -> Iterator[str]:
    if request.stream:
        yield from _stream_form(wire, request, "text_completion", COMPLETION_WORDS, text=str)
    else:
        yield from _whole_form(wire, "text_completion", COMPLETION_WORDS, text=str)


def _whole_form(wire: Wire, kind: str, words: set[str], **content: type) -> Iterator[str]:
    answer = wire.json()
    yield from form.sent_as(wire, "application/json")
    yield from form.lacks("the answer", answer, id=NAME, object={kind}, created=int, model=NAME, choices=list)
    yield from form.in_seconds("the answer", "created", answer)
    if isinstance(answer, dict) and "usage" in answer:  # "usage" is not required
        yield from _counts_form(answer.get("usage"))
    if len(_choices(answer)) != 1:
        yield f"there are {len(_choices(answer))} choices"
    for choice in _choices(answer):
        yield from _choice_form("the choice", choice, finish_reason=words, **content)


def _choice_form(what: str, choice: Data, **needs: Any) -> Iterator[str]:
    yield from form.lacks(what, {"logprobs": None, **choice}, index={0}, **needs, logprobs=(dict, NULL))


def _stream_form(wire: Wire, request: Request, kind: str, words: set[str], **content: type) -> Iterator[str]:
    events = [event.data for event in wire.events()]
    # Azure's first chunk is not checked: it has only the results of its content filters, and no choices.
    chunks = [event for event in events if event != DONE and not inner(event, "prompt_filter_results")]
    yield from form.sent_as(wire, "text/event-stream")
    if events[-1:] != [DONE]:
        yield f"the stream does not end with {DONE}"
    if DONE in events[:-1]:
        yield f"the stream goes on after {DONE}"
    yield from form.differ("the stream", chunks, "id", "model", "created")
    for chunk in chunks:
        yield from form.lacks("a chunk", chunk, id=NAME, object={kind}, created=int, model=NAME, choices=list)
        yield from form.in_seconds("a chunk", "created", chunk)
        for choice in _choices(chunk):
            yield from _choice_form("a choice", choice, finish_reason=(words, NULL), **content)
    yield from _usage_form(chunks, request)
    yield from _end_form([choice for chunk in chunks for choice in _choices(chunk)])


def _usage_form(chunks: list[Any], request: Request) -> Iterator[str]:
    """Checks that the usage comes only if the request asks for it, and then once, in a last chunk that has no choices.
    OpenAI's reference: "An additional chunk will be streamed before the data: [DONE] message"."""
    bare = [chunk for chunk in chunks if inner(chunk, "choices") == []]
    with_usage = [chunk for chunk in chunks if inner(chunk, "usage") is not None]
    if not request.usage:
        if bare:
            yield "a chunk without choices, although no usage was asked for"
        return
    if not (len(with_usage) == 1 and with_usage == bare == chunks[-1:]):
        yield "the usage does not come once, in a last chunk without choices"
    for chunk in with_usage:
        yield from _counts_form(chunk["usage"])


def _counts_form(usage: Any) -> Iterator[str]:
    yield from form.summed("usage", usage, "prompt_tokens", "completion_tokens", "total_tokens")
    for part, whole in (("completion_tokens_details.reasoning_tokens", "completion_tokens"),
                        ("prompt_tokens_details.cached_tokens", "prompt_tokens")):  # fmt: skip
        count, total = inner(usage, *part.split(".")), inner(usage, whole)
        if isinstance(count, int) and isinstance(total, int) and count > total:
            yield f"{part} is {count}, more than all {total} {whole}"


def _end_form(choices: list[Any]) -> Iterator[str]:
    ends = [index for index, choice in enumerate(choices) if choice.get("finish_reason") is not None]
    if len(ends) != 1:
        yield f"{len(ends)} finish reasons"
    elif ends[0] != len(choices) - 1:
        yield "a choice after the finish reason"


def _choices(chunk: Any) -> list[Data]:
    return form.objects(inner(chunk, "choices"))


CHAT = Api(
    "openai-chat", "/v1/chat/completions", "https://platform.openai.com/docs/api-reference/chat", chat_body,
    read_chat, chat_form, spelled=spelled_chat, names="usual", asks_for_usage=True,
)  # fmt: skip
COMPLETIONS = Api(
    "openai-completions", "/v1/completions", "https://platform.openai.com/docs/api-reference/completions",
    completions_body, read_completions, completions_form, spelled=spelled_completions, names="usual",
    content="prompt", asks_for_usage=True, raw=True,
)  # fmt: skip
