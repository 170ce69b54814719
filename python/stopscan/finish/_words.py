"""The words with which servers say why an answer ended, and the reason that each word means, by source.

There is one table for all APIs, because servers and proxies use each other's words. The words are in lower case with
underscores. `from_*` read a hyphen as an underscore, and ignore case, because LiteLLM writes Gemini's words in lower
case (litellm#23273).

Each word has one meaning, whatever its source. Only a word for "eos", such as "stop", has a second one: it means a stop
if the payload names the stop.
"""

from __future__ import annotations

from collections.abc import Mapping

from stopscan.finish._finish import Reason

# Words that servers send while the stream goes on. The empty word means the same, because some servers send it in every
# chunk: sglang#3912, ollama#4357, spring-ai#1358.
GOING_ON = (
    "null",  # sent by KoboldCpp and DashScope
    "None",  # sent by sglang before 0.4. But "none", in lower case, is llama.cpp's word for an end
    "not_finished",  # sent by watsonx, whose docs of TextGenResult say "test for values case insensitive"
    "NOT_FINISHED",
    "queued",  # Responses
    "in_progress",
)

SOURCES: Mapping[str, Mapping[Reason, str]] = {
    "OpenAI: `openai.types.chat.chat_completion.Choice`": {
        "eos": "stop",
        "length": "length",
        "tool_calls": "tool_calls function_call",
        "content_filter": "content_filter",
    },
    "Anthropic: `anthropic.types.beta.BetaStopReason`": {
        "eos": "end_turn",
        "stop_sequence": "stop_sequence",
        "length": "max_tokens model_context_window_exceeded",  # Anthropic's docs say "treat the response as truncated"
        "tool_calls": "tool_use",
        "refusal": "refusal",
        "pause": "pause_turn compaction",  # the turn goes on when the client sends the compacted content back
    },
    "Bedrock Converse: `StopReason` in botocore's service model": {
        "content_filter": "guardrail_intervened content_filtered",
        "abort": "malformed_model_output malformed_tool_use",
    },
    "Amazon Titan: `completionReason`, AWS's docs": {
        "eos": "finish finished",
        "stop_sequence": "stop_criteria_met",
        "abort": "rag_query_when_rag_disabled",
    },
    "Responses: `openai.types.responses.Response`, `status` and `incomplete_details.reason`": {
        "eos": "completed",
        "abort": "failed cancelled incomplete",  # "incomplete" counts only if the response gives no reason
        "length": "max_output_tokens max_messages",
        "pause": "steered",  # another response goes on with the queued input
    },
    "Gemini: `google.genai.types.FinishReason`; with an explanation on its OpenAI route": {
        "content_filter": "safety recitation language blocklist prohibited_content spii image_safety "
        "image_prohibited_content image_recitation escalation pup_limited_disabled model_armor",
        "length": "continuation",  # Google's docs say "reached the per-request token limit"
        "abort": "malformed_function_call unexpected_tool_call too_many_tool_calls missing_thought_signature "
        "malformed_response no_image image_other other function_call_filter",
        "unknown": "finish_reason_unspecified",
    },
    "Ollama: `server/routes.go`, for requests that only load or unload": {"unknown": "load unload"},
    "vLLM: `FINISH_REASON_STRINGS`; sglang and LMDeploy, too": {"abort": "abort error", "repetition": "repetition"},
    "LMDeploy: `chat_completions/serving.py`": {"abort": "parse_error"},
    "TensorRT-LLM: `CompletionOutput`": {"abort": "timeout"},
    "TGI: `huggingface_hub.TextGenerationOutputFinishReason`": {"eos": "eos_token"},
    "Together's docs; dynamo's `detailed_finish_reason`": {"eos": "eos"},
    "Cohere: `FinishReason` in its OpenAPI description": {
        "eos": "complete",
        "tool_calls": "tool_call",
        "content_filter": "error_toxic",
        "length": "error_limit",  # Cohere defines it as "the maximum number of tokens for its context length"
        "abort": "user_cancel",
    },
    "Mistral's docs": {"length": "model_length"},
    "DeepSeek's docs": {"abort": "insufficient_system_resource"},
    "Zhipu's and Moonshot's docs": {"content_filter": "sensitive", "abort": "network_error"},
    "xAI: `FinishReason` of `xai_sdk`": {
        "eos": "reason_stop",
        "length": "reason_max_len reason_max_context",
        "tool_calls": "reason_tool_calls",
        "abort": "reason_time_limit",
        "unknown": "reason_invalid",
    },
    "watsonx: `TextGenResult` and `TextChatResultChoice`": {"length": "token_limit", "abort": "time_limit"},
    "AI21's docs": {"eos": "endoftext"},
    "Baidu's docs": {"eos": "normal"},
    "GigaChat's docs": {"content_filter": "blacklist"},
    "Aleph Alpha: `CompletionChoice` in its docs, as langchain4j and others read it": {
        "eos": "end_of_text",
        "stop_sequence": "stop_sequence_reached",
        "length": "maximum_tokens",
    },
    "LLM Gateway: `getUnifiedFinishReason`": {"abort": "canceled gateway_error upstream_error client_error"},
    # Vercel's docs say of "unknown": the model "has not transmitted a finish reason".
    "Vercel's AI SDK: `LanguageModelV2FinishReason`": {"unknown": "unknown"},
    "AutoGen: `FinishReasons`": {"tool_calls": "function_calls"},
    "Local engines that tell an end token from a stop string, without its id": {"eos": "stop_token"},
    "LM Studio: `LlmPredictionStopReason`; the first by earendil-works/pi#2107": {
        "eos": "end eosfound",
        "stop_sequence": "stopstringfound",
        "length": "maxpredictedtokensreached contextlengthreached",
        "tool_calls": "toolcalls",
        "abort": "userstopped modelunloaded",
    },
    "llama.cpp: `tools/server/README.md`, and the booleans before `stop_type`": {
        "stop_sequence": "word stopped_word",
        "eos": "stopped_eos",
        "length": "limit stopped_limit",
        "abort": "none",
    },
    "sglang before 0.4: `schedule_batch.py`, such as `FINISH_MATCHED_STR: END`": {
        "stop_sequence": "finish_matched_str",
        "eos": "finish_matched_token",
        "length": "finish_length",
        "abort": "finish_abort",
    },
}
WORDS: Mapping[str, Reason] = {
    word: reason for meanings in SOURCES.values() for reason, words in meanings.items() for word in words.split()
}
