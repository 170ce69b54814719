"""Wrong servers that send the right text with a wrong finish reason, or that name the stop wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from staged.edits import Edit, done, every, last_choice, put, typed, with_choices
from staged.generation import Generation
from staged.wrong.table import wrong

End = tuple[str, Any]
STOP, LENGTH, EOS = "stop_sequence", "length", "eos"
REASON = ("choices", 0, "finish_reason")  # the path of the finish reason in an answer of OpenAI's


def at(reason: str, change: Callable[[Generation], End]) -> Callable[[Generation], End]:
    """Returns a function that says why an answer ended. For answers that ended because of `reason`, it returns
    `change(answer)`, which is wrong. For all others it returns the truth."""
    return lambda made: change(made) if made.end[0] == reason else made.end


def says(word: Any, instead: Any, *place: Any) -> Edit:
    """Returns the edit that replaces `word` at `place` by `instead`."""
    return put(lambda said: instead if said == word else said, *place)


def reasons_in_reasoning(data: Any) -> Any:
    choice = data["choices"][0]
    return put("stop", *REASON)(data) if "reasoning_content" in choice["delta"] else data


def only_the_limit(data: Any) -> Any:
    return data if data["choices"][0]["finish_reason"] == "length" else put(None, *REASON)(data)


def sorted_names(made: Any) -> Any:
    """Defect: names a wrong stop. Takes the index of the fired stop in the sorted list of stops, and names the stop at
    this index in the unsorted list."""
    reason, stop = made.end
    if reason != "stop_sequence":
        return made.end
    return reason, made.ask.stops[sorted(made.ask.stops).index(stop)]


WRONG = [
    wrong("the stop is not named to Anthropic", "anthropic-stream-split", "finish",
          told=at(STOP, lambda made: (EOS, None))),
    wrong("the stop is not named to sglang", "generate-stream-split", "finish",
          told=at(STOP, lambda made: (EOS, None))),
    wrong("a stop without its name", "anthropic-stream-split", "finish", told=at(STOP, lambda made: (STOP, None))),
    wrong("the first stop is named", "openai-chat-stream-first-of-three", "finish",
          told=at(STOP, lambda made: (STOP, made.ask.stops[0]))),
    wrong("the last stop is named", "anthropic-stream-nested-in-one-token-reversed", "finish",
          told=at(STOP, lambda made: (STOP, made.ask.stops[-1]))),
    wrong("the stop's index is named", "generate-stream-first-of-three", "finish",
          told=at(STOP, lambda made: (STOP, made.ask.stops.index(made.end[1])))),
    wrong("the stop is named in lower case", "openai-chat-stream-split", "finish",
          told=at(STOP, lambda made: (STOP, made.end[1].lower()))),
    wrong("the stop is named trimmed", "openai-chat-stream-line-break", "finish",
          told=at(STOP, lambda made: (STOP, made.end[1].strip()))),
    wrong("a stop is named that did not fire", "openai-chat-stream-never", "finish",
          told=at(EOS, lambda made: (STOP, made.ask.stops[0]) if made.ask.stops else made.end)),
    wrong("a stop ends by length", "ollama-chat-stream-split", "finish", told=at(STOP, lambda made: (LENGTH, None))),
    wrong("a stop ends by length in generate", "ollama-generate-stream-split", "finish",
          told=at(STOP, lambda made: (LENGTH, None))),
    wrong("a stop is incomplete", "responses-with-stop-stream-split", "finish",
          told=at(STOP, lambda made: (LENGTH, None))),
    wrong("the limit is a stop", "openai-chat-stream-no-stop-limit", "finish",
          told=at(LENGTH, lambda made: (EOS, None))),
    wrong("the limit is complete", "responses-with-stop-whole-no-stop-limit", "finish",
          told=at(LENGTH, lambda made: (EOS, None))),
    wrong("the limit is the end of a turn", "anthropic-stream-no-stop-limit", "finish",
          told=at(LENGTH, lambda made: (EOS, None))),
    wrong("EOS is the limit", "openai-chat-stream-no-stop", "finish", told=at(EOS, lambda made: (LENGTH, None))),
    wrong("the token is not named", "openai-chat-stream-ids", "finish",
          told=at("stop_token", lambda made: (EOS, None))),
    wrong("the token's text is named", "openai-chat-stream-ids", "finish",
          told=at("stop_token", lambda made: (STOP, "5"))),
    wrong("no reason at the end", "openai-chat-whole-no-stop", "finish form", whole_answer=put(None, *REASON)),
    wrong("no done_reason", "ollama-chat-whole-no-stop-limit", "finish form", whole_answer=put("", "done_reason")),
    wrong("stop is 'eos' in openai-chat", "openai-chat-whole-no-stop", "finish form",
          whole_answer=says("stop", "eos", *REASON)),
    wrong("stop is 'finished' in openai-chat", "openai-chat-whole-no-stop", "finish form",
          whole_answer=says("stop", "finished", *REASON)),
    wrong("stop is 'STOP' in openai-completions", "openai-completions-whole-no-stop", "finish form",
          whole_answer=says("stop", "STOP", *REASON)),
    wrong("length is 'max_tokens' in openai-chat", "openai-chat-whole-no-stop-limit", "finish form",
          whole_answer=says("length", "max_tokens", *REASON)),
    wrong("length is 'MAX_TOKENS' in openai-completions", "openai-completions-whole-no-stop-limit", "finish form",
          whole_answer=says("length", "MAX_TOKENS", *REASON)),
    wrong("completed is 'finished' in openai-responses", "openai-responses-whole-no-stop", "finish form",
          whole_answer=says("completed", "finished", "status")),
    wrong("completed is 'stopped' in openai-responses", "openai-responses-whole-no-stop", "finish form",
          whole_answer=says("completed", "stopped", "status")),
    wrong("max_tokens is 'length' in anthropic", "anthropic-whole-no-stop-limit", "finish form",
          whole_answer=says("max_tokens", "length", "stop_reason")),
    wrong("end_turn is 'stop' in anthropic", "anthropic-whole-no-stop", "finish form",
          whole_answer=says("end_turn", "stop", "stop_reason")),
    wrong("stop is 'eos' in ollama-chat", "ollama-chat-whole-no-stop", "finish form",
          whole_answer=says("stop", "eos", "done_reason")),
    wrong("length is 'max_tokens' in ollama-generate", "ollama-generate-whole-no-stop-limit", "finish form",
          whole_answer=says("length", "max_tokens", "done_reason")),
    wrong("stop is 'eos' in generate", "generate-whole-no-stop", "finish form",
          whole_answer=says("stop", "eos", "meta_info", "finish_reason", "type")),
    wrong("stop is 'eos' in a stream", "openai-chat-stream-no-stop", "finish form",
          events=every(last_choice, put("eos", *REASON))),
    wrong("end_turn is 'stop' in a stream", "anthropic-stream-no-stop", "finish form",
          events=every(typed("message_delta"), put("stop", "delta", "stop_reason"))),
    wrong("stop is 'STOP' in a stream of Ollama", "ollama-chat-stream-no-stop", "finish form",
          events=every(done, put("STOP", "done_reason"))),
    wrong("completed is 'done' in a stream", "openai-responses-stream-no-stop", "finish form",
          events=every(typed("response.completed"), put("done", "response", "status"))),
    wrong("every chunk has an empty reason", "openai-chat-stream-no-stop", "form",
          events=every(with_choices, put("", *REASON))),
    wrong("every chunk has a reason", "openai-completions-stream-no-stop", "form",
          events=every(with_choices, put("stop", *REASON))),
    wrong("reasoning has a reason in each chunk", "openai-chat-stream-think", "form",
          events=every(with_choices, reasons_in_reasoning)),
    wrong("only the limit has a reason in a stream", "openai-chat-stream-no-stop", "finish form",
          events=every(last_choice, only_the_limit)),
    wrong("the stop of the same number in sorted order is named", "openai-chat-stream-first-of-three", "finish",
          told=sorted_names),
    wrong("the stop of the same number in sorted order is named in Anthropic", "anthropic-stream-first-of-three",
          "finish", told=sorted_names),
    wrong("no stop is the stop None", "anthropic-whole-no-stop", "finish",
          whole_answer=says(None, "None", "stop_sequence")),
    wrong("no stop is the stop None in a stream", "anthropic-stream-no-stop", "finish",
          events=every(typed("message_delta"), says(None, "None", "delta", "stop_sequence"))),
]  # fmt: skip
