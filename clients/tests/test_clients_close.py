"""A stop ends the request: the server that replays sees its client leave before it sends another event."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
import wire
from apis import APIS, BY_NAME, MESSAGES, Api, client, genai, run
from replay import Recording, Replay

from stopscan_clients import ascan_events, scan_events

httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")
trio = pytest.importorskip("trio", reason="trio is not installed")

ASYNC = [api for api in APIS if api.aopen]


def endless(api: str) -> Recording:
    """An answer whose third delta completes a stop. The server waits there for the client to leave."""
    events = wire.WIRES[api](["one E", "N", "D two", *["more"] * 100])
    last = next(number for number, event in enumerate(events, 1) if "D two" in str(event))
    return Recording(events, pause=last)


def left(recording: Recording) -> bool:
    return recording.gone.wait(10) and recording.sent == recording.pause


@pytest.mark.parametrize("api", APIS, ids=str)
def test_the_server_sees_the_client_leave(server: Replay, api: Api) -> None:
    recording = endless(api.name)
    stream = scan_events(api.open(server.url, server.record(recording)), "END")
    event = next(event for event in stream if stream.matches)
    assert left(recording), "before the first event after the stop is given out"
    rest = [event, *stream]
    assert (api.read(rest), len([e for e in rest if api.finish(e)])) == ("", 1)


@pytest.mark.parametrize("api", ASYNC, ids=str)
def test_the_server_sees_the_async_client_leave(server: Replay, api: Api) -> None:
    async def read(recording: Recording) -> None:
        async with asyncio.timeout(20) if hasattr(asyncio, "timeout") else _no_timeout():
            stream = ascan_events(await api.aopen(server.url, server.record(recording)), "END")
            text = "".join([api.text(event) or "" async for event in stream])
        assert text == "one "
        assert await asyncio.to_thread(left, recording)

    run(read, endless(api.name))


@pytest.mark.parametrize("runner", [asyncio.run, lambda function: trio.run(function)], ids=["asyncio", "trio"])
def test_python_genai_2425_the_connection_of_the_async_client_is_closed(server: Replay, runner: Any) -> None:
    """On httpx, without aiohttp. Closing its stream leaves the connection open, and there is no handle on it."""
    recording = endless("gemini")

    async def read() -> None:
        async with httpx2.AsyncClient() as transport:
            options = {"base_url": server.url, "httpx_async_client": transport}
            made = genai.Client(api_key="none", http_options=options)
            opened = await made.aio.models.generate_content_stream(model=server.record(recording), contents="hi")
            stream = ascan_events(opened, "END")
            assert "".join([event.text or "" async for event in stream]) == "one "
            assert recording.gone.wait(10)

    runner(read()) if runner is asyncio.run else runner(read)


class _no_timeout:  # noqa: N801 - before 3.11
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *error: Any) -> None: ...


@pytest.mark.parametrize("api", [BY_NAME[name] for name in ("chat", "responses", "anthropic", "ollama")], ids=str)
def test_the_server_sees_the_client_leave_under_trio(server: Replay, api: Api) -> None:
    async def read(recording: Recording) -> None:
        with trio.fail_after(20):
            stream = ascan_events(await api.aopen(server.url, server.record(recording)), "END")
            text = "".join([api.text(event) or "" async for event in stream])
        assert text == "one "
        assert await trio.to_thread.run_sync(left, recording)

    client.cache_clear()
    trio.run(read, endless(api.name))


@pytest.mark.parametrize("api", APIS, ids=str)
def test_leaving_the_with_block_ends_the_request(server: Replay, api: Api) -> None:
    recording = endless(api.name)
    with scan_events(api.open(server.url, server.record(recording)), "never") as stream:
        for event in stream:
            if api.text(event):
                break
    assert recording.gone.wait(10)
    assert list(stream) == []


@pytest.mark.parametrize("api", ASYNC, ids=str)
def test_leaving_the_async_with_block_ends_the_request(server: Replay, api: Api) -> None:
    async def read(recording: Recording) -> None:
        async with ascan_events(await api.aopen(server.url, server.record(recording)), "never") as stream:
            async for event in stream:
                if api.text(event):
                    break
        assert await asyncio.to_thread(recording.gone.wait, 10)

    run(read, endless(api.name))


@pytest.mark.parametrize("api", ASYNC, ids=str)
def test_a_cancelled_step_loses_no_text(server: Replay, api: Api) -> None:
    """The server is silent after "EN": the wait for the next event is cancelled, and the client's stream with it."""
    recording = Recording(wire.WIRES[api.name](["one ", "EN", "D"]))
    held = next(number for number, event in enumerate(recording.events, 1) if '"EN"' in str(event).replace("'", '"'))
    recording.pause = held

    async def read() -> None:
        stream = ascan_events(await api.aopen(server.url, server.record(recording)), "END")
        text = ""
        while not stream.held:
            text += api.text(await anext(stream)) or ""
        step = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.1)
        step.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await step
        assert (text, stream.held) == ("one ", {0: "EN"})
        try:
            text += "".join([api.text(event) or "" async for event in stream])
        except Exception:  # aiohttp's stream ends with an error when it was cancelled
            text += stream.held[0]
        assert text == "one EN"
        await stream.aclose()

    run(read)


def helpers(url: str) -> dict[str, Callable[[str], Any]]:
    made, other = client(openai.OpenAI, f"{url}"), client(anthropic.Anthropic, url)
    return {
        "chat": lambda model: made.chat.completions.stream(model=model, messages=MESSAGES),
        "responses": lambda model: made.responses.stream(model=model, input="hi"),
        "anthropic": lambda model: other.messages.stream(model=model, messages=MESSAGES, max_tokens=9),
    }


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
def test_the_server_sees_the_helper_leave(server: Replay, api: str) -> None:
    recording = endless(api)
    with helpers(server.url)[api](server.record(recording)) as helper:
        assert list(scan_events(helper, "END"))
        assert left(recording)


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
def test_closing_a_scanned_helper_ends_the_request(server: Replay, api: str) -> None:
    recording = endless(api)
    with helpers(server.url)[api](server.record(recording)) as helper:
        stream = scan_events(helper, "ENDS")
        while not stream.held:
            next(stream)
        stream.close()
        assert recording.gone.wait(10)
        assert (list(stream), stream.held) == ([], {0: "E"})


def test_closing_a_scanned_async_helper_ends_the_request(server: Replay) -> None:
    async def read(recording: Recording) -> None:
        made = client(openai.AsyncOpenAI, server.url)
        async with made.chat.completions.stream(model=server.record(recording), messages=MESSAGES) as helper:
            stream = ascan_events(helper, "never")
            await anext(stream)
            await stream.aclose()
            assert await asyncio.to_thread(recording.gone.wait, 10)

    run(read, endless("chat"))


def test_two_choices_are_read_until_both_have_ended(server: Replay) -> None:
    """The second choice begins when the first has ended: only the request tells that it will come."""
    groups = [[(0, "one END")], [(0, "more")], [(1, "two E"), (0, "more")], [(1, "ND")], [(1, "more")]]
    events = [wire.chat_chunk([wire.chat_choice(i, content=text) for i, text in group]) for group in groups]
    recording = Recording(events, pause=4)
    model = server.record(recording)
    opened = client(openai.OpenAI, server.url).chat.completions.create(model=model, messages=MESSAGES, n=2, stream=True)
    stream = scan_events(opened, "END")
    texts = {0: "", 1: ""}
    for chunk in stream:
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == {0: "one ", 1: "two "}
    assert sorted(stream.matches) == [0, 1]
    assert left(recording)


def test_prompts_of_a_completions_request_are_choices(server: Replay) -> None:
    events = [wire.completions_chunk([wire.completions_choice("one END", index)]) for index in (0, 1, 2)]
    recording = Recording([*events, wire.completions_chunk([wire.completions_choice("more", 0)])], pause=3)
    model = server.record(recording)
    made = client(openai.OpenAI, server.url)
    stream = scan_events(made.completions.create(model=model, prompt=["a", "b", "c"], stream=True), "END")
    assert "".join(chunk.choices[0].text for chunk in stream) == "one " * 3
    assert left(recording)


def test_the_connection_stays_when_the_stream_is_read_on(server: Replay) -> None:
    recording = Recording(wire.chat(["one END", "more"]))
    stream = scan_events(BY_NAME["chat"].open(server.url, server.record(recording)), "END", drain=True)
    assert [event.usage for event in stream][-1].completion_tokens == wire.TOKENS
    assert recording.sent == len(recording.events)


def test_the_http_response_is_there(server: Replay) -> None:
    stream = scan_events(BY_NAME["chat"].open(server.url, server.record(Recording(wire.chat(["one"])))), "END")
    assert stream.response.status_code == 200
    stream.close()
    with pytest.raises(AttributeError, match="response"):
        _ = scan_events([], "END").response
