"""The words in which an API says why an answer ended, and where it says them."""

from __future__ import annotations

from typing import Any

from staged.edits import every, last_choice, put, typed, with_choices
from staged.faults.fault import Asked, Fault, Kind, fault

END, CUT, EOS = Asked("count", stop=["5"]), Asked("count", limit=3), Asked("count")
# Where the word stands in an answer of each API; what is a list there has the word in its first item.
PLACES: dict[str, tuple[Any, ...]] = {
    "openai-chat": ("choices", 0, "finish_reason"),
    "openai-completions": ("choices", 0, "finish_reason"),
    "openai-responses": ("status",),
    "anthropic": ("stop_reason",),
    "ollama-chat": ("done_reason",),
    "ollama-generate": ("done_reason",),
    "generate": ("meta_info", "finish_reason", "type"),
}


def says(word: Any, api: str, asked: Asked, name: str = "", kind: Kind = "documented") -> Fault:
    """Another word, for whatever ended the answer as `asked` does."""
    right = {"END": "stop", "CUT": "length"}  # both words of most APIs
    words = {"anthropic": ("stop_sequence", "max_tokens", "end_turn"),
             "openai-responses": ("completed", "incomplete", "completed")}.get(
                 api, (right["END"], right["CUT"], right["END"]))  # fmt: skip
    old = words[0] if asked is END else words[1] if asked is CUT else words[2]
    change = put(lambda was: word if was == old else was, *PLACES[api])
    return fault(name or f"{old} is {word!r} in {api}", kind, api, asked, whole_answer=change)


def all_choices(reason: Any) -> Any:
    return every(with_choices, put(reason, "choices", 0, "finish_reason"))


def reasons_in_reasoning(data: Any) -> Any:
    choice = data["choices"][0]
    return put("stop", "choices", 0, "finish_reason")(data) if "reasoning_content" in choice["delta"] else data


def only_the_limit(data: Any) -> Any:
    return data if data["choices"][0]["finish_reason"] == "length" else put(None, "choices", 0, "finish_reason")(data)


def sorted_names(made: Any) -> Any:
    """The stops were sorted when they were compiled, and the name is looked up by the number in the request."""
    reason, stop = made.end
    if reason != "stop_sequence":
        return made.end
    return reason, made.ask.stops[sorted(made.ask.stops).index(stop)]


def none_is_a_word(data: Any) -> Any:
    return put(lambda was: "None" if was is None else was, "stop_sequence")(data)


def none_is_a_word_in_a_delta(data: Any) -> Any:
    return put(lambda was: "None" if was is None else was, "delta", "stop_sequence")(data)


FAULTS = [
    says("eos", "openai-chat", EOS),
    says("finished", "openai-chat", END),
    says("STOP", "openai-completions", END),
    says("max_tokens", "openai-chat", CUT),
    says("MAX_TOKENS", "openai-completions", CUT),
    says("finished", "openai-responses", EOS),
    says("stopped", "openai-responses", END),
    says("length", "anthropic", CUT),
    says("stop", "anthropic", EOS),
    says("eos", "ollama-chat", EOS),
    says("max_tokens", "ollama-generate", CUT),
    says("eos", "generate", EOS),
    fault("every chunk has an empty reason", "documented", "openai-chat", Asked(stream=True), events=all_choices("")),
    fault("every chunk has a reason", "documented", "openai-completions", Asked(stream=True),
          events=all_choices("stop")),
    fault("reasoning has a reason in each chunk", "documented", "openai-chat", Asked("think", stream=True),
          events=every(with_choices, reasons_in_reasoning)),
    fault("only the limit has a reason in a stream", "documented", "openai-chat", Asked(stream=True),
          events=every(last_choice, only_the_limit)),
    fault("the stop of the same number in sorted order is named", "usual", "openai-chat",
          Asked(stop=["7", "5", "6"]), told=sorted_names),
    fault("the stop of the same number in sorted order is named in Anthropic", "documented", "anthropic",
          Asked(stop=["7", "5", "6"]), told=sorted_names),
    fault("no stop is the stop None", "documented", "anthropic", EOS, whole_answer=none_is_a_word),
    fault("no stop is the stop None in a stream", "documented", "anthropic", Asked(stream=True),
          events=every(typed("message_delta"), none_is_a_word_in_a_delta)),
]  # fmt: skip
