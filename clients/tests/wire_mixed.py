"""The events of whole streams whose answers have several parts: text, reasoning and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wire import (
    TOKENS,
    Deltas,
    Event,
    ResponsesStream,
    anthropic_block,
    anthropic_end,
    anthropic_start,
    anthropic_text,
    bedrock,
    candidate,
    chat_choice,
    chat_chunk,
    gemini_chunk,
    ollama_line,
)

# A part of an answer: its kind ("text", "reasoning", "call") and the pieces in which it comes.
Parts = Sequence[tuple[str, Deltas]]


def chat_mixed(parts: Parts) -> list[Event]:
    events = [chat_chunk([chat_choice(role="assistant", content="", refusal=None)])]
    for kind, deltas in parts:
        for delta in deltas:
            call = {
                "index": 0,
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": delta},
            }
            field = {
                "text": {"content": delta},
                "reasoning": {"reasoning_content": delta},
                "call": {"tool_calls": [call]},
            }
            events.append(chat_chunk([chat_choice(**field[kind])]))
    return [*events, chat_chunk([chat_choice(finish_reason="stop")])]


def anthropic_mixed(parts: Parts) -> list[Event]:
    events = [anthropic_start()]
    for index, (kind, deltas) in enumerate(parts):
        if kind == "text":
            events += anthropic_text(index, deltas)
        elif kind == "reasoning":
            thoughts = [{"type": "thinking_delta", "thinking": delta} for delta in deltas]
            events += anthropic_block(index, {"type": "thinking", "thinking": "", "signature": ""}, thoughts)
        else:
            inputs = [{"type": "input_json_delta", "partial_json": delta} for delta in deltas]
            events += anthropic_block(
                index, {"type": "tool_use", "id": "t", "name": "get_weather", "input": {}}, inputs
            )
    return [*events, *anthropic_end()]


def responses_mixed(parts: Parts) -> list[Event]:
    stream = ResponsesStream()
    for kind, deltas in parts:
        text = "".join(deltas)
        if kind == "text":
            stream.message(deltas)
        elif kind == "reasoning":
            stream.item({"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
        else:
            call = {"id": "fc", "type": "function_call", "call_id": "c", "name": "get_weather", "arguments": text}
            stream.item({**call, "status": "completed"})
    return stream.completed()


def gemini_mixed(parts: Parts) -> list[Event]:
    events = []
    for kind, deltas in parts:
        for delta in deltas:
            call = {"functionCall": {"name": "get_weather", "args": {"x": delta}}}
            part = {"text": {"text": delta}, "reasoning": {"text": delta, "thought": True}, "call": call}[kind]
            events.append(gemini_chunk([candidate(part)], len(events)))
    return [*events, gemini_chunk([candidate({"text": ""}, finishReason="STOP")], TOKENS)]


def ollama_mixed(parts: Parts) -> list[Event]:
    events = []
    for kind, deltas in parts:
        for delta in deltas:
            call = {"content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"x": delta}}}]}
            field = {"text": {"content": delta}, "reasoning": {"content": "", "thinking": delta}, "call": call}[kind]
            events.append(ollama_line(message={"role": "assistant", **field}))
    return [*events, ollama_line(done=True, message={"role": "assistant", "content": ""})]


def bedrock_mixed(parts: Parts) -> list[Event]:
    events: list[Event] = [{"messageStart": {"role": "assistant"}}]
    for index, (kind, deltas) in enumerate(parts):
        if kind == "call":
            start = {"start": {"toolUse": {"toolUseId": "t", "name": "get_weather"}}, "contentBlockIndex": index}
            events.append({"contentBlockStart": start})
        for delta in deltas:
            field = {"reasoning": {"reasoningContent": {"text": delta}}, "call": {"toolUse": {"input": delta}}}
            block = {"delta": field.get(kind, {"text": delta}), "contentBlockIndex": index}
            events.append({"contentBlockDelta": block})
        events.append({"contentBlockStop": {"contentBlockIndex": index}})
    return [*events, *bedrock([])[-2:]]


MIXED: dict[str, Callable[[Parts], list[Event]]] = {
    "chat": chat_mixed,
    "responses": responses_mixed,
    "anthropic": anthropic_mixed,
    "gemini": gemini_mixed,
    "ollama": ollama_mixed,
    "bedrock": bedrock_mixed,
}
