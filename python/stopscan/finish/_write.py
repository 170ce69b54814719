"""The functions `to_*`. If an API has no word for a reason, they return the API's nearest documented word:

- A stop, a tool call, a pause or a refusal for which the API has no word is written as an end of turn.
- An abort is written as the API's word for an abort. If the API has no such word, its word for the token limit is
  written: it is the only other word that tells a client that the text is incomplete.
- An unknown reason is written as an end of turn. Most undocumented words mean an end of turn, and "length" makes
  clients discard the answer (`parse` of the openai client raises `LengthFinishReasonError`).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, TypedDict

from stopscan.finish._finish import Finish, Reason

# Each type alias has only words of the source that the comment before it names. So the values that `to_*` return also
# fit the types of the official clients.

# anthropic.types.StopReason
AnthropicReason: TypeAlias = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"]
# openai.types.chat.chat_completion.Choice. OpenAI's text completions have no "tool_calls".
OpenAIReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]
# ResponseStatus, and the `reason` of IncompleteDetails, in openai.types.responses
ResponsesStatus: TypeAlias = Literal["completed", "incomplete", "cancelled"]
IncompleteReason: TypeAlias = Literal["max_output_tokens", "content_filter"]
# docs/api.md of Ollama
OllamaReason: TypeAlias = Literal["stop", "length"]
# The words that `to_json` of the finish reasons writes, in sglang's schedule_batch.py
SglangType: TypeAlias = Literal["stop", "length", "abort"]
# tools/server/README.md of llama.cpp
LlamaCppType: TypeAlias = Literal["none", "eos", "limit", "word"]
# google.genai.types.FinishReason
GeminiReason: TypeAlias = Literal["STOP", "MAX_TOKENS", "SAFETY", "OTHER", "FINISH_REASON_UNSPECIFIED"]
# StopReason of Bedrock's runtime, in botocore's service model
BedrockReason: TypeAlias = Literal["end_turn", "tool_use", "max_tokens", "stop_sequence", "content_filtered"]
# huggingface_hub.TextGenerationOutputFinishReason
TgiReason: TypeAlias = Literal["length", "eos_token", "stop_sequence"]


class AnthropicFinish(TypedDict):
    stop_reason: AnthropicReason
    stop_sequence: str | None


class OpenAIFinish(TypedDict):
    """The fields that `to_openai` returns. Read `matched_stop` with `get`, because it is not always there.

    The type does not declare `matched_stop`, because no class of the client has this field. If the type declared it, a
    type checker would refuse a call that unpacks this dict into a class of the client.
    """

    finish_reason: OpenAIReason


class OpenAIStop(OpenAIFinish):
    matched_stop: str | int


class IncompleteDetails(TypedDict):
    reason: IncompleteReason


class ResponsesFinish(TypedDict):
    status: ResponsesStatus
    incomplete_details: IncompleteDetails | None


class OllamaFinish(TypedDict):
    done: Literal[True]
    done_reason: OllamaReason


class SglangReason(TypedDict):
    type: SglangType
    matched: str | int | None


class SglangFinish(TypedDict):
    finish_reason: SglangReason


class LlamaCppFinish(TypedDict):
    stop_type: LlamaCppType
    stopping_word: str


class GeminiFinish(TypedDict):
    finishReason: GeminiReason


class BedrockFinish(TypedDict):
    stopReason: BedrockReason


class TgiFinish(TypedDict):
    finish_reason: TgiReason


class _Words(NamedTuple):
    anthropic: AnthropicReason
    openai: OpenAIReason
    responses: ResponsesStatus
    incomplete: IncompleteReason | None
    ollama: OllamaReason
    sglang: SglangType
    llama_cpp: LlamaCppType
    gemini: GeminiReason
    bedrock: BedrockReason
    tgi: TgiReason


_END = _Words("end_turn", "stop", "completed", None, "stop", "stop", "eos", "STOP", "end_turn", "eos_token")
_CUT = _Words(
    "max_tokens",
    "length",
    "incomplete",
    "max_output_tokens",
    "length",
    "length",
    "limit",
    "MAX_TOKENS",
    "max_tokens",
    "length",
)
# A refusal is written as "content_filter", because "refusal" in a `Finish` means that the server ended the answer.
# OpenAI defines "content_filter" as "content was omitted due to a flag from our content filters". (When OpenAI's model
# itself refuses, OpenAI sends the refusal as content, with "stop".)
_BLOCKED = _END._replace(
    anthropic="refusal",
    openai="content_filter",
    responses="incomplete",
    incomplete="content_filter",
    gemini="SAFETY",
    bedrock="content_filtered",
)
_WORDS: dict[Reason, _Words] = {
    "stop_sequence": _END._replace(
        anthropic="stop_sequence", llama_cpp="word", bedrock="stop_sequence", tgi="stop_sequence"
    ),
    "stop_token": _END,
    "eos": _END,
    "length": _CUT,
    "tool_calls": _END._replace(anthropic="tool_use", openai="tool_calls", bedrock="tool_use"),
    "content_filter": _BLOCKED,
    "refusal": _BLOCKED,
    "pause": _END._replace(anthropic="pause_turn"),
    # llama.cpp sends "none" for an end that none of its other three words fits: "eos", "limit" and "word".
    "abort": _CUT._replace(responses="cancelled", incomplete=None, sglang="abort", llama_cpp="none", gemini="OTHER"),
    "repetition": _END,  # "length" would make clients discard the answer
    "unknown": _END._replace(gemini="FINISH_REASON_UNSPECIFIED"),
}


def to_anthropic(finish: Finish, /) -> AnthropicFinish:
    """Returns `stop_reason` and `stop_sequence`, for a message or for the delta of a `message_delta`.

    Both keys are always there. Keep nulls when you serialize: the schema requires `stop_sequence` even if it is null
    (vllm#55324).

    >>> to_anthropic(Finish("stop_sequence", "END"))
    {'stop_reason': 'stop_sequence', 'stop_sequence': 'END'}
    """
    return {"stop_reason": _words(finish).anthropic, "stop_sequence": _string(finish)}


def to_openai(finish: Finish, /) -> OpenAIFinish:
    """Returns the `finish_reason` of a choice, and `matched_stop` if a stop fired.

    sglang and smg also send the field `matched_stop`.

    >>> to_openai(Finish("stop_sequence", "END"))
    {'finish_reason': 'stop', 'matched_stop': 'END'}
    """
    reason = _words(finish).openai
    if finish.matched_stop is None:
        return {"finish_reason": reason}
    stopped: OpenAIStop = {"finish_reason": reason, "matched_stop": finish.matched_stop}
    return stopped


def to_responses(finish: Finish, /) -> ResponsesFinish:
    """Returns the `status` and `incomplete_details` of a response.

    A stop is "completed", because Responses has no word for stops.

    >>> to_responses(Finish("length"))
    {'status': 'incomplete', 'incomplete_details': {'reason': 'max_output_tokens'}}
    """
    words = _words(finish)
    return {
        "status": words.responses,
        "incomplete_details": None if words.incomplete is None else {"reason": words.incomplete},
    }


def to_ollama(finish: Finish, /) -> OllamaFinish:
    """Returns `done` and `done_reason`, two fields of the last line of an answer.

    `done_reason` is "stop" for a stop and for an end of turn: Ollama does not tell them apart.

    >>> to_ollama(Finish("length"))
    {'done': True, 'done_reason': 'length'}
    """
    return {"done": True, "done_reason": _words(finish).ollama}


def to_sglang(finish: Finish, /) -> SglangFinish:
    """Returns `finish_reason`, a field of `meta_info` in an answer of sglang's `/generate`.

    If no stop fired, `matched` in the `finish_reason` is None.

    >>> to_sglang(Finish("stop_token", 2))
    {'finish_reason': {'type': 'stop', 'matched': 2}}
    """
    return {"finish_reason": {"type": _words(finish).sglang, "matched": finish.matched_stop}}


def to_llama_cpp(finish: Finish, /) -> LlamaCppFinish:
    """Returns `stop_type` and `stopping_word`, two fields of the last object of an answer of `/completion`.

    A stop token is an "eos". If no stop string fired, `stopping_word` is "".

    >>> to_llama_cpp(Finish("stop_sequence", "END"))
    {'stop_type': 'word', 'stopping_word': 'END'}
    """
    return {"stop_type": _words(finish).llama_cpp, "stopping_word": _string(finish) or ""}


def to_gemini(finish: Finish, /) -> GeminiFinish:
    """Returns the `finishReason` of a candidate.

    Stops and calls are "STOP", because Gemini has no word for them.

    >>> to_gemini(Finish("content_filter"))
    {'finishReason': 'SAFETY'}
    """
    return {"finishReason": _words(finish).gemini}


def to_bedrock(finish: Finish, /) -> BedrockFinish:
    """Returns the `stopReason` of a Converse response or of a `messageStop` event.

    Bedrock names the stop in `additionalModelResponseFields`, and only if the request asks for this field. `to_bedrock`
    does not return the field: your server has to write it.

    >>> to_bedrock(Finish("stop_sequence", "END"))
    {'stopReason': 'stop_sequence'}
    """
    return {"stopReason": _words(finish).bedrock}


def to_tgi(finish: Finish, /) -> TgiFinish:
    """Returns `finish_reason`, a field of `details` in an answer of TGI's `/generate` or `/generate_stream`.

    TGI has no field for the stop that fired.

    >>> to_tgi(Finish("stop_sequence", "END"))
    {'finish_reason': 'stop_sequence'}
    """
    return {"finish_reason": _words(finish).tgi}


def _words(finish: Finish) -> _Words:
    if not isinstance(finish, Finish):
        raise TypeError(f"finish must be Finish, not {type(finish).__name__}: Finish.of(match) makes one of a match")
    return _WORDS[finish.reason]


def _string(finish: Finish) -> str | None:
    return finish.matched_stop if isinstance(finish.matched_stop, str) else None
