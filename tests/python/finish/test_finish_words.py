"""One test for each word that servers use to say why an answer ended, with the document or code that has the word."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from finish_harness import APIS, as_object, read

from stopscan.finish import Finish
from stopscan.finish._words import GOING_ON, SOURCES, WORDS


class Word(NamedTuple):
    api: str
    word: str
    reason: str
    source: str


def payload(api: str, word: Any) -> dict[str, Any]:
    """The smallest payload that contains a word."""
    match api:
        case "anthropic":
            return {"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": None}}
        case "openai":
            return {"choices": [{"index": 0, "delta": {}, "finish_reason": word}]}
        case "responses":
            return {"object": "response", "status": word, "output": []}
        case "incomplete":
            return {"object": "response", "status": "incomplete", "incomplete_details": {"reason": word}}
        case "ollama":
            return {"response": "", "done": True, "done_reason": word}
        case "sglang":
            return {"text": "A", "meta_info": {"finish_reason": word and {"type": word}}}
        case "llama_cpp":
            return {"content": "", "stop_type": word, "stopping_word": ""}
        case "gemini":
            return {"candidates": [{"content": {"parts": [{"text": "A"}]}, "finishReason": word}]}
        case "bedrock":
            return {"messageStop": {"stopReason": word}}
    return {"generated_text": "A", "details": {"finish_reason": word, "generated_tokens": 2}}


def words(api: str, source: str, **reasons: str) -> list[Word]:
    return [Word(api, word, reason, source) for reason, text in reasons.items() for word in text.split()]


TABLE = [
    *words("openai", "openai.types.chat.chat_completion.Choice", eos="stop", length="length",
          tool_calls="tool_calls function_call", content_filter="content_filter"),
    *words("openai", "Together, docs", eos="eos"),
    *words("openai", "TGI's OpenAI route and the HF router", eos="eos_token", stop_sequence="stop_sequence"),
    *words("openai", "Cohere's OpenAPI description", eos="COMPLETE", stop_sequence="STOP_SEQUENCE",
          length="MAX_TOKENS ERROR_LIMIT", abort="TIMEOUT ERROR USER_CANCEL", content_filter="ERROR_TOXIC",
          tool_calls="TOOL_CALL"),
    *words("openai", "proxied Anthropic; the first also xAI", eos="end_turn", length="max_tokens",
          tool_calls="tool_use", refusal="refusal"),
    *words("openai", "Mistral, docs", length="model_length", abort="error"),
    *words("openai", "DeepSeek, docs", abort="insufficient_system_resource"),
    *words("openai", "Zhipu and Moonshot, docs", content_filter="sensitive", abort="network_error",
          length="model_context_window_exceeded"),
    *words("openai", "TensorRT-LLM, executor/result.py", abort="cancelled timeout"),
    *words("openai", "vLLM's FINISH_REASON_STRINGS; sglang and LMDeploy", abort="abort error",
          repetition="repetition"),
    *words("openai", "LMDeploy, chat_completions/serving.py", abort="parse_error"),
    *words("openai", "Ollama's OpenAI route", unknown="load unload"),
    *words("openai", "Gemini's OpenAI route", eos="STOP", length="MAX_TOKENS",
          content_filter="SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII", abort="MALFORMED_FUNCTION_CALL"),
    Word("openai", "content_filter: PROHIBITED_CONTENT", "content_filter", "Gemini's OpenAI route"),
    Word("openai", "function_call_filter: MALFORMED_FUNCTION_CALL", "abort", "Gemini's OpenAI route"),
    *words("openai", "litellm#23273", content_filter="guardrail_intervened", unknown="finish_reason_unspecified",
          abort="malformed_function_call"),
    *words("openai", "xai_sdk", eos="REASON_STOP", length="REASON_MAX_LEN REASON_MAX_CONTEXT",
          tool_calls="REASON_TOOL_CALLS", abort="REASON_TIME_LIMIT", unknown="REASON_INVALID"),
    *words("openai", "watsonx, TextGenResult and TextChatResultChoice", eos="eos_token", stop_sequence="stop_sequence",
          length="max_tokens token_limit", abort="cancelled time_limit error"),
    *words("openai", "AI21, docs", eos="endoftext"),
    *words("openai", "Baidu, docs", eos="normal"),
    *words("openai", "GigaChat, docs", content_filter="blacklist"),
    *words("openai", "Aleph Alpha, docs", eos="end_of_text", stop_sequence="stop_sequence_reached",
          length="maximum_tokens"),
    *words("openai", "LLM Gateway, getUnifiedFinishReason",
          abort="canceled gateway_error upstream_error client_error"),
    *words("openai", "Vercel AI SDK, LanguageModelV2FinishReason", eos="stop", tool_calls="tool-calls",
          content_filter="content-filter", abort="error other", unknown="unknown"),
    *words("openai", "AutoGen, FinishReasons", tool_calls="function_calls"),
    *words("openai", "local engines that have no id for it", eos="stop_token"),
    *words("openai", "LM Studio, LlmPredictionStopReason, and earendil-works/pi#2107", eos="end eosFound",
          stop_sequence="stopStringFound", length="maxPredictedTokensReached contextLengthReached",
          tool_calls="toolCalls", abort="userStopped modelUnloaded failed"),
    *words("openai", "Amazon Titan, AWS's docs", eos="FINISH FINISHED", stop_sequence="STOP_CRITERIA_MET",
          length="LENGTH", content_filter="CONTENT_FILTERED", abort="RAG_QUERY_WHEN_RAG_DISABLED"),
    *words("anthropic", "anthropic.types.beta.BetaStopReason", eos="end_turn", stop_sequence="stop_sequence",
          length="max_tokens model_context_window_exceeded", tool_calls="tool_use", refusal="refusal",
          pause="pause_turn compaction"),
    *words("anthropic", "Bedrock", content_filter="guardrail_intervened content_filtered",
          abort="malformed_tool_use malformed_model_output"),
    *words("bedrock", "StopReason in botocore's service model", eos="end_turn", stop_sequence="stop_sequence",
          length="max_tokens model_context_window_exceeded", tool_calls="tool_use",
          content_filter="guardrail_intervened content_filtered", abort="malformed_model_output malformed_tool_use"),
    *words("responses", "openai.types.responses.ResponseStatus", eos="completed", abort="failed cancelled incomplete"),
    *words("incomplete", "openai.types.responses.response.IncompleteDetails", length="max_output_tokens",
          content_filter="content_filter"),
    *words("incomplete", "Responses, docs", length="max_messages", pause="steered"),
    *words("incomplete", "servers that pass on the name of chat completions", length="max_tokens"),
    *words("gemini", "google.genai.types.FinishReason", eos="STOP", length="MAX_TOKENS CONTINUATION",
          content_filter="SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY ESCALATION "
          "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION PUP_LIMITED_DISABLED MODEL_ARMOR",
          abort="MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE "
          "MALFORMED_RESPONSE NO_IMAGE IMAGE_OTHER OTHER",
          unknown="FINISH_REASON_UNSPECIFIED"),
    *words("ollama", "docs/api.md", eos="stop", length="length"),
    *words("ollama", "server/routes.go", unknown="load unload"),
    *words("ollama", "servers in Ollama's form", tool_calls="tool_calls"),
    *words("sglang", "schedule_batch.py", eos="stop", length="length", abort="abort"),
    *words("llama_cpp", "tools/server/README.md", eos="eos", stop_sequence="word", length="limit", abort="none"),
    *words("tgi", "huggingface_hub.TextGenerationOutputFinishReason", eos="eos_token", length="length",
          stop_sequence="stop_sequence"),
]  # fmt: skip


@pytest.mark.parametrize("case", TABLE, ids=lambda case: f"{case.api}-{case.word} ({case.source})")
def test_a_word_is_read(case: Word) -> None:
    finish = Finish(case.reason, raw=case.word)  # type: ignore[arg-type]
    assert read(case.api.replace("incomplete", "responses"), payload(case.api, case.word)) == finish
    assert read(case.api.replace("incomplete", "responses"), as_object(payload(case.api, case.word))) == finish


# `TABLE` lacks these words, because servers send them in other forms than those that `payload` makes.
ELSEWHERE = {"stopped_word", "stopped_eos", "stopped_limit"} | {
    f"finish_{end}" for end in ("matched_str", "matched_token", "length", "abort")
}


def test_every_word_of_the_table_is_tested() -> None:
    assert {case.word.lower().replace("-", "_").partition(": ")[0] for case in TABLE} | ELSEWHERE == set(WORDS)
    assert all(word == word.lower().replace("-", "_") for word in WORDS)


def test_no_word_of_the_table_has_two_meanings() -> None:
    words = [word for words in SOURCES.values() for meanings in words.values() for word in meanings.split()]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("api", [*APIS, "incomplete"])
def test_a_word_that_nobody_documented_is_unknown(api: str) -> None:
    for word in ("bored", "Ende gut", "stop!", "\ud800"):
        assert read(api.replace("incomplete", "responses"), payload(api, word)) == Finish("unknown", raw=word)


# Ollama is left out, because a line with `done` ends its stream, whatever the word is.
@pytest.mark.parametrize("api", [api for api in APIS if api != "ollama"])
@pytest.mark.parametrize(
    "word",
    [
        pytest.param("", id="sglang#3912, ollama#4357, spring-ai#1358"),
        pytest.param("null", id="KoboldCpp"),
        pytest.param("None", id="sglang before 0.4"),
        pytest.param("not_finished", id="watsonx"),
        pytest.param("NOT_FINISHED", id="watsonx, in capitals"),
        pytest.param("queued", id="Responses"),
        pytest.param("in_progress", id="Responses"),
        pytest.param(None, id="OpenAI"),
    ],
)
def test_the_stream_goes_on(api: str, word: str | None) -> None:
    assert word in (*GOING_ON, "", None)
    assert read(api, payload(api, word)) is None
    assert read(api, as_object(payload(api, word))) is None
