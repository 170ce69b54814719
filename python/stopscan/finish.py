"""Why a generation ended, and how six HTTP APIs say it.

`to_*` writes the fields of a server's response, `from_*` reads a response or one event of a stream. Where an API has no
word for a reason, it gets the nearest documented one:

- An API that does not tell a stop from an end of turn says the latter. So it is with tool calls, pauses and refusals
  where they are told by the content alone (Ollama, sglang, llama.cpp).
- An abort is reported as cut off: by the API's own word, else as its token limit, which is the only other value that
  tells a client not to take the text for whole.

Sources: the types of the official clients, whose field docstrings are the APIs' references
(`anthropic.types.StopReason`, `openai.types.chat.ChatCompletion`, `openai.types.responses.Response`,
`ollama.GenerateResponse`), "Stop reasons and fallback" in Claude's documentation, `docs/api.md` of Ollama,
`to_json` of the finish reasons in sglang's `schedule_batch.py`, and `tools/server/README.md` of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from stopscan import StopMatch

__all__ = [
    "Finish",
    "Reason",
    "from_anthropic",
    "from_llama_cpp",
    "from_ollama",
    "from_openai",
    "from_responses",
    "from_sglang",
    "to_anthropic",
    "to_llama_cpp",
    "to_ollama",
    "to_openai",
    "to_responses",
    "to_sglang",
]

Reason = Literal[
    "stop_sequence", "stop_token", "eos", "length", "tool_calls", "content_filter", "refusal", "pause", "abort"
]


@dataclass(frozen=True, slots=True)
class Finish:
    """Why a generation ended. `match` belongs to "stop_sequence" and `token_id` to "stop_token": required there,
    refused elsewhere (`ValueError`; `TypeError` for the wrong type).

    >>> Finish("stop_sequence", StopMatch("END", 26)).matched_stop
    'END'
    >>> Finish("stop_token", token_id=2).matched_stop
    2
    """

    reason: Reason
    match: StopMatch | None = None
    token_id: int | None = None

    def __post_init__(self) -> None:
        if self.reason not in get_args(Reason):
            raise ValueError(f"unknown finish reason {self.reason!r}")
        for name, kind, owner in (("match", StopMatch, "stop_sequence"), ("token_id", int, "stop_token")):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} must be {kind.__name__}, not {type(value).__name__}")
            if (value is not None) != (self.reason == owner):
                verb = "needs" if value is None else "has no"
                raise ValueError(f"finish reason {self.reason!r} {verb} {name}")

    @property
    def matched_stop(self) -> str | int | None:
        """The user's own value that ended the generation: the stop string, the stop token's id, or None."""
        return self.match.sequence if self.match is not None else self.token_id


class _Words(NamedTuple):
    anthropic: str
    openai: str
    responses: str
    incomplete: str | None  # incomplete_details.reason of Responses
    ollama: str
    sglang: str
    llama_cpp: str


# OpenAI's own refusals are content of a response that "stopped"; a server that stops because of one says more with
# "content was omitted due to a flag from our content filters". llama.cpp's "none": none of its three ends was met.
_WORDS: dict[Reason, _Words] = {
    "stop_sequence": _Words("stop_sequence", "stop", "completed", None, "stop", "stop", "word"),
    "stop_token": _Words("end_turn", "stop", "completed", None, "stop", "stop", "eos"),
    "eos": _Words("end_turn", "stop", "completed", None, "stop", "stop", "eos"),
    "length": _Words("max_tokens", "length", "incomplete", "max_output_tokens", "length", "length", "limit"),
    "tool_calls": _Words("tool_use", "tool_calls", "completed", None, "stop", "stop", "eos"),
    "content_filter": _Words("refusal", "content_filter", "incomplete", "content_filter", "stop", "stop", "eos"),
    "refusal": _Words("refusal", "content_filter", "incomplete", "content_filter", "stop", "stop", "eos"),
    "pause": _Words("pause_turn", "stop", "completed", None, "stop", "stop", "eos"),
    "abort": _Words("max_tokens", "length", "cancelled", None, "length", "abort", "none"),
}

_ANTHROPIC: dict[str, Reason] = {
    "end_turn": "eos",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",  # "treat the response as truncated"
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",  # beta: the turn goes on when the compacted content is sent back
}
_OPENAI: dict[str, Reason] = {
    "stop": "eos",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",  # deprecated
    "content_filter": "content_filter",
    "abort": "abort",  # sglang, vLLM; the next two are vLLM's FINISH_REASON_STRINGS, too
    "error": "abort",
    "repetition": "abort",  # the engine ended a generation that repeats itself
}
# A completed response tells by its output why the model stopped: these wait for the caller.
_RESPONSES_OUTPUT: dict[str, Reason] = {
    "refusal": "refusal",
    "function_call": "tool_calls",
    "custom_tool_call": "tool_calls",
    "computer_call": "tool_calls",
    "local_shell_call": "tool_calls",
    "apply_patch_call": "tool_calls",
    "mcp_approval_request": "tool_calls",
}
_RESPONSES: dict[str, Reason] = {
    "completed": "eos",
    "failed": "abort",
    "cancelled": "abort",
    "incomplete": "abort",  # with no word why
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "content_filter",
    "steered": "pause",  # a successor goes on with the queued input
    **_RESPONSES_OUTPUT,
}
_OLLAMA: dict[str, Reason] = {
    "stop": "eos",
    "length": "length",
    "load": "eos",  # answers to requests that only load or unload a model
    "unload": "eos",
}
_SGLANG: dict[str, Reason] = {"stop": "eos", "length": "length", "abort": "abort"}
_LLAMA_CPP: dict[str, Reason] = {"word": "stop_sequence", "eos": "eos", "limit": "length", "none": "abort"}


def to_anthropic(finish: Finish, /) -> dict[str, str | None]:
    """Returns `stop_reason` and `stop_sequence`, for a message or for the delta of a `message_delta`. Both keys are
    always there: the schema wants `stop_sequence` even when it is null (vllm#55324), so keep nulls when serializing.

    >>> to_anthropic(Finish("stop_sequence", StopMatch("END", 26)))
    {'stop_reason': 'stop_sequence', 'stop_sequence': 'END'}
    """
    return {"stop_reason": _WORDS[finish.reason].anthropic, "stop_sequence": _sequence(finish)}


def to_openai(finish: Finish, /) -> dict[str, str | int]:
    """Returns a choice's `finish_reason`, and `matched_stop` if a stop ended it: a field that sglang and smg add.

    >>> to_openai(Finish("stop_sequence", StopMatch("END", 26)))
    {'finish_reason': 'stop', 'matched_stop': 'END'}
    """
    stop = finish.matched_stop
    return {"finish_reason": _WORDS[finish.reason].openai, **({} if stop is None else {"matched_stop": stop})}


def to_responses(finish: Finish, /) -> dict[str, Any]:
    """Returns a response's `status` and `incomplete_details`. Stops are "completed": Responses has no word for them.

    >>> to_responses(Finish("length"))
    {'status': 'incomplete', 'incomplete_details': {'reason': 'max_output_tokens'}}
    """
    words = _WORDS[finish.reason]
    return {
        "status": words.responses,
        "incomplete_details": None if words.incomplete is None else {"reason": words.incomplete},
    }


def to_ollama(finish: Finish, /) -> dict[str, Any]:
    """Returns `done` and `done_reason` of the last line. Ollama does not tell a stop from an end of turn.

    >>> to_ollama(Finish("length"))
    {'done': True, 'done_reason': 'length'}
    """
    return {"done": True, "done_reason": _WORDS[finish.reason].ollama}


def to_sglang(finish: Finish, /) -> dict[str, dict[str, str | int | None]]:
    """Returns `finish_reason`, for the `meta_info` of `/generate`. `matched` is None when no stop ended it.

    >>> to_sglang(Finish("stop_token", token_id=2))
    {'finish_reason': {'type': 'stop', 'matched': 2}}
    """
    return {"finish_reason": {"type": _WORDS[finish.reason].sglang, "matched": finish.matched_stop}}


def to_llama_cpp(finish: Finish, /) -> dict[str, str]:
    """Returns `stop_type` and `stopping_word` of the final object. A stop token is an "eos", and no word is "".

    >>> to_llama_cpp(Finish("stop_sequence", StopMatch("END", 26)))
    {'stop_type': 'word', 'stopping_word': 'END'}
    """
    return {"stop_type": _WORDS[finish.reason].llama_cpp, "stopping_word": _sequence(finish) or ""}


def from_anthropic(payload: object, /) -> Finish | None:
    """Returns the finish of a message or a stream event, None while the stream goes on. `message_start` has a null
    reason, `message_delta` has the real one. `match.offset` is 0: no API says where the stop was.

    `payload` is a dict or any object with the same fields, the official client's included. An unknown reason is a
    `ValueError` that names it, and anything else than a dict or object a `TypeError`. An error event is an "abort". So
    it is with every `from_*`.

    >>> from_anthropic({"type": "message_delta", "delta": {"stop_reason": "pause_turn", "stop_sequence": None}})
    Finish(reason='pause', match=None, token_id=None)
    >>> from_anthropic({"type": "ping"})
    """
    parts = (payload, _field(payload, "delta"), _field(payload, "message"))
    part = next((part for part in parts if _field(part, "stop_reason") is not None), None)
    return _finish(
        "Anthropic stop_reason", _ANTHROPIC, payload, _field(part, "stop_reason"), _field(part, "stop_sequence")
    )


def from_openai(payload: object, /) -> Finish | None:
    """Returns the finish of choice 0 of a chat completion, a text completion, or a chunk of either. "stop" is an "eos"
    unless the server names the stop: as `matched_stop` (sglang, smg) or `stop_reason` (vLLM).

    Another choice can be passed by itself. From sglang an EOS is a "stop_token": it gives that id, too.

    >>> from_openai({"choices": [{"index": 0, "finish_reason": "stop", "matched_stop": "END"}]}).matched_stop
    'END'
    """
    choice = _choice(_field(payload, "chunk") or payload)  # the client's `stream` helper wraps its chunks
    stop = _field(choice, "matched_stop")
    stop = _field(choice, "stop_reason") if stop is None else stop
    return _finish("OpenAI finish_reason", _OPENAI, payload, _field(choice, "finish_reason"), stop)


def from_responses(payload: object, /) -> Finish | None:
    """Returns the finish of a response or of the event that ends its stream. A completed response that holds a refusal
    is a "refusal", and one with calls for the caller to run is "tool_calls"; the status does not tell.

    >>> from_responses({"type": "response.completed", "response": {"status": "completed"}})
    Finish(reason='eos', match=None, token_id=None)
    """
    event = _field(payload, "type")
    # Events have statuses of their own: `response.reasoning_summary_part.done` can be "incomplete" in mid-stream.
    response = payload if event is None else _field(payload, "response")
    status = "failed" if event == "error" else _field(response, "status")
    if status in ("queued", "in_progress"):
        status = None
    elif status == "incomplete":
        status = _field(_field(response, "incomplete_details"), "reason") or status
    elif status == "completed":
        status = next((kind for kind in _output(response) if kind in _RESPONSES_OUTPUT), status)
    return _finish("Responses status", _RESPONSES, payload, status)


def from_ollama(payload: object, /) -> Finish | None:
    """Returns the finish of a line of `/api/chat` or `/api/generate` that is `done`. "stop" is an "eos", whatever
    stopped it, and so is a line without a reason, as older servers write it.

    >>> from_ollama({"message": {"content": ""}, "done": True, "done_reason": "length"}).reason
    'length'
    """
    reason = (_field(payload, "done_reason") or "stop") if _field(payload, "done") else None
    return _finish("Ollama done_reason", _OLLAMA, payload, reason)


def from_sglang(payload: object, /) -> Finish | None:
    """Returns the finish of an object of `/generate`, or of its `meta_info`. An EOS is a "stop_token": sglang gives it
    as its token's id, too.

    >>> from_sglang({"text": "A", "meta_info": {"finish_reason": {"type": "stop", "matched": "END"}}}).matched_stop
    'END'
    """
    reason = _field(_field(payload, "meta_info") or payload, "finish_reason")
    return _finish("sglang finish_reason", _SGLANG, payload, _field(reason, "type"), _field(reason, "matched"))


def from_llama_cpp(payload: object, /) -> Finish | None:
    """Returns the finish of the final object of `/completion`. A `stop_type` of "none" is an "abort", unless the object
    says that it is not the last (`"stop": false`).

    >>> from_llama_cpp({"content": "", "stop": True, "stop_type": "word", "stopping_word": "END"}).matched_stop
    'END'
    """
    reason = None if _field(payload, "stop") is False else _field(payload, "stop_type")
    return _finish("llama.cpp stop_type", _LLAMA_CPP, payload, reason, _field(payload, "stopping_word"))


def _sequence(finish: Finish) -> str | None:
    return None if finish.match is None else finish.match.sequence


def _field(part: object, name: str) -> Any:
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)


def _choice(payload: object) -> object:
    choices = _field(payload, "choices")
    if choices is None:
        return payload
    # With n > 1 a chunk may carry any one of the choices.
    return next((choice for choice in choices if not _field(choice, "index")), None)


def _output(response: object) -> Iterator[object]:
    for item in _field(response, "output") or ():
        for part in (item, *(_field(item, "content") or ())):
            yield _field(part, "type")


def _finish(
    source: str, reasons: Mapping[str, Reason], payload: object, word: object, stop: object = None
) -> Finish | None:
    if word is None:
        if isinstance(payload, (str, bytes, bytearray, list, tuple, int, float, type(None))):
            raise TypeError(f"{source} is read from a dict or an object, not {type(payload).__name__}")
        return Finish("abort") if _field(payload, "error") else None
    reason = reasons.get(word) if isinstance(word, str) else None
    if reason is None:
        raise ValueError(f"{source}: unknown value {word!r}")
    if reason not in ("eos", "stop_sequence"):
        return Finish(reason)
    if isinstance(stop, str) and stop:
        return Finish("stop_sequence", StopMatch(stop, 0))
    if isinstance(stop, int):
        return Finish("stop_token", token_id=stop)
    if reason == "stop_sequence" or stop not in (None, ""):
        raise ValueError(f"{source} {word!r}: {stop!r} is not a stop")
    return Finish("eos")
