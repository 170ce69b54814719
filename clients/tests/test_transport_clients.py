"""The official clients over the transports, with a server that ignores stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx
import openai
import pytest
import trio
import wire
from apis import BY_NAME, MESSAGES, bedrock
from events import field, text_of
from reference import Reference
from replay import Recording, Replay
from test_transport_properties import FORMS, cut, read
from through import APIS, asker, async_asker, endless, is_gone
from wholes import PATHS, WHOLES

from stopscan import StopMatch
from stopscan_clients import AsyncStopTransport, StopTransport, scan_events

CASES = [
    ("aENENDb", ["END"]),
    ("xabcy", ["abc", "b"]),  # "b" completes before "abc", so "b" fires
    ("é\nEN", ["END"]),  # nothing fires, and text is held at the end
    ("a\n\nb", ["\n\n", "\nb"]),
]


def chunkings(text: str) -> Iterator[list[str]]:
    for cuts in range(2 ** (len(text) - 1)):
        places = [0, *[place for place in range(1, len(text)) if cuts >> (place - 1) & 1], len(text)]
        yield [text[begin:end] for begin, end in pairwise(places)]


def check(api: str, events: list[Any], fired: dict[int, StopMatch], text: str, stop: list[str]) -> None:
    oracle = Reference(stop)
    assert "".join(text_of(api, event) or "" for event in events) == oracle.feed(text) + oracle.flush()
    assert len([event for event in events if BY_NAME[api].finish(event)]) == 1
    expected = {} if oracle.match is None else {0: StopMatch(oracle.match.sequence, oracle.match.offset)}
    assert fired == expected


def few(text: str) -> list[list[str]]:
    """Returns five of the ways to cut ``text`` into pieces. They include the whole text as one piece, and single
    characters."""
    every = [*chunkings(text)]
    return [every[at * (len(every) - 1) // 4] for at in range(5)]


@pytest.mark.parametrize(("text", "stop"), CASES, ids=str)
@pytest.mark.parametrize("api", BY_NAME)
def test_every_chunking_of_a_body(api: str, text: str, stop: list[str]) -> None:
    framing, form = FORMS[api]
    for deltas in chunkings(text):
        out, fired = cut(framing, [*map(form, wire.WIRES[api](deltas))], stop)
        check(api, read(framing, out), fired, text, stop)


@pytest.mark.parametrize(("text", "stop"), CASES, ids=str)
@pytest.mark.parametrize("api", APIS)
def test_chunkings(server: Replay, api: str, text: str, stop: list[str]) -> None:
    fired: dict[int, StopMatch] = {}
    ask = asker(server.url, api, StopTransport(stop, on_match=fired.__setitem__))
    for deltas in few(text):
        fired.clear()
        check(api, list(ask(server.record(Recording(wire.WIRES[api](deltas))))), fired, text, stop)


@pytest.mark.parametrize(("text", "stop"), CASES, ids=str)
@pytest.mark.parametrize("api", APIS)
def test_chunkings_async(server: Replay, api: str, text: str, stop: list[str]) -> None:
    async def read() -> None:
        fired: dict[int, StopMatch] = {}
        ask = async_asker(server.url, api, AsyncStopTransport(stop, on_match=fired.__setitem__))
        for deltas in few(text):
            fired.clear()
            stream = await ask(server.record(Recording(wire.WIRES[api](deltas))))
            check(api, [event async for event in stream], fired, text, stop)

    asyncio.run(read())


@pytest.mark.parametrize(("text", "stop"), CASES, ids=str)
def test_chunkings_of_boto3s_events(server: Replay, text: str, stop: list[str]) -> None:
    for deltas in few(text):
        stream = scan_events(bedrock(server.url, server.record(Recording(wire.bedrock(deltas)))), stop)
        check("bedrock", list(stream), dict(stream.matches), text, stop)


def test_a_stop_in_boto3s_events_ends_the_request(server: Replay) -> None:
    recording = endless("bedrock")
    stream = scan_events(bedrock(server.url, server.record(recording)), "END")
    assert stream.closes
    event = next(event for event in stream if stream.matches)
    assert is_gone(recording), "before the first event after the stop is given out"
    assert len([item for item in (event, *stream) if BY_NAME["bedrock"].finish(item)]) == 1


@pytest.mark.parametrize("api", APIS)
def test_a_stop_ends_the_request(server: Replay, api: str) -> None:
    recording = endless(api)
    ask = asker(server.url, api, StopTransport("END"))
    assert "".join(text_of(api, event) or "" for event in ask(server.record(recording))) == "one "
    assert is_gone(recording), "the server has sent nothing after the stop"


@pytest.mark.parametrize("run", [asyncio.run, lambda coroutine: trio.run(lambda: coroutine)], ids=["asyncio", "trio"])
@pytest.mark.parametrize("api", APIS)
def test_a_stop_ends_the_async_request(server: Replay, api: str, run: Any) -> None:
    recording = endless(api)

    async def read() -> str:
        ask = async_asker(server.url, api, AsyncStopTransport("END"))
        return "".join([text_of(api, event) or "" async for event in await ask(server.record(recording))])

    assert run(read()) == "one "
    assert is_gone(recording)


@pytest.mark.parametrize("api", APIS)
def test_a_client_that_leaves_ends_the_request(server: Replay, api: str) -> None:
    recording = endless(api)
    ask = asker(server.url, api, StopTransport("never"))
    stream = ask(server.record(recording))
    events = iter(stream)
    while not text_of(api, next(events)):
        pass
    stream.close()
    assert recording.gone.wait(10)


@pytest.mark.parametrize("api", APIS)
def test_a_whole_answer(server: Replay, api: str) -> None:
    fired: dict[int, StopMatch] = {}
    ask = asker(server.url, api, StopTransport(["END"], on_match=fired.__setitem__))
    answer = ask(server.record(Recording(whole=WHOLES[api]("one END two"))), stream=False)
    assert field(answer, *PATHS[api]) == "one "
    assert fired == {0: StopMatch("END", 4)}
    answer = ask(server.record(Recording(whole=WHOLES[api]("one two"))), stream=False)
    assert field(answer, *PATHS[api]) == "one two"


@pytest.mark.parametrize("api", APIS)
def test_a_whole_answer_async(server: Replay, api: str) -> None:
    async def read() -> None:
        ask = async_asker(server.url, api, AsyncStopTransport(["END"]))
        answer = await ask(server.record(Recording(whole=WHOLES[api]("one END two"))), stream=False)
        assert field(answer, *PATHS[api]) == "one "

    asyncio.run(read())


def test_the_answer_names_the_stop(server: Replay) -> None:
    for stream in (True, False):
        for api, name_in in (
            ("chat", lambda e: field(e, "choices", 0, "matched_stop")),
            ("anthropic", lambda e: field(e, "delta", "stop_sequence") or field(e, "stop_sequence")),
            ("responses", lambda e: field(e, "response", "matched_stop") or field(e, "matched_stop")),
        ):
            model = server.record(Recording(wire.WIRES[api](["one END"]), whole=WHOLES[api]("one END")))
            answer = asker(server.url, api, StopTransport("END"))(model, stream=stream)
            assert [named for event in (answer if stream else [answer]) if (named := name_in(event))] == ["END"]


def test_the_helpers_of_openai_and_anthropic(server: Replay) -> None:
    import anthropic
    import httpx2

    made = openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="none", http_client=httpx.Client(transport=StopTransport("END"))
    )
    model = server.record(Recording(wire.chat(["one E", "ND", " two"])))
    with made.chat.completions.stream(model=model, messages=MESSAGES) as stream:
        assert stream.get_final_completion().choices[0].message.content == "one "
    model = server.record(Recording(wire.WIRES["responses"](["one E", "ND", " two"])))
    with made.responses.stream(model=model, input="hi") as response:
        assert response.get_final_response().output_text == "one "
    other = anthropic.Anthropic(
        base_url=server.url, api_key="none", http_client=httpx2.Client(transport=StopTransport("END"))
    )
    model = server.record(Recording(wire.anthropic(["one E", "ND", " two"])))
    with other.messages.stream(model=model, messages=MESSAGES, max_tokens=9) as messages:
        final = messages.get_final_message()
    assert (final.content[0].text, final.stop_reason, final.stop_sequence) == ("one ", "stop_sequence", "END")  # type: ignore[union-attr]


def test_a_chat_of_google_genai_keeps_its_turn(server: Replay) -> None:
    """google-genai adds an answer to the history of a chat only if it has read the stream to its end. The transport
    cuts the body of the response, so google-genai reads to the end. A cut of google-genai's events would lose the
    answer."""
    from apis import genai

    options = {"base_url": server.url, "client_args": {"transport": StopTransport("END")}}
    made = genai.Client(api_key="none", http_options=options)
    chat = made.chats.create(model=server.record(Recording(wire.WIRES["gemini"](["one E", "ND two"]))))
    assert "".join(event.text or "" for event in chat.send_message_stream("hi")) == "one "
    first, *rest = chat.get_history()
    assert (first.role, {turn.role for turn in rest}) == ("user", {"model"})
    assert "".join(part.text or "" for turn in rest for part in turn.parts or ()) == "one "
