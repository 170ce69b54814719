"""Sends random streams through the official clients and the transports, and compares each with a brute-force scan.

    python clients/tests/many_streams.py 10000 [SEED]

Prints a line for each API and each way to read: how many streams there were, how many of them a stop has ended, and how
many were wrong. The server ignores stops. After the event that completes a stop, it waits for the client to leave.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests" / "python" / "core")]

import anthropic
import httpx
import httpx2
import openai
import wire
from apis import BY_NAME, MESSAGES
from events import field, text_of
from reference import Reference
from replay import Recording, Replay, replaying
from through import APIS, asker, async_asker

from stopscan import StopMatch
from stopscan_clients import AsyncStopTransport, StopTransport

HELPERS = ("chat", "responses", "anthropic")
NAMED: dict[str, Callable[[Any], Any]] = {
    "chat": lambda e: field(e, "choices", 0, "matched_stop"),
    "completions": lambda e: field(e, "choices", 0, "matched_stop"),
    "responses": lambda e: field(e, "response", "matched_stop"),
    "anthropic": lambda e: field(e, "delta", "stop_sequence"),
}


class Stream:
    """A stream with random text, random pieces and random stops. `expected` is the text that must come out, and `match`
    is the stop that must fire."""

    def __init__(self, api: str, rng: random.Random) -> None:
        self.api = api
        self.text = "".join(rng.choices('abEND\n"é漢😀 ', k=rng.randint(1, 40)))
        self.stops = ["".join(rng.choices("abEND\né", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 3))]
        cuts = sorted(rng.sample(range(1, len(self.text)), rng.randint(0, len(self.text) - 1)))
        deltas = [self.text[a:b] for a, b in zip([0, *cuts], [*cuts, len(self.text)], strict=True)]
        oracle = Reference(self.stops)
        expected, last = "", None
        for number, delta in enumerate(deltas):
            expected += oracle.feed(delta)
            if oracle.match is not None:
                last = number
                break
        self.expected = expected + oracle.flush()
        self.match = oracle.match and StopMatch(oracle.match.sequence, oracle.match.offset)
        self.recording = Recording(wire.WIRES[api](deltas))
        if last is not None:  # the server waits after the event that completes the stop
            texts = [number for number, event in enumerate(self.recording.events, 1) if text_of(api, event)]
            self.recording.pause = texts[last]

    def wrong(self, events: list[Any], matches: dict[int, StopMatch], text: str) -> str | None:
        if text != self.expected:
            return f"{text!r} is not {self.expected!r}"
        if matches != ({} if self.match is None else {0: self.match}):
            return f"{matches} is not {self.match}"
        named = [name for event in events if self.api in NAMED and (name := NAMED[self.api](event))]
        if self.match is not None and self.api in NAMED and events and named != [self.match.sequence]:
            return f"the answer names {named}, not {self.match.sequence!r}"
        if len([event for event in events if BY_NAME[self.api].finish(event)]) != 1 and events:
            return "the stream does not have exactly one end"
        over = self.match is None or (self.recording.gone.wait(10) and self.recording.sent == self.recording.pause)
        return None if over else f"{self.recording.sent} events were sent, {self.recording.pause} until the stop"


def asking(api: str, stops: list[str]) -> dict[str, Any]:
    """Returns the options of a request with these stops."""
    if api in ("chat", "completions"):
        return {"stop": stops}
    if api == "responses":
        return {"extra_body": {"stop": stops}}
    if api == "anthropic":
        return {"stop_sequences": stops}
    return {"config": {"stop_sequences": stops}} if api == "gemini" else {"options": {"stop": stops}}


Matches = dict[int, StopMatch]
Outcome = tuple[Stream, "str | None"]


def read(url: str, api: str, matches: Matches, streams: Iterator[tuple[Stream, str]]) -> Iterator[Outcome]:
    ask = asker(url, api, StopTransport(on_match=matches.__setitem__))
    for stream, model in streams:
        events = list(ask(model, **asking(api, stream.stops)))
        yield stream, stream.wrong(events, matches, "".join(text_of(api, event) or "" for event in events))


def read_async(url: str, api: str, matches: Matches, streams: Iterator[tuple[Stream, str]]) -> Iterator[Outcome]:
    loop = asyncio.new_event_loop()
    ask = async_asker(url, api, AsyncStopTransport(on_match=matches.__setitem__))

    async def read_stream(stream: Stream, model: str) -> list[Any]:
        return [event async for event in await ask(model, **asking(api, stream.stops))]

    for stream, model in streams:
        events = loop.run_until_complete(read_stream(stream, model))
        yield stream, stream.wrong(events, matches, "".join(text_of(api, event) or "" for event in events))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def read_helper(url: str, api: str, matches: Matches, streams: Iterator[tuple[Stream, str]]) -> Iterator[Outcome]:
    """Like `read`, but calls the client's own ``stream()``. This function collects the text, so there are no events to
    check."""
    transport = StopTransport(on_match=matches.__setitem__)
    messages = anthropic.Anthropic(
        base_url=url, api_key="none", http_client=httpx2.Client(transport=transport)
    ).messages
    made = openai.OpenAI(base_url=f"{url}/v1", api_key="none", http_client=httpx.Client(transport=transport))

    def gathered(model: str, options: Any) -> str:
        if api == "anthropic":
            with messages.stream(model=model, messages=MESSAGES, max_tokens=9, **options) as stream:
                return "".join(block.text for block in stream.get_final_message().content if block.type == "text")
        if api == "responses":
            with made.responses.stream(model=model, input="hi", **options) as stream:
                return str(stream.get_final_response().output_text)
        with made.chat.completions.stream(model=model, messages=MESSAGES, **options) as stream:
            return stream.get_final_completion().choices[0].message.content or ""

    for stream, model in streams:
        yield stream, stream.wrong([], matches, gathered(model, asking(api, stream.stops)))


def streams(server: Replay, api: str, rng: random.Random, matches: Matches, count: int) -> Iterator[tuple[Stream, str]]:
    for _ in range(count):
        stream = Stream(api, rng)
        matches.clear()
        model = server.record(stream.recording)
        yield stream, model
        del server.recordings[model]


def main(count: int, seed: int = 27) -> int:
    forms = [(api, way, reader) for api in APIS for way, reader in (("sync", read), ("async", read_async))]
    forms += [(api, "stream()", read_helper) for api in HELPERS]
    rng = random.Random(seed)
    wrong = 0
    with replaying() as server:
        for api, way, reader in forms:
            done = ended = failed = 0
            matches: Matches = {}
            pending = streams(server, api, rng, matches, -(-count // len(forms)))
            for stream, fault in reader(server.url, api, matches, pending):
                done, ended, failed = done + 1, ended + (stream.match is not None), failed + (fault is not None)
                if fault is not None:
                    print(f"{api}, {way}: {stream.stops} in {stream.text!r}: {fault}", flush=True)
            wrong += failed
            print(f"{api:12} {way:9} {done:6} streams, {ended:6} stopped, {failed} wrong", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or [10_000])))
