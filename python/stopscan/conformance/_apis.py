"""One function an API: a request through its official client, and what the client then has.

The fields that an API does not have go the way that engines take them: `stop_token_ids` beside the stop strings, and
`stop` in Responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stopscan.finish import Finish, from_anthropic, from_ollama, from_openai, from_responses, from_sglang

if TYPE_CHECKING:
    from stopscan.conformance._server import Server


@dataclass(frozen=True)
class Request:
    prompt: str
    stream: bool = False
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    max_tokens: int = 64

    @property
    def messages(self) -> list[dict[str, str]]:
        return [{"role": "user", "content": self.prompt}]

    def given(self, **names: str) -> dict[str, Any]:
        """The stops by the names that an API has for them; those that are not asked for are left out."""
        return {name: list(getattr(self, field)) for field, name in names.items() if getattr(self, field)}


@dataclass
class Answer:
    """What a client has in the end. `faults` are breaches of the API's form."""

    text: str = ""
    reasoning: str = ""
    finish: Finish | None = None
    tokens: int | None = None
    faults: list[str] = field(default_factory=list)

    def add(self, text: str | None, reasoning: str | None = None) -> None:
        if (text or reasoning) and self.finish is not None:
            self.fault("text after the finish reason")
        self.text += text or ""
        self.reasoning += reasoning or ""

    def fault(self, what: str) -> None:
        if what not in self.faults:
            self.faults.append(what)

    def end(self, finish: Finish | None) -> None:
        if finish is not None and self.finish is not None:
            self.fault("a second finish reason")
        self.finish = finish or self.finish


def openai_chat(server: Server, request: Request) -> Answer:
    reply = server.openai.chat.completions.create(
        model=server.model,
        messages=request.messages,
        max_tokens=request.max_tokens,
        extra_body=request.given(stop_token_ids="stop_token_ids"),
        **_openai_options(request),
    )
    return _openai_answer(reply, request.stream)


def openai_completions(server: Server, request: Request) -> Answer:
    reply = server.openai.completions.create(
        model=server.model,
        prompt=request.prompt,
        max_tokens=request.max_tokens,
        extra_body=request.given(stop_token_ids="stop_token_ids"),
        **_openai_options(request),
    )
    return _openai_answer(reply, request.stream)


def openai_responses(server: Server, request: Request) -> Answer:
    reply = server.openai.responses.create(
        model=server.model,
        input=request.prompt,
        max_output_tokens=request.max_tokens,
        stream=request.stream,
        extra_body=request.given(stop="stop", stop_token_ids="stop_token_ids"),
    )
    answer = Answer()
    if not request.stream:
        _add_response(answer, reply)
        answer.end(from_responses(reply))
        return answer
    last = None
    for event in reply:
        if event.type == "response.output_text.delta":
            answer.add(event.delta)
        elif event.type == "response.reasoning_text.delta":
            answer.add(None, event.delta)
        answer.end(from_responses(event))
        last = event
    if last is None or last.type not in ("response.completed", "response.incomplete"):
        answer.fault(f"the stream ends with {last and last.type}")
        return answer
    if last.type != f"response.{last.response.status}":
        answer.fault(f"{last.type} has the status {last.response.status}")
    whole = Answer()
    _add_response(whole, last.response)
    answer.tokens = whole.tokens
    if (whole.text, whole.reasoning) != (answer.text, answer.reasoning):
        answer.fault(f"the last event has the text {whole.text!r}")
    return answer


def anthropic(server: Server, request: Request) -> Answer:
    reply = server.anthropic.messages.create(
        model=server.model,
        messages=request.messages,
        max_tokens=request.max_tokens,
        stream=request.stream,
        extra_body=request.given(stop_token_ids="stop_token_ids"),
        **request.given(stop="stop_sequences"),
    )
    answer = Answer()
    if not request.stream:
        for block in reply.content:
            answer.add(getattr(block, "text", None), getattr(block, "thinking", None))
        answer.end(from_anthropic(reply))
        answer.tokens = reply.usage.output_tokens
        _needs(answer, reply, "stop_reason", "stop_sequence")
        return answer
    kinds = []
    for event in reply:
        kinds.append(event.type)
        if event.type == "content_block_delta":
            answer.add(getattr(event.delta, "text", None), getattr(event.delta, "thinking", None))
        elif event.type == "message_start":
            _needs(answer, event.message, "stop_reason", "stop_sequence")
        elif event.type == "message_delta":
            _needs(answer, event.delta, "stop_reason", "stop_sequence")
            answer.tokens = event.usage.output_tokens
        finish = from_anthropic(event)
        if finish is not None and event.type != "message_delta":
            answer.fault(f"the stop reason is on {event.type}")
        answer.end(finish)
    if kinds[:1] != ["message_start"] or kinds[-1:] != ["message_stop"]:
        answer.fault(f"the stream goes from {kinds[0] if kinds else None} to {kinds[-1] if kinds else None}")
    return answer


def ollama_chat(server: Server, request: Request) -> Answer:
    reply = server.ollama.chat(
        model=server.model, messages=request.messages, stream=request.stream, options=_ollama_options(request)
    )
    return _ollama_answer(reply, request.stream)


def ollama_generate(server: Server, request: Request) -> Answer:
    reply = server.ollama.generate(
        model=server.model, prompt=request.prompt, stream=request.stream, options=_ollama_options(request)
    )
    return _ollama_answer(reply, request.stream)


def generate(server: Server, request: Request) -> Answer:
    """sglang's `/generate`: each object of a stream has the whole text so far."""
    options = request.given(stop="stop", stop_token_ids="stop_token_ids") | {"max_new_tokens": request.max_tokens}
    body = {"text": request.prompt, "sampling_params": options, "stream": request.stream}
    answer = Answer()
    with server.http.stream("POST", "/generate", json=body) as reply:
        if reply.status_code != 200:
            reply.read()
            reply.raise_for_status()
        for part in _events(reply.iter_lines()) if request.stream else [json.loads(reply.read())]:
            if not part["text"].startswith(answer.text):
                answer.fault(f"{answer.text!r} was taken back")
            answer.add(part["text"][len(answer.text) :])
            answer.end(from_sglang(part))
            answer.tokens = part["meta_info"].get("completion_tokens")
            if "finish_reason" not in part["meta_info"]:
                answer.fault("meta_info lacks finish_reason")
    return answer


def _openai_options(request: Request) -> dict[str, Any]:
    usage = {"stream_options": {"include_usage": True}} if request.stream else {}
    return {"stream": request.stream, **usage, **request.given(stop="stop")}


def _openai_answer(reply: Any, stream: bool) -> Answer:
    answer = Answer()
    for part in reply if stream else [reply]:
        for choice in part.choices:
            _needs(answer, choice, "finish_reason")
            message = getattr(choice, "message", None) or getattr(choice, "delta", None)
            if message is None:
                answer.add(choice.text)
            else:
                # The second name is vLLM's and mlx-lm's, the first everybody else's.
                names = ("reasoning_content", "reasoning")
                answer.add(message.content, next(filter(None, (getattr(message, name, None) for name in names)), None))
        if part.choices:
            answer.end(from_openai(part))
        if part.usage is not None:
            answer.tokens = part.usage.completion_tokens
    return answer


def _ollama_options(request: Request) -> dict[str, Any]:
    return {"num_predict": request.max_tokens, **request.given(stop="stop", stop_token_ids="stop_token_ids")}


def _ollama_answer(reply: Any, stream: bool) -> Answer:
    answer = Answer()
    for part in reply if stream else [reply]:
        source = getattr(part, "message", None)
        text = part.response if source is None else source.content
        answer.add(text, getattr(part if source is None else source, "thinking", None))
        answer.end(from_ollama(part))
        if part.done:
            answer.tokens = part.eval_count
            _needs(answer, part, "done_reason")
    return answer


def _add_response(answer: Answer, response: Any) -> None:
    answer.tokens = response.usage and response.usage.output_tokens
    for item in response.output:
        for part in item.content or ():
            if part.type == "output_text":
                answer.add(part.text)
            elif part.type == "reasoning_text":
                answer.add(None, part.text)


def _events(lines: Iterable[str]) -> Iterator[Any]:
    for line in lines:
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            yield json.loads(data)


def _needs(answer: Answer, part: Any, *names: str) -> None:
    """A key may be null, but not missing: clients in other languages tell the two apart."""
    for name in names:
        if name not in part.model_fields_set:
            answer.fault(f"{type(part).__name__} lacks the key {name}")
