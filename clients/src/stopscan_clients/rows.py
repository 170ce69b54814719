"""The table of APIs, with one row (``Api``) for each, and the choice of the row for an event or an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stopscan import finish
from stopscan_clients.api import Api, Ref, Text, respelled
from stopscan_clients.beside import Beside, Spans, Tokens
from stopscan_clients.outline import Outline
from stopscan_clients.paths import get, has, items

REASONING = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "refusal", "audio")

CHAT = Api(
    name="chat",
    signs=("choices.*.delta", "choices.*.message"),
    each="choices",
    texts={None: Text("delta.content")},
    calls=("delta.tool_calls", "delta.function_call"),
    words=("finish_reason", "finishReason"),  # Gemini's OpenAI route has sent `finishReason`
    finished=finish.from_openai,
    beside=Beside(
        Tokens("logprobs.content"),
        (Spans("delta.annotations", ("url_citation.end_index", "end_index")),),
        # No call may follow a stop. `token_ids` and `stop_reason` are vLLM's fields about the uncut text.
        ("delta.tool_calls", "delta.function_call", "delta.parsed", "token_ids", "stop_reason"),
    ),
    copies=("message",),  # Perplexity repeats in `message` the text so far
    event_drops=("__verbose",),  # a field of llama.cpp
    usage=("usage", "timings"),
    silent=REASONING,
    write=finish.to_openai,
    keeps=("index",),
    goes_on={"finish_reason": None, "logprobs": None},
    without_text=("delta", {}),
    whole=("delta", "message"),
    limits="openai",
    done=True,
)

COMPLETIONS = replace(
    CHAT,
    name="completions",
    signs=("choices.*.text",),
    texts={None: Text("text")},
    beside=Beside(
        Tokens("logprobs", ("tokens", "token_logprobs", "top_logprobs", "text_offset"), "text_offset"),
        drops=("token_ids", "stop_reason"),
    ),
    silent=("prompt_token_ids",),
    without_text=None,
    whole=("", ""),
)

AT = {"index": Ref("place.0")}

ANTHROPIC = Api(
    name="anthropic",
    kinds=("message_start", "message_stop"),
    answers=("type=message&content[]",),
    texts={
        "content_block_delta": Text("delta.text", ("delta.type", "text_delta")),
        "content_block_start": Text("content_block.text", ("content_block.type", "text")),
    },
    opens={"content_block_start": ("content_block.type", ("text",))},
    ends=("content_block_stop",),
    over=("message_delta", "message_stop"),
    places=("index",),
    write=finish.to_anthropic,
    piece={"type": "content_block_delta", **AT, "delta": {"type": "text_delta", "text": Ref("text")}},
    closing=(
        (1, {"type": "content_block_stop", **AT}),
        (0, {"type": "message_delta", "delta": Ref("finish"), "usage": Ref("usage")}),
        (0, {"type": "message_stop"}),
    ),
    known={"usage": (("message.usage", "usage"), "tokens|server_tool_use")},  # only fields that `message_delta` has
    default={"usage": {"output_tokens": 0}},  # the schema requires `usage`, also if `message_start` is missing
    answer="content.*",
    beside_piece=Beside(drops=("parsed_output", "citations")),
    stops="stop_sequences",
)

BEDROCK = Api(
    name="bedrock",
    kinds=("messageStart", "contentBlockDelta", "metadata"),
    answers=("output.message",),
    kind_is_key=True,
    texts={"contentBlockDelta": Text("contentBlockDelta.delta.text")},
    opens={"contentBlockStart": ("contentBlockStart.start.text", ("",))},
    ends=("contentBlockStop",),
    over=("messageStop",),
    places=("contentBlockIndex",),
    beside=Beside(drops=("metadata.trace",)),  # the trace of a guardrail
    beside_answer=Beside(drops=("trace", "additionalModelResponseFields")),
    is_text=lambda piece: isinstance(get(piece, "text"), str),
    write=finish.to_bedrock,
    piece={"contentBlockDelta": {"contentBlockIndex": Ref("place.0"), "delta": {"text": Ref("text")}}},
    closing=((1, {"contentBlockStop": {"contentBlockIndex": Ref("place.0")}}), (0, {"messageStop": Ref("finish")})),
    answer="output.message.content.*",
    stops="inferenceConfig.stopSequences",
)


COHERE_END = {"finish_reason": Ref("finish_reason"), "usage": Ref("usage")}

COHERE = Api(
    name="cohere",
    kinds=("message-start", "tool-plan-delta", "tool-call-", "citation-"),
    answers=("message.content.*", "message.tool_calls.*&finish_reason"),
    texts=dict.fromkeys(("content-delta", "content-start"), Text("delta.message.content.text")),
    opens={"content-start": ("delta.message.content.type", ("text", None))},
    ends=("content-end",),
    over=("message-end",),
    places=("index",),
    beside=Beside(Tokens("logprobs", single=True)),
    write=lambda end: {"finish_reason": "STOP_SEQUENCE" if end.reason == "stop_sequence" else "COMPLETE"},
    piece={"type": "content-delta", **AT, "delta": {"message": {"content": {"text": Ref("text")}}}},
    closing=((1, {"type": "content-end", **AT}), (0, {"type": "message-end", "id": Ref("id"), "delta": COHERE_END})),
    known={"usage": (("delta.usage",), ""), "id": (("id",), None)},
    answer="message.content.*",
    beside_answer=Beside(spans=(Spans("message.citations", ("end",)),), drops=("message.tool_calls", "logprobs")),
    silent=("tool_plan",),
    stops="stop_sequences",
    errors="bedrock",
)


def to_response(end: finish.Finish) -> dict[str, Any]:
    """Returns the status, and the stop in `matched_stop`, the field of chat completions, because the Responses API has
    no field for the stop."""
    named = {} if end.matched_stop is None else {"matched_stop": end.matched_stop}
    return {**finish.to_responses(end), **named}


WHERE = {"item_id": Ref("item_id"), "output_index": Ref("place.0"), "content_index": Ref("place.1")}
TEXT_DELTA = {"type": "response.output_text.delta", **WHERE, "delta": Ref("text"), "logprobs": Ref("rows")}
TEXT_DONE = {"type": "response.output_text.done", **WHERE, "text": Ref("said"), "logprobs": Ref("said_rows")}
PART_DONE = {"type": "response.content_part.done", **WHERE, "part": Ref("part")}
ITEM_DONE = {"type": "response.output_item.done", "output_index": Ref("place.0"), "item": Ref("item")}
COMPLETED = {"type": "response.completed", "response": Ref("response")}
ANNOTATIONS = (Spans("annotations", ("end_index", "index"), lenient=True),)

RESPONSES = Api(
    name="responses",
    kinds=("response.",),
    answers=("output[]", "object=response"),
    texts={"response.output_text.delta": Text("delta")},
    opens={
        "response.output_item.added": ("item.type", ("message",)),
        "response.content_part.added": ("part.type", ("output_text",)),
    },
    ends=("response.output_text.done", "response.content_part.done", "response.output_item.done"),
    over=("response.completed", "response.incomplete", "response.failed", "response.cancelled"),
    repeats={
        "response.output_text.done": "",
        "response.content_part.done": "part",
        "response.output_item.done": "item.content.*",
        "response.completed": "response.output.*.content.*",
        "response.incomplete": "response.output.*.content.*",
    },
    places=("output_index", "content_index"),
    beside=Beside(Tokens("logprobs")),
    is_text=lambda piece: get(piece, "type") in ("output_text", "response.output_text.done"),
    write=to_response,
    piece=TEXT_DELTA,
    closing=((2, TEXT_DONE), (2, PART_DONE), (1, ITEM_DONE), (0, COMPLETED)),
    memory=Outline,
    answer="output.*.content.*",
    beside_piece=Beside(Tokens("logprobs"), ANNOTATIONS, ("parsed",)),
    settled={"status": "completed"},
    beside_answer=Beside(drops=("output_parsed", "output_text")),
)

# The fields that a part of text or thought may have. A part with another field is content: it ends the text before it.
REMARKS = {"text", "thought", "thought_signature", "thoughtSignature", "part_metadata", "partMetadata"}

GROUNDING = (
    Spans("groundingMetadata.groundingSupports", ("segment.endIndex",), in_bytes=True),
    Spans("citationMetadata.citationSources", ("endIndex",)),
    Spans("citationMetadata.citations", ("endIndex",)),
)

GEMINI = Api(
    name="gemini",
    signs=("candidates", "usageMetadata", "promptFeedback"),
    each="candidates",
    texts={None: Text("content.parts")},
    is_text=lambda piece: isinstance(get(piece, "text"), str) and not get(piece, "thought"),
    is_content=lambda piece: any(value is not None and name not in REMARKS for name, value in piece.items()),
    words=("finishReason",),
    finished=finish.from_gemini,
    final=False,
    beside=Beside(Tokens("logprobsResult", ("chosenCandidates", "topCandidates")), GROUNDING),
    usage=("usageMetadata",),
    write=lambda end: {"finishReason": finish.to_gemini(end)["finishReason"]},
    keeps=("index", "content.role"),
    text_at="content.parts.0.text",
    without_text=("content.parts", []),
    stops="generationConfig.stopSequences",
    choices=("generationConfig.candidateCount", "generation_config.candidate_count"),
)


def snake(key: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in key)


def camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


# `model_dump` of Gemini's Python client spells the keys in snake case, and the HTTP API in camel case.
GEMINI_PYTHON = replace(
    respelled(GEMINI, snake),
    name="gemini_python",
    write=lambda end: {"finish_reason": finish.to_gemini(end)["finishReason"]},
)

COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")


def _ollama(name: str, text: str, calls: tuple[str, ...], role: tuple[str, ...]) -> Api:
    return Api(
        name=name,
        signs=(f"done&{text}",),
        each="",
        texts={None: Text(text)},
        calls=calls,
        words=("done",),
        finished=finish.from_ollama,
        beside=Beside(Tokens("logprobs"), drops=(*calls, "context")),  # `context` has the ids of all tokens
        usage=COUNTS,
        silent=REASONING,
        write=finish.to_ollama,
        keeps=("model", "created_at", "remote_model", "remote_host", *role),
        goes_on={"done": False},
        stops="options.stop",
    )


OLLAMA = _ollama("ollama", "message.content", ("message.tool_calls",), ("message.role",))
GENERATE = _ollama("generate", "response", (), ())

LLAMA = Api(
    name="llama.cpp",  # llama.cpp's own /completion
    signs=("content&stop",),
    each="",
    texts={None: Text("content")},
    words=("stop",),
    beside=Beside(Tokens("completion_probabilities"), drops=("tokens",)),
    usage=("timings", "tokens_predicted", "tokens_evaluated", "tokens_cached"),
    silent=("prompt", "generation_settings"),
    write=lambda end: {"stop": True, **finish.to_llama_cpp(end)},
    keeps=("index", "id_slot"),
    goes_on={"stop": False},
    limits="none",
)

TABLE = (ANTHROPIC, COHERE, RESPONSES, CHAT, COMPLETIONS, GEMINI, GEMINI_PYTHON, OLLAMA, GENERATE, LLAMA, BEDROCK)
PINGS = ("ping", "keepalive")
# An event that has only one of these signs does not show its API: an error, or a chunk of OpenAI or Azure with
# an empty list of choices.
NEUTRAL = ("error", "choices", "usage", "done")


def api_of_event(event: Mapping[str, Any]) -> Api | None:
    """Returns the row of an event, or ``None`` if the event does not show its API but a later event may.

    Raises ``TypeError`` for an event of an unknown API.
    """
    for api in TABLE:
        if api.knows(event):
            return _spelled(api, event)
    kind = event.get("type")
    if kind in ("error", *PINGS) or (not isinstance(kind, str) and any(name in event for name in NEUTRAL)):
        return None
    raise TypeError(f"not an event of a known API: {described(event)}")


def api_of_answer(answer: Mapping[str, Any]) -> Api | None:
    """Returns the row of ``TABLE`` for an answer that is not a stream, or ``None`` if the answer has no text to cut,
    such as an error of MiniMax or a tool call of Cohere.

    Raises ``TypeError`` for an answer of an unknown API.
    """
    found = next((api for api in TABLE if any(has(answer, sign) for sign in api.answers or api.signs)), None)
    no_text = "choices" in answer or ("finish_reason" in answer and isinstance(answer.get("message"), dict))
    if found is None and not no_text:
        raise TypeError(f"not an answer of a known API: {described(answer)}")
    return found and _spelled(found, answer)


def _spelled(api: Api, told: Mapping[str, Any]) -> Api:
    """Returns the row. For Gemini, returns the row with the spelling (camel or snake case) of the event or answer."""
    if api is not GEMINI:
        return api
    names = [*told, *(name for one in items(told.get("candidates")) if isinstance(one, dict) for name in one)]
    return GEMINI_PYTHON if any("_" in name for name in names) else GEMINI


def described(value: Mapping[str, Any]) -> str:
    """Returns a short description of the value, for an error message."""
    kind = f" of type {value['type']!r}" if isinstance(value.get("type"), str) else ""
    return f"a dict with the keys {', '.join(map(repr, value))}{kind}" if value else "an empty dict"
