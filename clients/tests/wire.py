"""The events of whole streams, as the APIs send them for a text that comes in given pieces.

Sources: the streaming references of OpenAI, Anthropic, Gemini, Ollama and Bedrock, and the clients' types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Event = dict[str, Any]
Deltas = Sequence[str]

TOKENS = 4711  # the number of output tokens in the usage of every stream


def chat_chunk(choices: list[Event], **fields: Any) -> Event:
    named = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**named, "system_fingerprint": "fp", "choices": choices, **fields}


def chat_choice(index: int = 0, finish_reason: str | None = None, **delta: Any) -> Event:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def chat(deltas: Deltas, usage: bool = True) -> list[Event]:
    events = [chat_chunk([chat_choice(role="assistant", content="", refusal=None)])]
    events += [chat_chunk([chat_choice(content=delta)]) for delta in deltas]
    events.append(chat_chunk([chat_choice(finish_reason="stop")]))
    if usage:
        counts = {"prompt_tokens": 3, "completion_tokens": TOKENS, "total_tokens": 3 + TOKENS}
        events.append(chat_chunk([], usage=counts))
    return events


def chat_whole(text: Any, **message: Any) -> Event:
    message = {"role": "assistant", "content": text, "refusal": None, **message}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": TOKENS, "total_tokens": 3 + TOKENS}
    return {**chat_chunk([choice]), "object": "chat.completion", "usage": usage}


def completions_choice(text: str, index: int = 0, finish_reason: str | None = None, logprobs: Any = None) -> Event:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason}


def completions_chunk(choices: list[Event], **fields: Any) -> Event:
    return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": choices, **fields}


def completions(deltas: Deltas) -> list[Event]:
    events = [completions_chunk([completions_choice(delta)]) for delta in deltas]
    usage = {"prompt_tokens": 3, "completion_tokens": TOKENS, "total_tokens": 3 + TOKENS}
    return [
        *events,
        completions_chunk([completions_choice("", finish_reason="stop")]),
        completions_chunk([], usage=usage),
    ]


def completions_whole(text: str) -> Event:
    usage = {"prompt_tokens": 3, "completion_tokens": TOKENS, "total_tokens": 3 + TOKENS}
    return completions_chunk([completions_choice(text, finish_reason="length")], usage=usage)


def anthropic_start() -> Event:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 3, "output_tokens": 1}
    return {
        "type": "message_start",
        "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
    }


def anthropic_block(index: int, block: Event, deltas: Sequence[Event]) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


def anthropic_text(index: int, deltas: Deltas) -> list[Event]:
    return anthropic_block(index, {"type": "text", "text": ""}, [{"type": "text_delta", "text": d} for d in deltas])


def anthropic_end(stop_reason: str = "end_turn") -> list[Event]:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": TOKENS}}, {"type": "message_stop"}]


def anthropic(deltas: Deltas) -> list[Event]:
    start, *block = anthropic_text(0, deltas)
    return [anthropic_start(), start, {"type": "ping"}, *block, *anthropic_end()]


def anthropic_whole(content: list[Event]) -> Event:
    usage = {"input_tokens": 3, "output_tokens": TOKENS}
    return {**anthropic_start()["message"], "content": content, "stop_reason": "end_turn", "usage": usage}


def response_object(output: list[Event], status: str = "in_progress", usage: Event | None = None) -> Event:
    options = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "metadata": {}}
    named = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status, **options}
    return {**named, "error": None, "incomplete_details": None, "instructions": None, "output": output, "usage": usage}


def output_text(text: str, **fields: Any) -> Event:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **fields}


def output_message(content: list[Event], status: str = "completed", item_id: str = "msg_1") -> Event:
    return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}


class ResponsesStream:
    """Makes the events of a Responses stream: numbers them, and repeats each text in the closing events."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.output: list[Event] = []
        for kind in ("created", "in_progress"):
            self.add(f"response.{kind}", response=response_object([]))

    def add(self, kind: str, **fields: Any) -> None:
        self.events.append({"type": kind, "sequence_number": len(self.events), **fields})

    def item(self, item: Event) -> None:
        """Adds an output item that is complete at once, such as reasoning or a tool call."""
        index = len(self.output)
        self.add("response.output_item.added", output_index=index, item={**item, "status": "in_progress"})
        self.add("response.output_item.done", output_index=index, item=item)
        self.output.append(item)

    def message(self, *parts: Deltas) -> None:
        index = len(self.output)
        item_id = f"msg_{index}"
        self.add("response.output_item.added", output_index=index, item=output_message([], "in_progress", item_id))
        for number, deltas in enumerate(parts):
            where = {"item_id": item_id, "output_index": index, "content_index": number}
            text = "".join(deltas)
            self.add("response.content_part.added", **where, part=output_text(""))
            for delta in deltas:
                self.add("response.output_text.delta", **where, delta=delta, logprobs=[])
            self.add("response.output_text.done", **where, text=text, logprobs=[])
            self.add("response.content_part.done", **where, part=output_text(text))
        item = output_message([output_text("".join(deltas)) for deltas in parts], item_id=item_id)
        self.add("response.output_item.done", output_index=index, item=item)
        self.output.append(item)

    def completed(self) -> list[Event]:
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 3, "output_tokens": TOKENS, "total_tokens": 3 + TOKENS, **details}
        self.add("response.completed", response=response_object(self.output, "completed", usage))
        return self.events


def responses(deltas: Deltas) -> list[Event]:
    stream = ResponsesStream()
    stream.message(deltas)
    return stream.completed()


def responses_whole(output: list[Event]) -> Event:
    return response_object(output, "completed")


def candidate(*parts: Event, **fields: Any) -> Event:
    return {"content": {"role": "model", "parts": [*parts]}, "index": 0, **fields}


def gemini_chunk(candidates: list[Event], tokens: int = 0) -> Event:
    usage = {"promptTokenCount": 3, "candidatesTokenCount": tokens, "totalTokenCount": 3 + tokens}
    return {"candidates": candidates, "usageMetadata": usage, "modelVersion": "m", "responseId": "r"}


def gemini(deltas: Deltas) -> list[Event]:
    events = [gemini_chunk([candidate({"text": delta})], number) for number, delta in enumerate(deltas, 1)]
    return [*events, gemini_chunk([candidate({"text": ""}, finishReason="STOP")], TOKENS)]


def ollama_line(done: bool = False, **fields: Any) -> Event:
    end = {"done_reason": "stop", "total_duration": 5, "prompt_eval_count": 3, "eval_count": TOKENS} if done else {}
    return {"model": "m", "created_at": "2026-11-01T00:00:00Z", **fields, "done": done, **end}


def ollama(deltas: Deltas) -> list[Event]:
    lines = [ollama_line(message={"role": "assistant", "content": delta}) for delta in deltas]
    return [*lines, ollama_line(done=True, message={"role": "assistant", "content": ""})]


def generate(deltas: Deltas) -> list[Event]:
    return [*[ollama_line(response=delta) for delta in deltas], ollama_line(done=True, response="")]


def bedrock(deltas: Deltas) -> list[Event]:
    usage = {
        "usage": {"inputTokens": 3, "outputTokens": TOKENS, "totalTokens": 3 + TOKENS},
        "metrics": {"latencyMs": 1},
    }
    return [
        {"messageStart": {"role": "assistant"}},
        *[{"contentBlockDelta": {"delta": {"text": delta}, "contentBlockIndex": 0}} for delta in deltas],
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": usage},
    ]


def bedrock_whole(content: list[Event]) -> Event:
    usage = {"inputTokens": 3, "outputTokens": TOKENS, "totalTokens": 3 + TOKENS}
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}


def cohere(deltas: Deltas) -> list[Event]:
    """Returns the events of a stream, in the form of https://docs.cohere.com/v2/docs/streaming."""

    def content(kind: str, **fields: Any) -> Event:
        return {"type": kind, "index": 0, "delta": {"message": {"content": fields}}}

    usage = {"billed_units": {"output_tokens": TOKENS}, "tokens": {"output_tokens": TOKENS}}
    return [
        {"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant", "content": []}}},
        content("content-start", type="text", text=""),
        *[content("content-delta", text=delta) for delta in deltas],
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}},
    ]


def llama(deltas: Deltas) -> list[Event]:
    """A stream of llama.cpp's own `/completion`."""
    events: list[Event] = [{"index": 0, "content": delta, "tokens": [1], "stop": False} for delta in deltas]
    end = {"stop_type": "eos", "stopping_word": "", "tokens_predicted": TOKENS}
    return [*events, {"index": 0, "content": "", "tokens": [], "stop": True, **end}]


def tgi(deltas: Deltas) -> list[Event]:
    """A stream of TGI's /generate_stream. Its last token is special: it does not belong to the text."""

    def event(number: int, text: str, special: bool = False, **fields: Any) -> Event:
        token = {"id": number, "text": text, "logprob": -0.5, "special": special}
        return {"index": number, "token": token, "generated_text": None, "details": None, **fields}

    details = {"finish_reason": "eos_token", "generated_tokens": TOKENS, "seed": None}
    end = event(len(deltas), "</s>", True, generated_text="".join(deltas), details=details)
    return [*[event(number, delta) for number, delta in enumerate(deltas)], end]


def tgi_whole(text: str) -> Event:
    tokens = [{"id": 1, "text": text, "logprob": -0.5, "special": False}]
    details = {"finish_reason": "length", "generated_tokens": TOKENS, "seed": None, "prefill": [], "tokens": tokens}
    return {"generated_text": text, "details": details}


def watsonx_event(text: str, reason: str) -> Event:
    result = {"generated_text": text, "generated_token_count": 1, "input_token_count": 0, "stop_reason": reason}
    return {"model_id": "m", "created_at": "2026-11-01T00:00:00Z", "results": [result]}


def watsonx(deltas: Deltas) -> list[Event]:
    return [*[watsonx_event(delta, "not_finished") for delta in deltas], watsonx_event("", "eos_token")]


def llama_on_bedrock_event(text: str, reason: str | None) -> Event:
    return {"generation": text, "prompt_token_count": 3, "generation_token_count": 1, "stop_reason": reason}


def llama_on_bedrock(deltas: Deltas) -> list[Event]:
    metrics = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 3, "outputTokenCount": TOKENS}}
    events = [llama_on_bedrock_event(delta, None) for delta in deltas]
    return [*events, {**llama_on_bedrock_event("", "stop"), **metrics}]


def sglang_event(text: str, reason: Any) -> Event:
    counts = {"prompt_tokens": 3, "completion_tokens": TOKENS, "cached_tokens": 0}
    return {"text": text, "output_ids": [1], "meta_info": {"id": "r", "finish_reason": reason, **counts}}


def sglang(deltas: Deltas) -> list[Event]:
    """A stream of sglang's /generate: each event has all text so far."""
    events = [sglang_event("".join(deltas[: number + 1]), None) for number in range(len(deltas))]
    return [*events, sglang_event("".join(deltas), {"type": "stop", "matched": 151645})]


def dashscope_event(text: str, reason: str) -> Event:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return {"output": {"choices": [choice]}, "usage": {"output_tokens": TOKENS}, "request_id": "r"}


def dashscope(deltas: Deltas) -> list[Event]:
    events = [dashscope_event("".join(deltas[: number + 1]), "null") for number in range(len(deltas))]
    return [*events, dashscope_event("".join(deltas), "stop")]


def dashscope_text(deltas: Deltas) -> list[Event]:
    texts = ["".join(deltas[: number + 1]) for number in range(len(deltas))]
    outputs = [
        *[{"text": text, "finish_reason": "null"} for text in texts],
        {"text": texts[-1], "finish_reason": "stop"},
    ]
    return [{"output": output, "usage": {"output_tokens": TOKENS}, "request_id": "r"} for output in outputs]


def conversations(deltas: Deltas) -> list[Event]:
    """A stream of Mistral's conversations. The content of a delta is an object with the text or, in every second delta,
    the text as a string."""
    where = {"id": "msg_1", "output_index": 0, "content_index": 0, "model": "m", "role": "assistant"}
    contents = [delta if number % 2 else {"type": "text", "text": delta} for number, delta in enumerate(deltas)]
    usage = {"prompt_tokens": 3, "completion_tokens": TOKENS, "total_tokens": 3 + TOKENS}
    return [
        {"type": "conversation.response.started", "conversation_id": "conv_1"},
        *[{"type": "message.output.delta", **where, "content": content} for content in contents],
        {"type": "conversation.response.done", "usage": usage},
    ]


def conversations_whole(content: Any) -> Event:
    entry = {"object": "entry", "type": "message.output", "id": "msg_1", "role": "assistant", "content": content}
    usage = {"prompt_tokens": 3, "completion_tokens": TOKENS, "total_tokens": 3 + TOKENS}
    return {"object": "conversation.response", "conversation_id": "conv_1", "outputs": [entry], "usage": usage}


WIRES: dict[str, Callable[[Deltas], list[Event]]] = {
    "chat": chat,
    "completions": completions,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "ollama": ollama,
    "generate": generate,
    "bedrock": bedrock,
}

DELTAS = {
    "cohere": cohere,
    "llama": llama,
    "tgi": tgi,
    "watsonx": watsonx,
    "llama_on_bedrock": llama_on_bedrock,
    "conversations": conversations,
}
CUMULATIVE = {"sglang": sglang, "dashscope": dashscope, "dashscope_text": dashscope_text}  # events have all text so far
ROWS = {**WIRES, **DELTAS, **CUMULATIVE}  # functions that make a stream, for each row of `stopscan_clients.apis.TABLE`
