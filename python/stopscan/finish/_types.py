"""What the writers return. The words are those of the APIs' official clients, so that a value fits into their types."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

# anthropic.types.StopReason
AnthropicReason: TypeAlias = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"]
# openai.types.chat.chat_completion.Choice. Its text completions have no "tool_calls".
OpenAIReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]
# openai.types.responses.ResponseStatus, and IncompleteDetails beside it
ResponsesStatus: TypeAlias = Literal["completed", "incomplete", "cancelled"]
IncompleteReason: TypeAlias = Literal["max_output_tokens", "content_filter"]
# docs/api.md of Ollama
OllamaReason: TypeAlias = Literal["stop", "length"]
# `to_json` of the finish reasons in sglang's schedule_batch.py
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
    """The fields that `to_openai` returns. Read `matched_stop`, which is not always there, with `get`.

    `matched_stop` is not declared: no class of the client has the field, so a call that unpacks this dict into such a
    class would not type-check.
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
