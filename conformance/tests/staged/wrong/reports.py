"""Test servers with defects that were publicly reported of real software. Each is named after its report, and fails a
default run of the kit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import count
from typing import Any

from staged.edits import Edit, chunk, every, first, last_choice, put, typed, with_choices, with_usage
from staged.forms import Data
from staged.generation import Generation
from staged.request import Ask, Refusal, right_stops
from staged.scanners import Found, Simple, finding
from staged.wrong.state import but, cached
from staged.wrong.table import Parts, wrong

NUMBERS = count(1)
TICKS = count(1)


# Requests.


def refuses(which: Callable[[Any], Any]) -> Callable[[Any], list[str]]:
    """Returns a function that reads the field `stop` of a request. It refuses the request if `which` is true for the
    value of the field."""

    def stops(given: Any) -> list[str]:
        if which(given):
            raise Refusal(f"stop: invalid value {given!r}")
        return right_stops(given)

    return stops


def refuses_bodies(which: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def body(body: Any) -> Any:
        if which(body):
            raise Refusal("invalid request body")
        return body

    return body


def is_of_ids(prompt: Any) -> bool:
    return isinstance(prompt, list) and isinstance(prompt[0], int)


def stream_is_the_default(body: Any) -> Any:
    return {"stream": True, **body}


def surrogates_apart(raw: bytes) -> bytes:
    """Defect: JSON may write one character as two escapes, a surrogate pair. The server reads each of the two as
    U+FFFD."""
    return re.sub(rb"(?i)\\u[d][89a-f][0-9a-f]{2}", rb"\\\\ufffd", raw)


def streams_for_accept(ask: Ask) -> Ask:
    """Defect: streams if the client accepts a stream, although the request is for a whole answer."""
    return replace(ask, stream=ask.stream or b"event-stream" in ask.headers.get(b"accept", b""))


def fails_for_accept(ask: Ask) -> Ask:
    if b"event-stream" in ask.headers.get(b"accept", b""):
        raise Refusal("cannot satisfy the request's Accept header", 500)
    return ask


def end_turn(made: Generation) -> tuple[str, Any]:
    return ("eos", None) if made.end[0] == "stop_sequence" else made.end


# Scanners.


class FollowsOnce(Simple):
    """Defect: after a character that does not match, the scanner tries only one shorter beginning of the stop. So it
    does not find the stop `aabaab` in `aabaaabaab`."""

    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops)
        self.states = dict.fromkeys(stops, 0)

    def find(self, before: int) -> Found | None:
        for at in range(before, len(self.text)):
            for stop, state in self.states.items():
                if state and stop[state] != self.text[at]:
                    state = max(n for n in range(state) if stop[:state].endswith(stop[:n]))
                state = state + 1 if stop[state] == self.text[at] else int(stop[0] == self.text[at])
                if state == len(stop):
                    return at + 1 - state, stop
                self.states[stop] = state
        return None


class SwapsWhatItHolds(Simple):
    """Defect: drops text that it should send after a token. This happens if 5 or more characters are held before the
    token, and equally many after it."""

    held = 0

    def feed(self, delta: str) -> str:
        before, text = self.held, super().feed(delta)
        self.held = len(self.text) - self.sent
        return "" if before == self.held >= 5 and self.match is None else text


class LosesBeforeTheMatch(Simple):
    """Defect: when a stop fires, loses the text before the stop that is not sent yet."""

    def send(self, end: int) -> str:
        return "" if self.match is not None and end > self.sent else super().send(end)


class StaysBehind(Simple):
    """Defect: once it has held two characters or more, sends no more text until a stop fires."""

    stuck = False

    def hold(self) -> int:
        self.stuck = self.stuck or super().hold() > 1
        return len(self.text) - self.sent if self.stuck else super().hold()

    def flush(self) -> str:
        return "" if self.stuck else super().flush()


def in_a_token_of_its_own(one: Simple, before: int) -> Found | None:
    """Defect: finds a stop only if the stop ends at the end of a token."""
    return next((found for found in one.found() if found[0] + len(found[1]) == len(one.text)), None)


def words(one: Simple, before: int) -> Found | None:
    """Defect: looks for each stop without the blanks at its ends."""
    found = [(one.text.find(stop.strip()), stop) for stop in one.stops if stop.strip() and stop.strip() in one.text]
    return min(found, default=None)


class WholeIsABeginning(Simple):
    """Defect: loses the whole answer if a stop begins with it. A server holds such text, and must send it at the
    end."""

    def flush(self) -> str:
        return "" if any(stop.startswith(self.text) for stop in self.stops) and self.text else super().flush()


# Answers.


class Ended(Generation):
    async def texts(self) -> Parts:
        parts = [part async for part in super().texts()]
        for part in self.changed(parts):
            yield part

    def changed(self, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return parts


class GoesOnInLogprobs(Ended):
    """Defect: also sends log probabilities of tokens after the stop."""

    def changed(self, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        self.spelled += [" and", " more"] * (self.end[0] == "stop_sequence")
        return parts


class OneTokenOfEachChunk(Generation):
    """Defect: if one chunk has the text of several tokens, sends the log probabilities of only the last of these
    tokens."""

    async def texts(self) -> Parts:
        known = 0
        async for kind, text in super().texts():
            if text:
                self.spelled[known:] = self.spelled[-1:]
                known = len(self.spelled)
            yield kind, text


class OnlyTheLastLogprob(Ended):
    def changed(self, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        self.spelled[:-1] = []
        return parts


class BlanksOfEachToken(Generation):
    """Defect: removes the blank at the beginning of every token except the first. Decoders that decode each token alone
    do this."""

    async def texts(self) -> Parts:
        begun = False
        async for kind, text in super().texts():
            yield kind, text.removeprefix(" ") if begun else text
            begun = begun or bool(text)


class EchoIsScanned(Generation):
    async def texts(self) -> Parts:
        if self.ask.body.get("echo") and any(stop in self.ask.prompt for stop in self.ask.stops):
            self.end = ("stop_sequence", self.ask.stops[0])
            return
        async for part in super().texts():
            yield part


class HeldTextIsLostWithEcho(Ended):
    def changed(self, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return parts[:-1] if self.ask.body.get("echo") and self.end[0] == "eos" else parts


class OneRequestId(Generation):
    """Defect: waits for three requests with the same X-Request-Id, and uses the stops of the first for all three."""

    async def texts(self) -> Parts:
        key = self.ask.headers.get(b"x-request-id")
        if key is not None:
            stops, complete = self.staged.memory.setdefault(key, ([], asyncio.Event()))
            stops.append(self.ask.stops)
            if len(stops) == 3:
                complete.set()
                del self.staged.memory[key]
            await complete.wait()
            self.scanner = self.staged.scanner(stops[0])
        async for part in super().texts():
            yield part


async def lf_for_crlf(made: Generation) -> Parts:
    async for kind, text in made.texts():
        yield kind, text.replace("\r\n", "\n")


def greedy(ask: Ask) -> bool:
    return ask.body.get("temperature") == 0


def only_greedy(chunks: Callable[[Generation], Parts]) -> Callable[[Generation], Parts]:
    return lambda made: chunks(made) if greedy(made.ask) else made.texts()


# The form.


def another(name: str) -> Edit:
    """Returns the edit that gives each chunk another value of `name`."""
    return lambda data: {**data, name: next(NUMBERS) if name == "created" else f"id-{next(NUMBERS)}"}


def reasoning_counted_apart(usage: Data) -> Data:
    details = {"reasoning_tokens": usage["completion_tokens"] + 9}
    return {**usage, "completion_tokens_details": details}


def offsets_from_zero(data: Any) -> Any:
    """Defect: counts `text_offset` from 0 again in each chunk."""
    logprobs = data["choices"][0].get("logprobs")
    if not logprobs:
        return data
    least = min(logprobs["text_offset"], default=0)
    moved = {**logprobs, "text_offset": [offset - least for offset in logprobs["text_offset"]]}
    return put(moved, "choices", 0, "logprobs")(data)


def chat_logprobs(data: Any) -> Any:
    """Defect: sends the log probabilities of completions in the form of chat."""
    logprobs = data["choices"][0].get("logprobs")
    if not logprobs:
        return data
    return put({"content": [{"token": token} for token in logprobs["tokens"]]}, "choices", 0, "logprobs")(data)


def text_is_done_early(data: Any) -> Any:
    return [data, {**data, "type": "response.output_text.done", "text": data["delta"]}]


def ends_of_one_word(choice: Any) -> Any:
    return {**choice, "finish_reason": choice["finish_reason"] or ""}


async def in_blocks_that_stay_open(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Defect: leaves out the end of a block if another block follows."""
    waiting: Any = None
    async for data in source:
        if waiting is not None and data["type"] != "content_block_start":
            yield waiting
        waiting = data if data["type"] == "content_block_stop" else None
        if waiting is None:
            yield data


KNOWN = [
    wrong("one answer for one prompt at temperature 0", "openai-chat-whole-with-and-without-stops-greedy-in-turn",
          "text", chunks=only_greedy(cached(lambda ask: ask.prompt))),
    wrong("a table of beginnings is followed once", "openai-chat-stream-falls-back-twice", "text", scanner=FollowsOnce),
    wrong("five held for five others", "openai-chat-stream-released-and-held-of-five", "text",
          scanner=SwapsWhatItHolds),
    wrong("no stops with a limit of one token", "openai-chat-whole-limit-of-one-with-the-stop", "text",
          ask=lambda ask: replace(ask, stops=[]) if ask.max_tokens == 1 else ask),
    wrong("held text is lost at EOS with echo", "openai-completions-stream-held-at-eos-with-echo", "text",
          generation=HeldTextIsLostWithEcho),
    wrong("CR LF in a token becomes LF", "openai-chat-stream-crlf-in-a-token-kept", "text", chunks=lf_for_crlf),
]  # fmt: skip
REPORTS = [
    # Forms of requests that were refused or misread.
    wrong("Rapid-MLX#2358: a stop that is a string", "openai-chat-whole-a-string", "form",
          stops=refuses(lambda given: isinstance(given, str))),
    wrong("ray#53288: stop is null", "openai-chat-stream-null", "form", stops=refuses(lambda given: given is None)),
    wrong("ollama#5545: a list of stops", "openai-completions-whole-first-of-three", "form",
          stops=refuses(lambda given: isinstance(given, list) and given)),
    wrong("lmdeploy#4186: a prompt of ids", "openai-completions-whole-a-prompt-of-ids", "form",
          body=refuses_bodies(lambda body: is_of_ids(body["prompt"]))),
    wrong("tt-inference-server#2581: a batch of ids", "openai-completions-stream-a-prompt-of-ids-in-a-list", "form",
          body=refuses_bodies(lambda body: isinstance(body["prompt"], list) and is_of_ids(body["prompt"][0]))),
    wrong("ragflow#15441: streams by default", "openai-chat-whole-no-word-about-streams", "form",
          body=stream_is_the_default),
    wrong("basyx-pdf-to-aas#8: options that are null", "openai-chat-stream-options-that-are-null", "form",
          body=refuses_bodies(lambda body: "seed" in body and body["seed"] is None)),
    wrong("rocketride-server#1544: stop_sequences are extra", "anthropic-stream-one-token", "form",
          body=refuses_bodies(lambda body: "stop_sequences" in body)),
    wrong("jsonparse#32: halves of a pair", "openai-chat-whole-json-in-escapes", "text", raw=surrogates_apart),
    wrong("OmniRoute#6740: a stream for who accepts one", "openai-chat-whole-an-event-stream-accepted", "form",
          ask=streams_for_accept),
    wrong("MaxKB#2956: nothing for who accepts a stream", "openai-chat-stream-an-event-stream-accepted", "text",
          ask=fails_for_accept),
    wrong("vllm#10583: one request id", "openai-chat-stream-one-request-id", "text", generation=OneRequestId),
    wrong("ferrox#57: the answer of a client that left", "openai-chat-whole-after-leaving-early", "text",
          chunks=cached(but(), partial=True)),
    # Log probabilities, counts and heads.
    wrong("language-planner#3: log probabilities after the stop", "openai-completions-whole-logprobs-of-a-stop", "form",
          generation=GoesOnInLogprobs),
    wrong("tabbyAPI#141: one token of each chunk", "openai-completions-stream-logprobs-of-released-text", "form",
          generation=OneTokenOfEachChunk),
    wrong("Floway#481: the last log probability", "openai-chat-whole-logprobs-of-a-stop", "form",
          generation=OnlyTheLastLogprob),
    wrong("vllm#47815: offsets that begin anew", "openai-completions-stream-logprobs-of-a-stop", "form",
          events=every(with_choices, offsets_from_zero)),
    wrong("imp#1589: completions in chat's form", "openai-completions-whole-logprobs-of-a-stop", "form",
          whole_answer=chat_logprobs),
    wrong("sglang#39864: each chunk of another second", "openai-chat-stream-split", "form",
          events=every(chunk, another("created"))),
    wrong("foundry-local#144: each chunk of another id", "openai-chat-stream-no-stop", "form",
          events=every(chunk, another("id"))),
    wrong("sglang#37450: more reasoning than tokens", "openai-chat-whole-think", "form",
          whole_answer=put(reasoning_counted_apart, "usage")),
    # The form of streams.
    wrong("ollama#4357: an empty reason in each chunk", "openai-chat-stream-three-tokens", "form",
          events=every(with_choices, put(ends_of_one_word, "choices", 0))),
    wrong("open-webui#16377: stop in each chunk", "openai-chat-stream-split", "form",
          events=every(with_choices, put("stop", "choices", 0, "finish_reason"))),
    wrong("cline#8518: choices are null", "openai-chat-stream-no-stop", "form",
          events=every(with_usage, put(None, "choices"))),
    wrong("OmniRoute#13693: done after the first delta", "openai-responses-stream-no-stop", "form",
          events=first(typed("response.output_text.delta"), text_is_done_early)),
    wrong("anthropic-sdk-kotlin#147: blocks that stay open", "anthropic-stream-think", "form",
          events=in_blocks_that_stay_open),
    wrong("vllm-mlx#628: no finish reason", "openai-completions-stream-no-stop", "finish",
          events=every(last_choice, put(None, "choices", 0, "finish_reason"))),
    wrong("imp#1550: end_turn for a stop", "anthropic-whole-split", "finish", told=end_turn),
    # Texts.
    wrong("streamsearch#19: text before a match", "openai-chat-stream-falls-back-within-two-tokens", "text",
          scanner=LosesBeforeTheMatch),
    wrong("SkyRL#778: a stop within a token", "openai-chat-whole-in-a-token-of-one-character", "text",
          scanner=finding(in_a_token_of_its_own)),
    wrong("ik_llama.cpp#780: the send position stays", "openai-chat-stream-never", "text", scanner=StaysBehind),
    wrong("FastChat#3848: a whole beginning is withheld", "openai-chat-stream-held-whole", "text",
          scanner=WholeIsABeginning),
    wrong("litgpt#2326: a token loses its blank", "openai-chat-stream-split", "text", generation=BlanksOfEachToken),
    wrong("vllm#47815: a stop in an echoed prompt", "openai-completions-whole-a-stop-in-an-echoed-prompt", "text",
          generation=EchoIsScanned),
    wrong("koboldcpp#790: stops without their blanks", "openai-chat-stream-blanks-around", "text",
          scanner=finding(words)),
]  # fmt: skip
WRONG = [*KNOWN, *REPORTS]
