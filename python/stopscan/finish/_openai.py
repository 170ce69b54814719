from __future__ import annotations

from collections.abc import Iterator

from stopscan.finish._engines import sglang_words
from stopscan.finish._finish import Finish
from stopscan.finish._read import field, finish, first, spoken, unfinished


def from_openai(payload: object, /) -> Finish | None:
    """Returns the finish of choice 0 of a chat completion, a text completion, or a chunk of either. "stop" is an "eos"
    unless the server names the stop: vLLM, TensorRT-LLM, sglang, smg, dynamo and llama.cpp can.

    Another choice can be passed by itself. From sglang an EOS is a "stop_token": it gives that id, too. Chunks without
    choices (Azure's first, and those for usage) let the stream go on. Where a router also says the model's own word
    (OpenRouter, dynamo), it counts if it says more than "stop", and is then what `raw` has.

    >>> from_openai({"choices": [{"index": 0, "finish_reason": "stop", "matched_stop": "END"}]}).matched_stop
    'END'
    """
    choice, chunk = _choice(payload)
    said = field(choice, "finish_reason")
    if not said and choice is not None and choice is not payload:
        return None  # most chunks: looking for an error, too, would cost more than all the rest
    word, matched = sglang_words(said)
    if word is None:
        return unfinished("OpenAI finish_reason", payload)
    report = finish(word, (matched, *_stops(choice, chunk)))
    return _refined(report, choice, chunk) if report.reason in ("eos", "unknown") else report


def _choice(payload: object) -> tuple[object, object]:
    """The choice that counts, and what it is in."""
    choices = field(payload, "choices")
    if choices is not None:
        return first(choices), payload
    chunk = field(payload, "chunk")  # the client's `stream` helper wraps its chunks
    return (payload, payload) if chunk is None else (first(field(chunk, "choices")), chunk)


def _stops(choice: object, chunk: object) -> Iterator[object]:
    """Where servers name the stop: a string, a token's id, or nothing."""
    yield field(choice, "matched_stop")  # sglang, smg
    yield field(choice, "stop_reason")  # vLLM, TensorRT-LLM
    yield field(choice, "stopping_word")  # llama.cpp
    for part in (choice, chunk):
        yield field(field(part, "nvext"), "stop_reason")  # dynamo
        yield field(field(part, "__verbose"), "stopping_word")  # llama.cpp with --verbose
    yield field(chunk, "stopping_word")


def _refined(report: Finish, choice: object, chunk: object) -> Finish:
    for native in (
        field(choice, "native_finish_reason"),  # OpenRouter
        field(field(choice, "nvext"), "detailed_finish_reason"),  # dynamo#14525
        field(field(chunk, "nvext"), "detailed_finish_reason"),
    ):
        word = spoken(native)
        if word is not None and finish(word).reason not in ("eos", "unknown"):
            return finish(word)
    return report
