"""Whole streams of each API, with the finish report that each event must give."""

from __future__ import annotations

from typing import Any

from finish_payloads import ABORT, CALLS, END, EOS, FILTER, ID, LENGTH, REFUSED, STOP, UNKNOWN, Report


class Stream:
    """JSON events of a stream. Only the event with index `at` reports the end."""

    def __init__(self, api: str, events: list[dict[str, Any]], report: Report, at: int = -1) -> None:
        self.api, self.events, self.report = api, events, report
        self.reports: list[Report] = [None] * len(events)
        self.reports[at] = report


USAGE = {"input_tokens": 5, "output_tokens": 26}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": USAGE}
CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
TEXT = {"id": "1", "object": "text_completion", "created": 1, "model": "m"}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "output": [],
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
    "error": None,
    "incomplete_details": None,
}


def anthropic(report: Report, stop_reason: str, stop_sequence: str | None = None) -> Stream:
    delta = {"stop_reason": stop_reason, "stop_sequence": stop_sequence}
    events = [
        {"type": "message_start", "message": {**MESSAGE, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ABC"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 26}},
        {"type": "message_stop"},
    ]
    return Stream("anthropic", events, report, at=-2)


def chat(report: Report, **last: Any) -> Stream:
    choices: list[list[dict[str, Any]]] = [
        [],  # Azure's first chunk
        [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
        [{"index": 0, "delta": {"content": "ABC"}, "finish_reason": None, "matched_stop": None, "stop_reason": None}],
        [{"index": 0, "delta": {}, **last}],
        [],
    ]
    usage = {"prompt_tokens": 5, "completion_tokens": 26, "total_tokens": 31}
    events = [{**CHUNK, "choices": choice, "usage": None} for choice in choices]
    events[-1]["usage"] = usage
    return Stream("openai", events, report, at=-2)


def completions(report: Report, **last: Any) -> Stream:
    choices = [{"index": 0, "text": "ABC", "finish_reason": None}, {"index": 0, "text": "", **last}]
    return Stream("openai", [{**TEXT, "choices": [choice]} for choice in choices], report)


def responses(report: Report, event: str, **response: Any) -> Stream:
    part = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    summary = {"item_id": "rs_1", "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}
    events = [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}},
        {"type": "response.in_progress", "response": {**RESPONSE, "status": "in_progress"}},
        {"type": "response.reasoning_summary_part.done", **summary, "status": "incomplete"},
        {"type": "response.output_text.delta", **part, "delta": "ABC", "logprobs": []},
        {"type": event, "response": {**RESPONSE, **response}},
    ]
    return Stream("responses", [{**event, "sequence_number": n} for n, event in enumerate(events)], report)


def ollama(report: Report, text: dict[str, Any], **last: Any) -> Stream:
    line = {"model": "m", "created_at": "2026-01-01T00:00:00Z", **text}
    return Stream("ollama", [{**line, "done": False}, {**line, "done": True, **last}], report)


def gemini(report: Report, part: dict[str, Any], reason: str) -> Stream:
    candidate = {"content": {"parts": [{"text": "ABC"}], "role": "model"}, "index": 0}
    last = {"content": {"parts": [part], "role": "model"}, "finishReason": reason, "index": 0}
    chunks = [{"candidates": [candidate]}, {"candidates": [last], "usageMetadata": {"totalTokenCount": 31}}]
    return Stream("gemini", chunks, report)


def bedrock(report: Report, **stop: Any) -> Stream:
    events: list[dict[str, Any]] = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"delta": {"text": "ABC"}, "contentBlockIndex": 0}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": stop},
        {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 26, "totalTokens": 31}, "metrics": {"latencyMs": 9}}},
    ]
    return Stream("bedrock", events, report, at=-2)


def tgi(report: Report, reason: str) -> Stream:
    token = {"id": 1, "text": "ABC", "logprob": -0.5, "special": False}
    details = {"finish_reason": reason, "generated_tokens": 2, "seed": None, "input_length": 5}
    events = [
        {"index": 1, "token": token, "generated_text": None, "details": None},
        {"index": 2, "token": token, "generated_text": "ABCABC", "details": details},
    ]
    return Stream("tgi", events, report)


CHAT, GENERATE = {"message": {"role": "assistant", "content": "A"}}, {"response": "A"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
SHELL = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "call_1",
    "status": "completed",
    "action": {"commands": ["ls"]},
    "environment": {"type": "local"},
}
SEARCH = {"type": "tool_search_call", "id": "ts_1", "arguments": {}, "execution": "client", "status": "completed"}
REFUSAL = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "refusal", "refusal": "No."}],
}
DONE = "response.completed"

STREAMS = {
    "anthropic stop_sequence": anthropic(END, "stop_sequence", "END"),
    "anthropic stop_sequence null": anthropic(STOP, "stop_sequence"),
    "anthropic end_turn": anthropic(EOS, "end_turn"),
    "anthropic tool_use": anthropic(CALLS, "tool_use"),
    "anthropic max_tokens": anthropic(LENGTH, "max_tokens"),
    "anthropic pause_turn": anthropic(("pause", None), "pause_turn"),
    "anthropic refusal": anthropic(REFUSED, "refusal"),
    "chat stop": chat(EOS, finish_reason="stop"),
    "chat length": chat(LENGTH, finish_reason="length"),
    "chat tool_calls": chat(CALLS, finish_reason="tool_calls"),
    "chat content_filter": chat(FILTER, finish_reason="content_filter"),
    "chat sglang string": chat(END, finish_reason="stop", matched_stop="END"),
    "chat sglang token": chat(ID, finish_reason="stop", matched_stop=2),
    "chat vllm string": chat(END, finish_reason="stop", stop_reason="END"),
    "chat vllm token": chat(ID, finish_reason="stop", stop_reason=2),
    "chat vllm eos": chat(EOS, finish_reason="stop", stop_reason=None),
    "chat dynamo": chat(END, finish_reason="stop", nvext={"stop_reason": "END"}),
    "chat openrouter": chat(STOP, finish_reason="stop", native_finish_reason="stop_sequence"),
    "chat unknown": chat(UNKNOWN, finish_reason="bored"),
    "completions stop": completions(EOS, finish_reason="stop"),
    "completions vllm string": completions(END, finish_reason="stop", stop_reason="END"),
    "responses completed": responses(EOS, DONE, status="completed"),
    "responses call": responses(CALLS, DONE, status="completed", output=[CALL]),
    "responses shell": responses(CALLS, DONE, status="completed", output=[SHELL]),
    "responses search": responses(CALLS, DONE, status="completed", output=[SEARCH]),
    "responses refusal": responses(REFUSED, DONE, status="completed", output=[REFUSAL]),
    "responses length": responses(
        LENGTH, "response.incomplete", status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    ),
    "responses filter": responses(
        FILTER, "response.incomplete", status="incomplete", incomplete_details={"reason": "content_filter"}
    ),
    "responses failed": responses(
        ABORT, "response.failed", status="failed", error={"code": "server_error", "message": "out of memory"}
    ),
    "ollama chat stop": ollama(EOS, CHAT, done_reason="stop"),
    "ollama chat length": ollama(LENGTH, CHAT, done_reason="length"),
    "ollama generate stop": ollama(EOS, GENERATE, done_reason="stop"),
    "ollama generate length": ollama(LENGTH, GENERATE, done_reason="length"),
    "gemini STOP": gemini(EOS, {"text": ""}, "STOP"),
    "gemini call": gemini(CALLS, {"functionCall": {"name": "f", "args": {}}}, "STOP"),
    "gemini SAFETY": gemini(FILTER, {"text": ""}, "SAFETY"),
    "bedrock stop_sequence": bedrock(
        END, stopReason="stop_sequence", additionalModelResponseFields={"stop_sequence": "END"}
    ),
    "bedrock stop_sequence nameless": bedrock(STOP, stopReason="stop_sequence"),
    "bedrock guardrail": bedrock(FILTER, stopReason="guardrail_intervened"),
    "tgi stop_sequence": tgi(STOP, "stop_sequence"),
    "tgi length": tgi(LENGTH, "length"),
    "sglang string": Stream(
        "sglang",
        [
            {"text": "A", "meta_info": {"finish_reason": None}},
            {"text": "AB", "meta_info": {"finish_reason": {"type": "stop", "matched": "END"}}},
        ],
        END,
    ),
    "llama.cpp word": Stream(
        "llama_cpp",
        [{"content": "A", "stop": False}, {"content": "", "stop": True, "stop_type": "word", "stopping_word": "END"}],
        END,
    ),
}
