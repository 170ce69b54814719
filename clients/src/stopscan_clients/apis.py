"""The table of APIs, with one row (``WireFormat``) for each. Two functions choose the row for an event or for an
answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stopscan import finish
from stopscan_clients.beside import Beside, Spans, Tokens
from stopscan_clients.outline import Outline
from stopscan_clients.paths import dotted, get, has
from stopscan_clients.wire_format import Ref, Text, WireFormat


def fields(text: str) -> tuple[str, ...]:
    """Returns the paths that ``text`` lists, separated by spaces. ``a.(b c)`` is short for ``a.b a.c``."""
    groups = re.findall(r"([^\s(]*)\(([^)]*)\)|(\S+)", text)
    return tuple(above + name for above, names, path in groups for name in names.split() or [path])


REASONING = "reasoning reasoning_content reasoning_details thinking refusal audio"


def _chat(at: str, **more: Any) -> WireFormat:
    return WireFormat(
        name="chat",
        signs=("choices.*.delta", "choices.*.message"),
        each="choices",
        texts={None: Text(f"{at}.content")},
        calls=(f"{at}.tool_calls", f"{at}.function_call"),
        words=("finish_reason", "finishReason"),  # Gemini's OpenAI route has sent `finishReason`
        finished=finish.from_openai,
        beside=Beside(
            Tokens("logprobs.content"), (Spans(f"{at}.annotations", ("url_citation.end_index", "end_index")),)
        ),
        # Each event of Perplexity has `citations` and `search_results`, the sources of the whole answer.
        about=fields(
            "id object created model system_fingerprint service_tier provider x_groq.id citations search_results"
        ),
        usage=fields("usage.# timings.# usage_breakdown.# x_groq.usage.#"),
        names=fields(
            f"index logprobs.(content refusal) {at}.(role annotations {REASONING}) {at}.content.*.(type text)"
        ),
        write=finish.to_openai,
        keeps=("index",),
        goes_on={"finish_reason": None, "logprobs": None},
        without_text=(at, {}),
        path=r"/completions/?$",  # chat, text, fim, agents
        limits="openai",
        done=True,
        **more,
    )


# Perplexity's chunks repeat the text so far in `message`
CHAT = _chat("delta", copies=("message",), whole=_chat("message"))

COMPLETIONS = replace(
    CHAT,
    name="completions",
    signs=("choices.*.text",),
    texts={None: Text("text")},
    beside=Beside(Tokens("logprobs", ("tokens", "token_logprobs", "top_logprobs", "text_offset"), "text_offset")),
    names=fields(
        "index text prompt_token_ids prompt_logprobs logprobs.(tokens token_logprobs top_logprobs text_offset)"
    ),
    without_text=None,
    copies=(),
    whole=None,
)

AT = {"index": Ref("place.0")}

ANTHROPIC = WireFormat(
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
    # The usage in `message_start` has more fields than the usage in a `message_delta`. Only fields that the latter has
    # are copied.
    known={"usage": (("message.usage", "usage"), "tokens|server_tool_use")},
    default={"usage": {"output_tokens": 0}},  # the schema requires `usage`, also if `message_start` is missing
    answer="content.*",
    about=fields(
        "id type role model index container context_management delta.(type text) content_block.(type text)"
        " content.*.(type text)"
    ),
    usage=fields("usage.#.(service_tier inference_geo type)"),
    path=r"^(?!.*/threads/).*/messages/?$|:(streamR|r)awPredict$",
    stops="stop_sequences",
)

CONVERSE_USAGE = "usage.# metrics.# serviceTier.#.type performanceConfig.#.latency"

BEDROCK = WireFormat(
    name="bedrock",
    kinds=("messageStart", "contentBlockDelta", "metadata"),
    answers=("output.message",),
    kind_is_key=True,
    texts={"contentBlockDelta": Text("contentBlockDelta.delta.text")},
    opens={"contentBlockStart": ("contentBlockStart.start.text", ("",))},
    ends=("contentBlockStop",),
    over=("messageStop",),
    places=("contentBlockIndex",),
    about=fields(
        "contentBlockDelta.(contentBlockIndex delta.text) output.message.(role content.*.text) ResponseMetadata"
    ),
    usage=fields(f"{CONVERSE_USAGE} metadata.({CONVERSE_USAGE})"),
    is_text=lambda piece: isinstance(get(piece, "text"), str),
    write=finish.to_bedrock,
    piece={"contentBlockDelta": {"contentBlockIndex": Ref("place.0"), "delta": {"text": Ref("text")}}},
    closing=((1, {"contentBlockStop": {"contentBlockIndex": Ref("place.0")}}), (0, {"messageStop": Ref("finish")})),
    answer="output.message.content.*",
    path=r"/converse(-stream)?$",
    stops="inferenceConfig.stopSequences",
)


COHERE_END = {"finish_reason": Ref("finish_reason"), "usage": Ref("usage")}

COHERE = WireFormat(
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
    beside_answer=Beside(spans=(Spans("message.citations", ("end",)),)),
    about=fields(
        "id type index delta.message.content.(type text) logprobs.(token_ids text logprobs)"
        " message.(role tool_plan citations content.*.type content.*.text)"
    ),
    usage=("usage.#", "delta.usage.#"),
    path=r"/v2/chat/?$",
    stops="stop_sequences",
    errors="bedrock",
)


def to_response(end: finish.Finish) -> dict[str, Any]:
    """Returns the status of a Responses answer. After a stop, also returns ``matched_stop`` with the stop. This field
    is an extension: the Responses API has no field for the stop."""
    named = {} if end.matched_stop is None else {"matched_stop": end.matched_stop}
    return {**finish.to_responses(end), **named}


WHERE = {"item_id": Ref("item_id"), "output_index": Ref("place.0"), "content_index": Ref("place.1")}
TEXT_DELTA = {"type": "response.output_text.delta", **WHERE, "delta": Ref("text"), "logprobs": Ref("entries")}
TEXT_DONE = {"type": "response.output_text.done", **WHERE, "text": Ref("sent"), "logprobs": Ref("sent_entries")}
PART_DONE = {"type": "response.content_part.done", **WHERE, "part": Ref("part")}
ITEM_DONE = {"type": "response.output_item.done", "output_index": Ref("place.0"), "item": Ref("item")}
COMPLETED = {"type": "response.completed", "response": Ref("response")}
ANNOTATIONS = (Spans("annotations", ("end_index", "index")),)
# The counts of tokens that clients such as Vercel's require in the usage of `response.completed`. They are 0 if a stop
# ends the stream before the API has sent them.
IN, OUT = dict.fromkeys(("cached_tokens", "cache_write_tokens"), 0), {"reasoning_tokens": 0}
DETAILS: dict[str, Any] = {"input_tokens_details": IN, "output_tokens_details": OUT}
NO_USAGE = {**DETAILS, "input_tokens": 0, "output_tokens": 0, "total_tokens": 0}

RESPONSES = WireFormat(
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
    keeps=("item_id",),
    default={"usage": NO_USAGE},
    closing=((2, TEXT_DONE), (2, PART_DONE), (1, ITEM_DONE), (0, COMPLETED)),
    memory=Outline,
    answer="output.*.content.*",
    beside_piece=Beside(Tokens("logprobs"), ANNOTATIONS),
    settled=("status", "completed"),
    about=fields(
        "type sequence_number item_id output_index content_index delta logprobs"
        " id object created_at completed_at model status error incomplete_details instructions metadata user"
        " parallel_tool_calls tool_choice tools temperature top_p top_logprobs max_output_tokens max_tool_calls"
        " previous_response_id conversation prompt prompt_cache_key prompt_cache_retention safety_identifier"
        " reasoning service_tier text truncation store background billing frequency_penalty presence_penalty"
        " output.*.(id type role status phase) output.*.content.*.(type text annotations logprobs)"
    ),
    usage=("usage.#", "response.usage.#"),
    path=r"/responses/?$",
)

# The fields of a Gemini part that is a text or a thought. A part with any other field, such as a function call, ends
# the text before it.
REMARKS = {"text", "thought", "thought_signature", "thoughtSignature", "part_metadata", "partMetadata"}

GROUNDING = (
    Spans(
        "groundingMetadata.groundingSupports",
        ("segment.endIndex",),
        in_bytes=True,
        piece=("segment.partIndex", "content.parts", "text"),
    ),
    Spans("citationMetadata.citationSources", ("endIndex",)),
    Spans("citationMetadata.citations", ("endIndex",)),
)

GEMINI = WireFormat(
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
    about=fields("modelVersion responseId createTime promptFeedback"),
    usage=fields("usageMetadata.#.(modality serviceTier trafficType)"),
    names=fields(
        "index content.role content.parts.*.(type text thought thoughtSignature) urlContextMetadata"
        " logprobsResult.(chosenCandidates topCandidates) citationMetadata.(citationSources citations)"
        " groundingMetadata.(groundingSupports groundingChunks webSearchQueries searchEntryPoint)"
    ),
    write=lambda end: {"finishReason": finish.to_gemini(end)["finishReason"]},
    keeps=("index", "content.role"),
    text_at="content.parts.0.text",
    without_text=("content.parts", []),
    path=r":(streamG|g)enerateContent$",
    stops="generationConfig.stopSequences",
    choices=("generationConfig.candidateCount",),
)


def camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


COUNTS = fields(
    "total_duration.# load_duration.# prompt_eval_count.# prompt_eval_duration.# eval_count.# eval_duration.#"
)


def _ollama(name: str, text: str, calls: tuple[str, ...], role: tuple[str, ...]) -> WireFormat:
    return WireFormat(
        name=name,
        signs=(f"done&{text}",),
        each="",
        texts={None: Text(text)},
        calls=calls,
        words=("done",),
        finished=finish.from_ollama,
        beside=Beside(Tokens("logprobs")),
        about=fields("model created_at remote_model remote_host"),
        usage=COUNTS,
        names=(*role, text, "logprobs", "thinking", "message.thinking"),
        write=finish.to_ollama,
        keeps=("model", "created_at", "remote_model", "remote_host", *role),
        goes_on={"done": False},
        path=r"/api/(chat|generate)/?$",
        stops="options.stop",
    )


OLLAMA = _ollama("ollama", "message.content", ("message.tool_calls",), ("message.role",))
GENERATE = _ollama("generate", "response", (), ())

LLAMA = WireFormat(
    name="llama.cpp",  # llama.cpp's own /completion
    signs=("content&stop",),
    each="",
    texts={None: Text("content")},
    words=("stop",),
    beside=Beside(Tokens("completion_probabilities")),
    about=fields("index id_slot model prompt generation_settings"),
    usage=fields("timings.# tokens_predicted.# tokens_evaluated.# tokens_cached.#"),
    names=fields("content completion_probabilities"),
    write=lambda end: {"stop": True, **finish.to_llama_cpp(end)},
    keeps=("index", "id_slot"),
    goes_on={"stop": False},
    path=r"/completion/?$",
)

TGI = WireFormat(
    name="tgi",  # Text Generation Inference's own /generate and /generate_stream
    signs=("token.text",),
    answers=("generated_text",),
    each="",
    number="",
    texts={None: Text("token.text", ("token.special", False))},
    words=("generated_text", "details.finish_reason"),
    about=fields("index token.(id text logprob special)"),
    usage=fields("details.generated_tokens.# details.input_length.# details.seed.#"),
    copies=("generated_text",),
    write=lambda end: {"details.generated_tokens": 0, "details.finish_reason": finish.to_tgi(end)["finish_reason"]},
    keeps=fields("index token.(id logprob special)"),
    goes_on={"generated_text": None, "details": None},
    path=r"/generate_stream/?$",  # /generate is sglang's, too
    stops="parameters.stop",
)
TGI = replace(TGI, whole=replace(TGI, texts={None: Text("generated_text")}, names=("generated_text",), copies=()))

WATSONX = WireFormat(
    name="watsonx",
    signs=("results.*.generated_text",),
    each="results",
    texts={None: Text("generated_text")},
    words=("stop_reason",),
    finished=lambda unit: str(unit["stop_reason"]).lower() != "not_finished" or None,
    about=fields("model_id model_version created_at"),
    names=fields("generated_text generated_token_count.# input_token_count.# seed.#"),
    write=lambda end: {"stop_reason": "stop_sequence"},
    goes_on={"stop_reason": "not_finished"},
    path=r"/text/generation(_stream)?$",
    stops="parameters.stop_sequences",
)

LLAMA_ON_BEDROCK = WireFormat(
    name="llama",  # Llama through Bedrock's InvokeModel
    signs=("generation",),
    each="",
    texts={None: Text("generation")},
    words=("stop_reason",),
    names=("generation",),
    usage=fields("prompt_token_count.# generation_token_count.# amazon-bedrock-invocationMetrics.#"),
    write=lambda end: {"stop_reason": "stop"},
    goes_on={"stop_reason": None},
    path=r"/invoke(-with-response-stream)?$",  # for any model; ``stops`` and ``limits`` are those of Anthropic's models
    stops="stop_sequences",
    limits="anthropic",
    errors="bedrock",
)

SGLANG = WireFormat(
    name="sglang",  # sglang's own /generate
    signs=("meta_info&text",),
    each="",
    cumulative=True,
    texts={None: Text("text")},
    words=("meta_info.finish_reason",),
    about=fields("index text meta_info.id meta_info.weight_version"),
    usage=fields("meta_info.(prompt_tokens.# completion_tokens.# cached_tokens.# reasoning_tokens.# e2e_latency.#)"),
    write=lambda end: {"meta_info.finish_reason": finish.to_sglang(end)["finish_reason"]},
    keeps=("index", "meta_info.id"),
    path=r"/generate/?$",
    stops="sampling_params.stop",
)


def _dashscope(at: str, role: str) -> WireFormat:
    return WireFormat(
        name="dashscope",
        signs=(f"output.{at.replace('0', '*')}",),
        each="",
        cumulative=True,
        texts={None: Text(f"output.{at}")},
        words=(word := f"output.{at.removesuffix('message.content').removesuffix('text')}finish_reason",),
        finished=lambda unit: None if get(unit, *dotted(word)) == "null" else True,
        about=fields(f"request_id {role}"),
        names=(f"output.{at.replace('0', '*')}",),
        usage=("usage.#",),
        write=lambda end: {word: "stop"},
        keeps=fields(f"request_id {role}"),
        path=r"/services/aigc/.*generation$",
        stops="parameters.stop",
    )


CONVERSATIONS = WireFormat(
    name="conversations",  # Mistral's
    kinds=("conversation.", "tool.execution.", "agent.handoff.", "function.call."),
    answers=("object=conversation.response",),
    texts={"message.output.delta": Text("content")},
    over=("conversation.response.done", "conversation.response.error"),
    places=("output_index", "content_index"),
    write=lambda end: {},  # the API has no field for the finish reason
    piece={"type": "message.output.delta", "id": Ref("id"), **WHERE, "role": "assistant", "content": Ref("text")},
    keeps=("id", "item_id"),
    closing=((0, {"type": "conversation.response.done", "usage": Ref("usage")}),),
    known={"usage": (("usage",), "")},
    default={"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}},
    answer="outputs.*.content.*",
    about=fields(
        "type id created_at output_index content_index model agent_id role content.(type text) object conversation_id"
        " outputs.*.(object type id role model agent_id created_at completed_at) outputs.*.content.*.(type text)"
    ),
    usage=("usage.#",),
    path=r"/conversations(/[^/]+(/restart)?)?$",
    stops="completion_args.stop",
    limits="mistral",
)

DASHSCOPE = _dashscope("text", ""), _dashscope("choices.0.message.content", "output.choices.*.message.role")

# An event or an answer gets the first row that recognizes it. If an event fits two rows, the row of the API that sends
# it must come first.
TABLE = (
    *(ANTHROPIC, COHERE, CONVERSATIONS, RESPONSES, CHAT, COMPLETIONS, GEMINI, OLLAMA, GENERATE, LLAMA, BEDROCK),
    *(TGI, WATSONX, SGLANG, *DASHSCOPE, LLAMA_ON_BEDROCK),
)
PINGS = ("ping", "keepalive")


def is_ping(event: Mapping[str, Any]) -> bool:
    return event.get("type") in PINGS


def is_error(event: Mapping[str, Any]) -> bool:
    """Returns whether an event or an answer reports that the API has failed."""
    return event.get("type") == "error" or (bool(event.get("error")) and not event.get("choices"))


# Fields that do not show which API has sent an event. An event that has one of them, and no sign of its API, may be an
# error, or a chunk of OpenAI or Azure with an empty list of choices.
NEUTRAL = ("error", "choices", "usage", "done")


def api_of_event(event: Mapping[str, Any]) -> WireFormat | None:
    """Returns the row of ``TABLE`` for the API that sent an event. Returns ``None`` for an event that several APIs
    send, such as a ping or an error. A later event may show the API.

    Raises ``TypeError`` for an event of an unknown API.
    """
    for api in TABLE:
        if api.knows(event):
            return api
    kind = event.get("type")
    if kind in ("error", *PINGS) or (not isinstance(kind, str) and any(name in event for name in NEUTRAL)):
        return None
    raise TypeError(f"not an event of a known API: {described(event)}")


def api_of_answer(answer: Mapping[str, Any]) -> WireFormat | None:
    """Returns the row of ``TABLE`` for an answer that is not a stream, or ``None`` if the answer has no text to cut,
    such as an error of MiniMax or a tool call of Cohere.

    Raises ``TypeError`` for an answer of an unknown API.
    """
    row = next((api for api in TABLE if any(has(answer, sign) for sign in api.answers or api.signs)), None)
    no_text = "choices" in answer or ("finish_reason" in answer and isinstance(answer.get("message"), dict))
    if row is None and not no_text:
        raise TypeError(f"not an answer of a known API: {described(answer)}")
    return row


def described(value: Mapping[str, Any]) -> str:
    """Returns a short description of the value, for an error message."""
    kind = f" of type {value['type']!r}" if isinstance(value.get("type"), str) else ""
    return f"a dict with the keys {', '.join(map(repr, value))}{kind}" if value else "an empty dict"
