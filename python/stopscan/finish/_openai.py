from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stopscan.finish._engines import sglang_words
from stopscan.finish._finish import Finish
from stopscan.finish._read import OPEN, Reader, either, field, finish, is_call, items, spoken

# What has the choices, or is the only one: OpenAI's `stream` helper wraps its chunks, DashScope and OCI their answers,
# Cohere v2 the end of its streams.
WRAPPERS = ("chunk", "output", "chatResponse", "delta")
# The choices of AI21 and of Cohere before its chat, watsonx's, and Mistral's on Bedrock.
LISTS = ("choices", "completions", "generations", "results", "outputs")
WORDS = ("finish_reason", "finishReason", "completionReason")


def from_openai(payload: object, /) -> Finish | None:
    """Returns the finish of a chat completion, of a text completion, or of a chunk, or None while the stream goes on.

    - Choice 0 counts. If there is only one choice, that choice counts. You can pass another choice alone.
    - "stop" is an "eos", unless the server names the stop. vLLM, TensorRT-LLM, sglang, smg, dynamo and llama.cpp can
      name it.
    - "stop" beside calls is "tool_calls", and "stop" beside a refusal is a "refusal".
    - An EOS from sglang is a "stop_token", because sglang sends the id of the EOS.
    - Chunks without choices (Azure's first chunk, chunks for usage) let the stream go on.
    - If a router also sends the model's own word (OpenRouter, dynamo), and that word says more than "stop", the model's
      own word counts. `raw` is then that word.
    - The older APIs of Cohere, AI21, watsonx, DashScope and Baidu are read, too.

    >>> from_openai({"choices": [{"index": 0, "finish_reason": "stop", "matched_stop": "END"}]}).matched_stop
    'END'
    """
    return OPENAI.read(payload)


def _choices(payload: object) -> Sequence[Any] | None:
    choices = field(payload, "choices")
    if choices is not None:
        return items(choices)
    if either(payload, *WORDS) is not None:
        return None
    for part in (payload, *(field(payload, name) for name in WRAPPERS)):
        listed = either(part, *LISTS)
        if listed is not None:
            return items(listed)
        if part is not payload and either(part, *WORDS) is not None:
            return (part,)
    return None


def _ended(choice: object, payload: object) -> Finish | None:
    said = _said(choice)
    if not said:  # most chunks
        return _wordless(choice, payload, said)
    word, matched = sglang_words(said)
    if word is None or field(payload, "is_end") is False:  # Baidu's "normal", in every chunk
        return None
    chunk = field(payload, "chunk") or payload
    report = finish(word, (matched, *_stops(choice, chunk)))
    return _refined(report, choice, chunk) if report.reason in ("eos", "unknown") else report


def _said(choice: Any) -> object:
    if isinstance(choice, dict):
        if "finish_reason" in choice:  # nearly always
            return choice["finish_reason"]
    elif hasattr(choice, "finish_reason"):
        return choice.finish_reason
    return either(choice, *WORDS, "stop_reason")


def _wordless(choice: object, payload: object, said: object) -> Finish | None:
    if choice is not None and choice is not payload:
        calls = said == "" and any(map(is_call, items(field(field(choice, "message"), "tool_calls"))))
        return Finish("tool_calls") if calls else None  # xAI, in a whole answer
    failed = (
        field(payload, "object") == "error",  # vLLM
        field(payload, "error_code"),  # Baidu
        field(field(payload, "base_resp"), "status_code"),  # MiniMax
        field(payload, "code") and isinstance(field(payload, "message"), str),  # DashScope
    )
    return Finish("abort") if any(failed) else None


def _stops(choice: object, chunk: object) -> Iterator[object]:
    """Where servers name the stop: a string, a token's id, or nothing."""
    yield field(choice, "matched_stop")  # sglang, smg
    if field(choice, "finish_reason") is not None:  # else it is the word
        yield field(choice, "stop_reason")  # vLLM, TensorRT-LLM
    yield field(choice, "stopping_word")  # llama.cpp
    for part in (choice, chunk):
        yield field(field(part, "nvext"), "stop_reason")  # dynamo
        yield field(field(part, "__verbose"), "stopping_word")  # llama.cpp with --verbose
    yield field(chunk, "stopping_word")


def _refined(report: Finish, choice: object, chunk: object) -> Finish:
    for native in (
        field(choice, "native_finish_reason"),  # OpenRouter
        field(field(chunk, "stats"), "stop_reason"),  # LM Studio
        field(field(choice, "nvext"), "detailed_finish_reason"),  # dynamo#14525
        field(field(chunk, "nvext"), "detailed_finish_reason"),
    ):
        word = spoken(native)
        if word is not None and finish(word).reason not in OPEN:
            return finish(word)
    return report


def _content(choice: object) -> Finish | None:
    body = field(choice, "delta") or field(choice, "message")
    calls = items(either(body, "tool_calls", "toolCalls"))
    if any(map(is_call, calls)) or is_call(field(body, "function_call")):
        return Finish("tool_calls")
    content = field(body, "content")
    parts = () if isinstance(content, str) else items(content)
    refuses = field(body, "refusal") or any(field(part, "type") == "refusal" for part in parts)
    return Finish("refusal") if refuses else None


OPENAI: Reader = Reader("OpenAI finish_reason", _choices, _ended, _content)
