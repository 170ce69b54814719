"""The engines' own APIs: Ollama, sglang, llama.cpp, TGI."""

from __future__ import annotations

from stopscan.finish._finish import Finish
from stopscan.finish._read import Reader, either, field, finish, is_call, items, silent, spoken, whole

# llama.cpp before `stop_type`
OLD_LLAMA_CPP = ("stopped_word", "stopped_eos", "stopped_limit")


def from_ollama(payload: object, /) -> Finish | None:
    """Returns the finish of a line of `/api/chat` or `/api/generate` that is `done`, or None for any other line.

    "stop" is an "eos", whatever stopped the answer. A line without a reason, as older servers write it, is an "eos",
    too. With calls in the line the reason is "tool_calls".

    >>> from_ollama({"message": {"content": ""}, "done": True, "done_reason": "length"}).reason
    'length'
    """
    return OLLAMA.read(payload)


def _line_ended(line: object, payload: object) -> Finish | None:
    if not field(line, "done"):
        return None
    word = spoken(field(line, "done_reason"))
    return Finish("eos") if word is None else finish(word)


def _line_content(line: object) -> Finish | None:
    calls = items(field(field(line, "message"), "tool_calls"))
    return Finish("tool_calls") if any(map(is_call, calls)) else None


OLLAMA: Reader = Reader("Ollama done_reason", whole, _line_ended, _line_content)


def from_sglang(payload: object, /) -> Finish | None:
    """Returns the finish of an object of `/generate`, or of its `meta_info`, or None while the stream goes on.

    An EOS is a "stop_token", because sglang sends the id of the EOS. The bare strings of sglang before 0.4 are read,
    too.

    >>> from_sglang({"text": "A", "meta_info": {"finish_reason": {"type": "stop", "matched": "END"}}}).matched_stop
    'END'
    """
    return SGLANG.read(payload)


def _generate_ended(answer: object, payload: object) -> Finish | None:
    word, matched = sglang_words(field(field(answer, "meta_info") or answer, "finish_reason"))
    return None if word is None else finish(word, (matched,))


SGLANG: Reader = Reader("sglang finish_reason", whole, _generate_ended, silent)


def sglang_words(reason: object) -> tuple[str | None, object]:
    """The word, and the stop that it was, of a `finish_reason` in any of sglang's forms."""
    if isinstance(reason, str):
        return spoken(reason), _matched(reason)
    kind = either(reason, "type", "reason", "unified")  # AI21's, and the AI SDK's of Vercel, have such an object, too
    return (spoken(reason), None) if kind is None else (spoken(kind), either(reason, "matched", "sequence"))


def _matched(reason: str) -> str | int | None:
    kind, _, matched = reason.partition(": ")
    if kind == "FINISH_MATCHED_STR":
        return matched
    is_id = kind == "FINISH_MATCHED_TOKEN" and matched.isdecimal() and len(matched) <= 10
    return int(matched) if is_id else None


def from_llama_cpp(payload: object, /) -> Finish | None:
    """Returns the finish of the final object of `/completion`, or None while the stream goes on.

    A `stop_type` of "none" is an "abort", unless the object says that more objects follow (`"stop": false`). The
    booleans of servers before `stop_type` are read, too.

    >>> from_llama_cpp({"content": "", "stop": True, "stop_type": "word", "stopping_word": "END"}).matched_stop
    'END'
    """
    return LLAMA_CPP.read(payload)


def _completion_ended(completion: object, payload: object) -> Finish | None:
    ended = field(completion, "stop")
    if ended is False:
        return None
    word = spoken(field(completion, "stop_type"))
    if word is None:
        word = next((name for name in OLD_LLAMA_CPP if field(completion, name)), None)
    if word is not None:
        return finish(word, (field(completion, "stopping_word"),))
    return Finish("unknown") if ended is True else None


LLAMA_CPP: Reader = Reader("llama.cpp stop_type", whole, _completion_ended, silent)


def from_tgi(payload: object, /) -> Finish | None:
    """Returns the finish of an answer of `/generate`, of the last event of `/generate_stream`, or of their `details`.

    TGI does not name the stop. Without `details` TGI does not say why the answer ended.

    >>> from_tgi({"generated_text": "A", "details": {"finish_reason": "stop_sequence", "generated_tokens": 2}})
    Finish(reason='stop_sequence', matched_stop=None, offset=None, raw='stop_sequence')
    """
    return TGI.read(payload)


def _details_ended(answer: object, payload: object) -> Finish | None:
    word = spoken(field(field(answer, "details") or answer, "finish_reason"))
    return None if word is None else finish(word)


TGI: Reader = Reader("TGI finish_reason", whole, _details_ended, silent)
