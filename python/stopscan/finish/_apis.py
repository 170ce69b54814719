"""`APIS`, a table with the names of each API's fields, and the functions `from_*`, which use the table to read
payloads."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from stopscan.finish._finish import Finish
from stopscan.finish._read import WRAPPERS, FinishFields, conditions, field, is_call, paths

ApiName: TypeAlias = Literal[
    "anthropic", "openai", "responses", "ollama", "sglang", "llama_cpp", "gemini", "bedrock", "tgi"
]  # fmt: skip


def _bodies(inner: str) -> tuple[tuple[str, ...], ...]:
    return ((), *paths(inner), *paths(WRAPPERS))


def _is_tool_use(block: Any) -> bool:
    """Returns whether a block is a call that the API's caller must run. Anthropic itself runs some tools: the blocks of
    their calls have other types."""
    return field(block, "type") == "tool_use" and is_call(block)


# The types in openai.types.responses.ResponseOutputItem that always wait for the API's caller.
WAITING = (
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "apply_patch_call",
    "mcp_approval_request",
)


def _waits_for_caller(item: Any) -> bool:
    """Returns whether the API's caller must answer an output item, such as a call of a function. Some calls need no
    answer, because OpenAI itself runs them: shell calls in its containers, and some tool searches."""
    kind = field(item, "type")
    if kind == "shell_call":
        kind = kind if field(field(item, "environment"), "type") in (None, "local") else None
    elif kind == "tool_search_call":
        kind = kind if field(item, "execution") == "client" else None
    elif kind not in WAITING:
        return False
    return kind is not None and is_call(item)


APIS: dict[ApiName, FinishFields] = {
    "anthropic": FinishFields(
        name="Anthropic stop_reason",
        words=paths("stop_reason"),
        bodies=_bodies("delta message"),
        silent=("content_block_delta", "text", "thinking", "input_json"),
        last_events=conditions("type=message_stop"),
        stops=paths("stop_sequence stop"),
        failed=conditions("result.error result.type=canceled result.type=expired"),
        calls=paths("content_block content.*"),
        is_call=_is_tool_use,
    ),
    "openai": FinishFields(
        name="OpenAI finish_reason",
        words=paths("finish_reason finishReason completionReason stop_reason"),
        # Fields that contain the answer. They belong, in order, to OpenAI's `stream` helper, DashScope, OCI, and the
        # end of Cohere v2's streams.
        bodies=_bodies("chunk output chatResponse delta"),
        # The field with the list of choices. The names belong, in order, to OpenAI, AI21, Cohere before its chat API,
        # watsonx, and Mistral on Bedrock.
        choice_lists=("choices", "completions", "generations", "results", "outputs"),
        done_field="is_end",  # Baidu's field. Baidu's `finish_reason` does not show the end: each chunk has "normal"
        whole_fields=paths("message.role message.content message.tool_calls"),
        # The field that names the stop. The paths belong, in order, to: sglang and smg; vLLM and TensorRT-LLM;
        # llama.cpp; dynamo; llama.cpp --verbose; Anthropic.
        stops=paths("matched_stop stop_reason stopping_word nvext.stop_reason __verbose.stopping_word stop_sequence"),
        # Fields with the model's own word. The servers that send them are, in order: OpenRouter, LM Studio,
        # dynamo#14525, and Vercel's AI SDK (the last two).
        native_words=paths(
            "native_finish_reason stats.stop_reason nvext.detailed_finish_reason finishReason.raw finish_reason.raw"
        ),
        # If Vercel's AI SDK does not know a word, it writes "other", and keeps the word in `raw`.
        vague_words=("other",),
        details=paths("finishReason.raw finish_reason.raw"),
        # Signs of an error. The servers that send them are, in order: vLLM, Baidu, MiniMax, DashScope.
        failed=conditions("object=error error_code base_resp.status_code code"),
        calls=paths(
            "delta.tool_calls.* message.tool_calls.* delta.function_call message.function_call message.toolCalls.*"
        ),
        refusals=conditions(
            "delta.refusal message.refusal delta.content.*.type=refusal message.content.*.type=refusal"
        ),
    ),
    "responses": FinishFields(
        name="Responses status",
        words=paths("status"),
        silent=(".delta",),
        # Each of these events has the status of the whole response. The `status` of any other event does not count: it
        # can be "incomplete" before the response ends, as in `response.reasoning_summary_part.done`.
        events=("response.completed", "response.incomplete", "response.failed", "response.cancelled"),
        vague_words=("incomplete",),
        details=paths("incomplete_details.reason status_details.reason"),  # the Realtime API uses the second path
        failed=conditions("type=error"),
        calls=paths("item output.*"),
        is_call=_waits_for_caller,
        # Some servers leave the refusal out of the last event, so the refusal is also read from earlier events.
        refusals=conditions(
            "type=response.refusal.delta type=response.refusal.done part.type=refusal "
            "item.content.*.type=refusal output.*.content.*.type=refusal"
        ),
        raw_is_type=True,
    ),
    "ollama": FinishFields(
        name="Ollama done_reason",
        words=paths("done_reason"),
        done_field="done",
        reason_if_done="eos",
        calls=paths("message.tool_calls.*"),
    ),
    "sglang": FinishFields(name="sglang finish_reason", words=paths("finish_reason"), bodies=_bodies("meta_info")),
    "llama_cpp": FinishFields(
        name="llama.cpp stop_type",
        words=paths("stop_type"),
        done_field="stop",
        flags=("stopped_word", "stopped_eos", "stopped_limit"),  # servers sent these before `stop_type` existed
        stops=paths("stopping_word"),
    ),
    "gemini": FinishFields(
        name="Gemini finishReason",
        words=paths("finish_reason finishReason"),
        choice_lists=("candidates",),
        # `to_dict` of google-generativeai writes a number in place of the word. The numbers are those of FinishReason
        # in google/ai/generativelanguage/v1beta/generative_service.proto. Vertex has other numbers from 6 on, but its
        # client writes words.
        numbered_words=(
            "", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT",
            "SPII", "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
        ),
        blocked=paths("prompt_feedback.block_reason promptFeedback.blockReason"),
        calls=paths("content.parts.*.function_call content.parts.*.functionCall"),
    ),
    "bedrock": FinishFields(
        name="Bedrock stopReason",
        words=paths("stopReason"),
        bodies=_bodies("messageStop"),
        # The field that names the stop. The second path is for Anthropic's models (vercel/ai#11410).
        stops=paths("additionalModelResponseFields.stop_sequence additionalModelResponseFields.delta.stop_sequence"),
        # The errors in a stream, after which no `messageStop` comes (ConverseStreamOutput, ResponseStream in botocore).
        failed=conditions(
            "internalServerException modelStreamErrorException validationException throttlingException "
            "serviceUnavailableException modelTimeoutException modelNotReadyException"
        ),
        calls=paths("contentBlockStart.start.toolUse output.message.content.*.toolUse"),
    ),
    "tgi": FinishFields(name="TGI finish_reason", words=paths("finish_reason"), bodies=_bodies("details")),
}  # fmt: skip


def from_anthropic(payload: object, /) -> Finish | None:
    """Returns the finish of a message or of a stream event, or None while the stream goes on.

    - `message_start` has a null reason, and `message_delta` has the real reason.
    - If `stop_reason` is "stop_sequence" but the stop is missing, the reason is "stop_sequence" without `matched_stop`.
    - Some servers write "end_turn" beside a `tool_use` block. The reason is then "tool_calls".
    - Old text completions, which name the stop in `stop`, are also read.

    For every `from_*`: `payload` is a dict, or an object with the same fields, such as an object of the official
    client. Any other payload raises `TypeError`; no other error is raised. An error event is an "abort". If `payload`
    is a line of a batch's results, the answer in that line is read.

    >>> from_anthropic({"type": "message_delta", "delta": {"stop_reason": "pause_turn", "stop_sequence": None}})
    Finish(reason='pause', matched_stop=None, offset=None, raw='pause_turn')
    >>> from_anthropic({"type": "ping"})
    """
    return APIS["anthropic"].read(payload)


def from_openai(payload: object, /) -> Finish | None:
    """Returns the finish of a chat completion, of a text completion, or of a chunk, or None while the stream goes on.

    - The choice with the lowest index counts. To read another choice, pass a payload that has only that choice.
    - "stop" is an "eos", unless the server names the stop. vLLM, TensorRT-LLM, sglang, smg, dynamo and llama.cpp can
      name it.
    - "stop" beside calls is "tool_calls", and "stop" beside a refusal is a "refusal".
    - An EOS from sglang is a "stop_token", because sglang sends the id of the EOS as `matched_stop`.
    - A chat completion that is not a chunk has always ended. If it has no `finish_reason`, the reason is "unknown".
    - For a chunk without choices, such as Azure's first chunk and a chunk for usage, the result is None.
    - If a router also sends the model's own word (OpenRouter, dynamo), and that word says more than "stop", the model's
      own word counts, and is in `raw`.
    - The older APIs of Cohere, AI21, watsonx, DashScope and Baidu are also read.

    >>> from_openai({"choices": [{"index": 0, "finish_reason": "stop", "matched_stop": "END"}]}).matched_stop
    'END'
    """
    return APIS["openai"].read(payload)


def from_responses(payload: object, /) -> Finish | None:
    """Returns the finish of a response, or of the event that ends its stream, or None while the stream goes on.

    A completed response that has a refusal is a "refusal". A completed response that has calls for the caller is
    "tool_calls". `raw` is the word that decided: the status, the reason why the response is incomplete, or the type of
    the call or the refusal. The `response.done` of the Realtime API is also read.

    >>> from_responses({"type": "response.completed", "response": {"status": "completed"}})
    Finish(reason='eos', matched_stop=None, offset=None, raw='completed')
    """
    return APIS["responses"].read(payload)


def from_ollama(payload: object, /) -> Finish | None:
    """Returns the finish of a line of `/api/chat` or `/api/generate`, or None if `done` is not true in this line.

    The word "stop" is read as "eos", because Ollama does not say what stopped the answer. Older servers send no word,
    which is also read as "eos". If the line has calls, the reason is "tool_calls".

    >>> from_ollama({"message": {"content": ""}, "done": True, "done_reason": "length"}).reason
    'length'
    """
    return APIS["ollama"].read(payload)


def from_sglang(payload: object, /) -> Finish | None:
    """Returns the finish of an object of `/generate`, or of its `meta_info`, or None while the stream goes on.

    An EOS is a "stop_token", because sglang sends the id of the EOS as the matched stop. sglang before 0.4 sends plain
    strings, which are also read.

    >>> from_sglang({"text": "A", "meta_info": {"finish_reason": {"type": "stop", "matched": "END"}}}).matched_stop
    'END'
    """
    return APIS["sglang"].read(payload)


def from_llama_cpp(payload: object, /) -> Finish | None:
    """Returns the finish of the final object of `/completion`, or None while the stream goes on.

    A `stop_type` of "none" is an "abort", unless the object says that more objects follow (`"stop": false`). The
    booleans that servers sent before `stop_type` existed are also read.

    >>> from_llama_cpp({"content": "", "stop": True, "stop_type": "word", "stopping_word": "END"}).matched_stop
    'END'
    """
    return APIS["llama_cpp"].read(payload)


def from_gemini(payload: object, /) -> Finish | None:
    """Returns the finish of a response or of a chunk, or None while the stream goes on.

    - The fields have the names of the HTTP API or those of google-genai.
    - The candidate with the lowest index counts. To read another, pass a payload that has only that candidate.
    - "STOP" is "tool_calls" if the candidate has calls. Otherwise "STOP" is an "eos", because Gemini has no word
      for stops.
    - A stream may say "STOP" in several chunks. Use the finish of the last such chunk, as `Reading` does.
    - A response to a blocked prompt has no candidates. Its reason is "content_filter".

    >>> from_gemini({"candidates": [{"content": {"parts": [{"text": "A"}]}, "finishReason": "MAX_TOKENS"}]}).reason
    'length'
    """
    return APIS["gemini"].read(payload)


def from_bedrock(payload: object, /) -> Finish | None:
    """Returns the finish of a Converse response or of the `messageStop` event of ConverseStream, or None while the
    stream goes on.

    Bedrock names the stop only if the request has `additionalModelResponseFieldPaths=["/stop_sequence"]`, or, for
    Anthropic's models, `["/delta/stop_sequence"]`. Some models write "end_turn" beside a `toolUse` block: the reason is
    then "tool_calls". For an answer of InvokeModel, use the `from_*` function of the model's own API instead.

    >>> from_bedrock({"messageStop": {"stopReason": "guardrail_intervened"}}).reason
    'content_filter'
    """
    return APIS["bedrock"].read(payload)


def from_tgi(payload: object, /) -> Finish | None:
    """Returns the finish of an answer of `/generate`, of the last event of `/generate_stream`, or of their `details`.

    TGI never names the stop. Only `details` says why the answer ended.

    >>> from_tgi({"generated_text": "A", "details": {"finish_reason": "stop_sequence", "generated_tokens": 2}})
    Finish(reason='stop_sequence', matched_stop=None, offset=None, raw='stop_sequence')
    """
    return APIS["tgi"].read(payload)
