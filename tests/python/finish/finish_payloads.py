"""Payloads of each API, each with the report that must be read from it: a reason and a stop. The report is None while
the stream goes on."""

from __future__ import annotations

from typing import Any

Report = tuple[str, str | int | None] | None

END = ("stop_sequence", "END")
ID = ("stop_token", 2)
EOS = ("eos", None)
LENGTH = ("length", None)
CALLS = ("tool_calls", None)
FILTER = ("content_filter", None)
ABORT = ("abort", None)
UNKNOWN = ("unknown", None)
REFUSED = ("refusal", None)
STOP = ("stop_sequence", None)  # the payload does not say which stop fired

ERROR = {"error": {"message": "out of memory"}}


def chat(**fields: Any) -> dict[str, Any]:
    return {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "A"}, **fields}]}


def chunk(**fields: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "A"}, **fields}]}


def final(event: str, **response: Any) -> dict[str, Any]:
    return {"type": event, "sequence_number": 9, "response": {"object": "response", "output": [], **response}}


def sglang(reason: Any) -> dict[str, Any]:
    return {"text": "A", "meta_info": {"finish_reason": reason}}


def gemini(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "index": 0, **candidate}]}


REFUSAL = {"type": "message", "content": [{"type": "refusal"}]}
CASES: dict[str, list[tuple[Any, Report]]] = {
    "anthropic": [
        ({"type": "message", "content": [], "stop_reason": "end_turn", "stop_sequence": None}, EOS),
        ({"type": "message", "content": [], "stop_reason": "stop_sequence", "stop_sequence": "END"}, END),
        ({"type": "message", "content": [], "stop_reason": "stop_sequence", "stop_sequence": None}, STOP),
        ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}, EOS),
        ({"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"}}, END),
        ({"type": "message_delta", "delta": {"stop_reason": None, "stop_sequence": None}}, None),
        ({"type": "message_start", "message": {"stop_reason": None, "stop_sequence": None}}, None),
        ({"type": "message_start", "message": {"stop_reason": "", "stop_sequence": ""}}, None),
        ({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "A"}}, None),
        ({"type": "message_stop"}, None),
        # an event of the stream helper of Anthropic's client
        ({"type": "message_stop", "message": {"stop_reason": "stop_sequence", "stop_sequence": "END"}}, END),
        ({"type": "ping"}, None),
        # old text completions, whole and as a stream
        ({"completion": "A", "stop_reason": "stop_sequence", "stop": "END"}, END),
        ({"completion": "A", "stop_reason": "stop_sequence", "stop": None}, STOP),
        ({"type": "completion", "completion": "A", "stop_reason": None, "stop": None}, None),
        ({"type": "error", **ERROR}, ABORT),
    ],
    "openai": [
        (chat(finish_reason="stop"), EOS),
        (chat(finish_reason="stop", matched_stop=None, stop_reason=None), EOS),
        (chat(finish_reason="stop", matched_stop="END"), END),  # sglang, smg
        (chat(finish_reason="stop", matched_stop=2), ID),
        (chat(finish_reason="stop", matched_stop=0), ("stop_token", 0)),
        *((chat(finish_reason="stop", matched_stop=stop), EOS) for stop in ([2, 3], True, -1)),
        (chat(finish_reason="stop", stop_reason="END"), END),  # vLLM, TensorRT-LLM
        (chat(finish_reason="stop", stop_reason=2), ID),
        (chat(finish_reason="stop", stopping_word="END"), END),  # llama.cpp
        (chat(finish_reason="stop", stopping_word=""), EOS),
        ({**chat(finish_reason="stop"), "stopping_word": "END"}, END),
        ({**chat(finish_reason="stop"), "__verbose": {"stop_type": "word", "stopping_word": "END"}}, END),
        (chat(finish_reason="stop", nvext={"stop_reason": "END"}), END),  # dynamo
        ({**chat(finish_reason="stop"), "nvext": {"stop_reason": "END"}}, END),
        ({**chat(finish_reason="stop"), "nvext": {"stop_reason": 2}}, ID),
        ({**chat(finish_reason="stop"), "nvext": {"detailed_finish_reason": "cancelled"}}, ABORT),  # dynamo#14525
        (chat(finish_reason="stop", nvext={"detailed_finish_reason": "cancelled"}), ABORT),
        ({**chat(finish_reason="stop"), "nvext": {"detailed_finish_reason": "eos"}}, EOS),
        (chat(finish_reason="stop", native_finish_reason="stop_sequence"), STOP),  # OpenRouter
        (chat(finish_reason="stop", native_finish_reason="end_turn"), EOS),
        (chat(finish_reason="stop", native_finish_reason="completed"), EOS),
        (chat(finish_reason="stop", native_finish_reason="refusal"), REFUSED),
        (chat(finish_reason="stop", native_finish_reason="bored"), EOS),
        (chat(finish_reason="bored", native_finish_reason="max_output_tokens"), LENGTH),
        (chat(finish_reason="error", native_finish_reason="MALFORMED_FUNCTION_CALL"), ABORT),  # litellm#23273
        (chat(finish_reason="length", native_finish_reason="stop"), LENGTH),
        (chat(finish_reason="content_filter", native_finish_reason="max_tokens"), FILTER),
        (chat(finish_reason=None, native_finish_reason=None), UNKNOWN),  # a whole answer, so it has ended
        (chunk(finish_reason=None, native_finish_reason=None), None),
        (chat(finish_reason="stop_sequence"), STOP),  # TGI
        (chat(finish_reason="stop_sequence", stop_reason="END"), END),
        (chat(finish_reason="tool_calls", matched_stop=2), CALLS),
        (chat(finish_reason="length", stop_reason=None), LENGTH),
        (chat(finish_reason="repetition", stop_reason="repetition_detected"), ("repetition", None)),
        (chat(finish_reason={"type": "stop", "matched": "END"}), END),  # sglang's own form
        (chat(finish_reason={"type": "length", "length": 9}), LENGTH),
        (chat(finish_reason="FINISH_MATCHED_STR: END"), END),  # sglang before 0.4
        (chat(finish_reason="FINISH_LENGTH: 16"), LENGTH),
        *((chat(finish_reason=word), UNKNOWN) for word in (None, "", "null")),
        *((chunk(finish_reason=word), None) for word in (None, "", "null")),
        (chat(), UNKNOWN),
        (chunk(), None),
        (chunk(finish_reason=None, finishReason="stop"), EOS),  # jakobdylanc/llmcord#84: the non-null field counts
        (chunk(finish_reason="", finishReason="stop"), None),
        (chunk(finish_reason=["END"]), UNKNOWN),  # langchain#37370: the list of the request's stops instead of a reason
        # Perplexity's full streams have both `message` and `delta`
        ({"choices": [{"index": 0, "message": {"content": "A"}, "delta": {"content": "A"}, "finish_reason": None}]},
         None),
        (chat(finish_reason="", message={"content": "4", "function_call": {"name": "", "arguments": ""}}), UNKNOWN),
        (chat(finish_reason="", message={"role": "assistant", "tool_calls": [{"id": "a"}]}), CALLS),
        ({"choices": [{"message": {"content": ""}, "finish_reason": None, "error": {"code": 502}}]}, ABORT),
        ({"object": "text_completion", "choices": [{"text": "A", "finish_reason": "length"}]}, LENGTH),
        ({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}, None),  # Azure's first chunk
        ({"choices": [], "usage": {"total_tokens": 9}}, None),
        ({"choices": None, "usage": {"total_tokens": 9}}, None),
        ({"object": "chat.reasoning.done", "choices": [{"index": 0, "message": {}}]}, None),  # Perplexity (concise)
        ({"object": "chat.completion.done", "choices": [{"index": 0, "finish_reason": "stop"}]}, EOS),
        ({"choices": [{"index": 1, "finish_reason": "length"}]}, LENGTH),
        ({"choices": [{"index": "0", "finish_reason": "length"}]}, LENGTH),
        ({"choices": [{"index": "1", "finish_reason": "stop"}, {"index": "0", "finish_reason": "length"}]}, LENGTH),
        ({"choices": [{"index": 2, "finish_reason": "stop"}, {"index": 1, "finish_reason": "length"}]}, LENGTH),
        ({"choices": [{"index": 1, "finish_reason": "length"}, {"index": 0, "finish_reason": "stop"}]}, EOS),
        ({"index": 1, "finish_reason": "length"}, LENGTH),  # a choice by itself
        ({"type": "chunk", "chunk": chat(finish_reason="stop", matched_stop="END")}, END),  # openai's stream helper
        ({"type": "chunk", "chunk": chunk(finish_reason=None)}, None),
        (ERROR, ABORT),
        ({"choices": [], **ERROR}, ABORT),
    ],
    "responses": [
        ({"object": "response", "output": [], "error": None, "status": "completed"}, EOS),
        ({"object": "response", "status": "queued", "error": None}, None),
        ({"object": "response", "status": "in_progress", "error": None}, None),
        ({"output": [{"type": "reasoning"}, {"type": "function_call", "call_id": "a"}], "status": "completed"}, CALLS),
        ({"output": [REFUSAL], "status": "completed"}, REFUSED),
        ({"output": [{"type": "function_call", "call_id": "a"}], "status": "failed"}, ABORT),
        (
            {
                "output": [{"type": "function_call", "call_id": "a"}],
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
            LENGTH,
        ),
        (final("response.completed", status="completed"), EOS),
        (final("response.incomplete", status="incomplete", incomplete_details={"reason": "max_tokens"}), LENGTH),
        (final("response.incomplete", status="incomplete", incomplete_details=None), ABORT),
        (final("response.failed", status="failed", **ERROR), ABORT),
        (final("response.completed"), EOS),  # without a status, the event's type counts
        (final("response.completed", status="failed"), ABORT),
        *((final(f"response.{end}", status=None), ABORT) for end in ("failed", "incomplete", "cancelled")),
        (final("response.created", status="in_progress"), None),
        ({"type": "response.output_text.delta", "delta": "A"}, None),
        ({"type": "response.reasoning_summary_part.done", "status": "incomplete"}, None),
        ({"type": "response.output_item.done", "item": {"type": "function_call", "status": "completed"}}, None),
        ({"type": "error", "code": "server_error", "message": "out of memory"}, ABORT),
    ],
    "ollama": [
        ({"message": {"content": "A"}, "done": True, "done_reason": "stop"}, EOS),
        ({"message": {"content": "", "tool_calls": [{"id": "a"}]}, "done": True, "done_reason": "stop"}, CALLS),
        ({"message": {"content": "", "tool_calls": []}, "done": True, "done_reason": "stop"}, EOS),
        ({"message": {"content": "", "tool_calls": "null"}, "done": True, "done_reason": "stop"}, EOS),
        ({"message": {"content": "", "tool_calls": [{"id": "a"}]}, "done": True, "done_reason": "length"}, LENGTH),
        ({"message": {"content": "", "tool_calls": [{"id": "a"}]}, "done": False}, None),
        ({"response": "A", "done": True, "done_reason": "length"}, LENGTH),
        ({"response": "", "done": True}, EOS),
        ({"response": "", "done": True, "done_reason": ""}, EOS),
        ({"response": "A", "done": False}, None),
        ({"response": "A", "done": False, "done_reason": "stop"}, None),
        ({"error": "model not found"}, ABORT),
    ],
    "sglang": [
        (sglang({"type": "stop", "matched": "END"}), END),
        (sglang({"type": "stop", "matched": 2}), ID),
        (sglang({"type": "stop", "matched": [1, 2]}), EOS),
        (sglang({"type": "length", "length": 9}), LENGTH),
        (sglang({"type": "abort", "message": "Aborted", "status_code": None}), ABORT),
        (sglang(None), None),
        ({"finish_reason": {"type": "stop", "matched": "END"}}, END),  # meta_info by itself
        # sglang before 0.4
        (sglang("FINISH_MATCHED_STR: END"), END),
        (sglang("FINISH_MATCHED_STR: a: b\n"), ("stop_sequence", "a: b\n")),
        (sglang("FINISH_MATCHED_TOKEN: 2"), ID),
        (sglang("FINISH_MATCHED_TOKEN: 4294967295"), ("stop_token", 2**32 - 1)),
        (sglang("FINISH_MATCHED_TOKEN: [1, 2]"), EOS),
        (sglang("FINISH_MATCHED_TOKEN: " + "9" * 5000), EOS),
        (sglang("FINISH_LENGTH: 16"), LENGTH),
        (sglang("FINISH_ABORT"), ABORT),
        (sglang("stop"), EOS),
        (sglang("stop: 2"), EOS),  # sglang puts a stop after a colon only in words that begin with FINISH_
        (sglang("length"), LENGTH),
        (sglang("None"), None),
        (ERROR, ABORT),
    ],
    "llama_cpp": [
        ({"content": "A", "stop": True, "stop_type": "word", "stopping_word": "END"}, END),
        ({"content": "A", "stop": True, "stop_type": "word", "stopping_word": ""}, STOP),
        ({"content": "A", "stop": True, "stop_type": "eos", "stopping_word": ""}, EOS),
        ({"content": "A", "stop": True, "stop_type": "limit", "stopping_word": ""}, LENGTH),
        ({"content": "A", "stop": True, "stop_type": "none", "stopping_word": ""}, ABORT),
        ({"content": "A", "stop": False, "stop_type": "none", "stopping_word": ""}, None),
        ({"content": "A", "stop": False}, None),
        # before llama.cpp had `stop_type`
        ({"stop": True, "stopped_word": True, "stopped_eos": False, "stopped_limit": False, "stopping_word": "END"},
         END),
        ({"stop": True, "stopped_word": False, "stopped_eos": True, "stopped_limit": False, "stopping_word": ""}, EOS),
        ({"stop": True, "stopped_word": False, "stopped_eos": False, "stopped_limit": True}, LENGTH),
        ({"stop": True, "stopped_word": False, "stopped_eos": False, "stopped_limit": False}, UNKNOWN),
        ({"content": "A", "stop": True}, UNKNOWN),  # the request did not ask for the fields with the reason
        (ERROR, ABORT),
    ],
    "gemini": [
        (gemini({"text": "A"}, finishReason="STOP"), EOS),
        (gemini({"text": "A"}, {"functionCall": {"name": "f"}}, finishReason="STOP"), CALLS),
        (gemini({"text": "A"}, {"functionCall": {"name": "f"}}, finishReason="MAX_TOKENS"), LENGTH),
        (gemini({"text": "A"}, finish_reason="MAX_TOKENS"), LENGTH),
        (gemini({"function_call": {"name": "f"}}, finish_reason="STOP"), CALLS),
        (gemini({"text": "A"}), None),
        (gemini({"function_call": {"name": "f"}}), None),
        ({"candidates": [{"finishReason": "SAFETY"}]}, FILTER),
        ({"candidates": [{"index": 1, "finishReason": "STOP"}]}, EOS),
        ({"candidates": [{"index": 1, "finishReason": "STOP"}, {"finishReason": "MAX_TOKENS"}]}, LENGTH),
        ({"content": {"parts": [{"text": "A"}]}, "index": 1, "finishReason": "MAX_TOKENS"}, LENGTH),  # no `candidates`
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}}, FILTER),
        ({"candidates": [], "prompt_feedback": {"block_reason": "JAILBREAK"}}, FILTER),
        ({**gemini({"text": "A"}), "promptFeedback": {"safetyRatings": []}}, None),
        ({"usageMetadata": {"totalTokenCount": 9}}, None),
        ({"error": {"code": 503, "status": "UNAVAILABLE"}}, ABORT),
    ],
    "bedrock": [
        ({"output": {"message": {}}, "stopReason": "end_turn", "usage": {}}, EOS),
        ({"stopReason": "stop_sequence", "additionalModelResponseFields": {"stop_sequence": "END"}}, END),
        ({"stopReason": "stop_sequence", "additionalModelResponseFields": None}, STOP),
        ({"stopReason": "end_turn", "additionalModelResponseFields": {"stop_sequence": None}}, EOS),
        ({"messageStop": {"stopReason": "max_tokens"}}, LENGTH),
        ({"messageStop": {"stopReason": "stop_sequence", "additionalModelResponseFields": {"stop_sequence": "END"}}},
         END),
        ({"stopReason": "stop_sequence", "additionalModelResponseFields": {"delta": {"stop_sequence": "END"}}}, END),
        ({"messageStop": {"stopReason": "stop_sequence",
                          "additionalModelResponseFields": {"delta": {"stop_sequence": "END"}}}}, END),
        ({"messageStart": {"role": "assistant"}}, None),
        ({"contentBlockDelta": {"delta": {"text": "A"}, "contentBlockIndex": 0}}, None),
        ({"metadata": {"usage": {"totalTokens": 9}}}, None),
        *(
            ({f"{kind}Exception": {"message": "out of memory"}}, ABORT)
            for kind in ("internalServer", "modelStreamError", "validation", "throttling", "serviceUnavailable",
                         "modelTimeout", "modelNotReady")
        ),
    ],
    "tgi": [
        ({"generated_text": "A", "details": {"finish_reason": "stop_sequence", "generated_tokens": 2}}, STOP),
        ({"token": {"text": "A"}, "generated_text": None, "details": None}, None),
        ({"token": {"text": "A"}, "generated_text": "A", "details": {"finish_reason": "eos_token"}}, EOS),
        ({"finish_reason": "length", "generated_tokens": 2}, LENGTH),  # the details by themselves
        ({"generated_text": "A"}, None),
        ({"error": "out of memory", "error_type": "generation"}, ABORT),
    ],
}  # fmt: skip
