"""What servers say at the end, and what they mean by it: one table for all APIs, since servers and proxies say each
other's words. The words are in lower case, and case does not count (LiteLLM lowers Gemini's: litellm#23273).

No word has two meanings, but for one: a "stop", like every word for "eos", is a stop if the payload names one.
"""

from __future__ import annotations

from collections.abc import Mapping

from stopscan.finish._finish import Reason

WORDS: Mapping[str, Reason] = {
    # OpenAI: openai.types.chat.chat_completion.Choice
    "stop": "eos",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",  # deprecated
    "content_filter": "content_filter",
    # Anthropic: anthropic.types.beta.BetaStopReason
    "end_turn": "eos",  # also xAI, on the OpenAI route
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",  # "treat the response as truncated"
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",  # beta: the turn goes on when the compacted content is sent back
    # Bedrock: StopReason in botocore's service model; Anthropic's route through it says them, too
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_model_output": "abort",
    "malformed_tool_use": "abort",
    # Responses: openai.types.responses.Response, status and incomplete_details.reason
    "completed": "eos",  # also OpenRouter's native_finish_reason
    "failed": "abort",
    "cancelled": "abort",  # also TensorRT-LLM and dynamo#14525
    "incomplete": "abort",  # with no word why
    "max_output_tokens": "length",
    "max_messages": "length",
    "steered": "pause",  # a successor goes on with the queued input
    # Gemini: google.genai.types.FinishReason, also on Gemini's OpenAI route
    "safety": "content_filter",
    "recitation": "content_filter",
    "language": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "image_safety": "content_filter",
    "image_prohibited_content": "content_filter",
    "image_recitation": "content_filter",
    "escalation": "content_filter",
    "pup_limited_disabled": "content_filter",
    "model_armor": "content_filter",
    "continuation": "length",  # "reached the per-request token limit"
    "malformed_function_call": "abort",
    "unexpected_tool_call": "abort",
    "too_many_tool_calls": "abort",
    "missing_thought_signature": "abort",
    "malformed_response": "abort",
    "no_image": "abort",
    "image_other": "abort",
    "other": "abort",  # "for a reason not otherwise specified"
    "finish_reason_unspecified": "unknown",
    "function_call_filter": "abort",  # on its OpenAI route: "function_call_filter: MALFORMED_FUNCTION_CALL"
    # Ollama: routes.go, for requests that only load or unload a model
    "load": "eos",
    "unload": "eos",
    # vLLM: FINISH_REASON_STRINGS in vllm/v1/engine; sglang and LMDeploy say the first, and LMDeploy the second
    "abort": "abort",
    "error": "abort",  # also Mistral, Cohere and OpenRouter
    "repetition": "abort",  # the engine ended a generation that repeats itself
    # LMDeploy: serve/openai/chat_completions/serving.py
    "parse_error": "abort",
    # TensorRT-LLM: CompletionOutput in executor/result.py
    "timeout": "abort",  # also Cohere
    # TGI: huggingface_hub.TextGenerationOutputFinishReason, also on its and the HF router's OpenAI route
    "eos_token": "eos",
    # Together's docs, and dynamo's detailed_finish_reason
    "eos": "eos",
    # Cohere: FinishReason in its OpenAPI description, and on vLLM's Cohere route
    "complete": "eos",
    "tool_call": "tool_calls",
    "error_toxic": "content_filter",
    "error_limit": "length",  # "the maximum number of tokens for its context length"
    "user_cancel": "abort",
    # Mistral's docs
    "model_length": "length",
    # DeepSeek's docs
    "insufficient_system_resource": "abort",
    # Zhipu's and Moonshot's docs
    "sensitive": "content_filter",
    "network_error": "abort",
    # llama.cpp: tools/server/README.md, and the booleans before `stop_type`
    "word": "stop_sequence",
    "limit": "length",
    "none": "abort",
    "stopped_word": "stop_sequence",
    "stopped_eos": "eos",
    "stopped_limit": "length",
    # sglang before 0.4: `__str__` of the finish reasons in schedule_batch.py, "FINISH_MATCHED_STR: END"
    "finish_matched_str": "stop_sequence",
    "finish_matched_token": "eos",
    "finish_length": "length",
    "finish_abort": "abort",
}
