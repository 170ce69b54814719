"""Tests the transports with clients that the ordinary test environment lacks. ``ci/clients-tests`` installs the clients
and runs these tests with STOPSCAN_CLIENTS=1, which makes a missing client an error."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest
import wire
from apis import MESSAGES
from replay import Recording, Replay
from test_recorded import valid_after_each_stop
from test_recordings import valid_as_the_recording
from test_transport_cohere_aws import cohere

from stopscan_clients import AsyncStopTransport, StopTransport

TEXTS = ["one E", "ND two", "more"]


def package(name: str) -> ModuleType:
    if os.environ.get("STOPSCAN_CLIENTS"):
        return __import__(name, fromlist=["x"])
    module: ModuleType = pytest.importorskip(name, reason=f"{name} is tested by ci/clients-tests")
    return module


def recorded(server: Replay, events: list[Any]) -> tuple[Recording, str]:
    recording = Recording(events, wire.chat_whole("one END two"), pause=len(events) - 3)
    return recording, server.record(recording)


def is_gone(recording: Recording) -> bool:
    return recording.gone.wait(10)


def chat_text(chunks: Any) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


LIKE_OPENAI = {
    "groq": lambda url: {"cls": "Groq", "base_url": url.removesuffix("/v1")},
    "together": lambda url: {"cls": "Together", "base_url": url},
}


def made_like_openai(name: str, url: str, http_client: Any, prefix: str = "") -> Any:
    options = LIKE_OPENAI[name](f"{url}/v1")
    cls = getattr(package(name), prefix + options["cls"])
    base = f"{url}/openai/v1" if name == "groq" else options["base_url"]
    return cls(base_url=base.removesuffix("/openai/v1"), api_key="none", http_client=http_client, max_retries=0)


@pytest.mark.parametrize("name", LIKE_OPENAI)
def test_clients_that_are_made_like_openais(server: Replay, name: str) -> None:
    made = made_like_openai(name, server.url, httpx.Client(transport=StopTransport("END")))
    recording, model = recorded(server, wire.chat(TEXTS))
    chunks = list(made.chat.completions.create(model=model, messages=MESSAGES, stream=True))
    assert chat_text(chunks) == "one "
    assert chunks[-1].choices[0].matched_stop == "END"
    assert is_gone(recording)
    answer = made.chat.completions.create(model=model, messages=MESSAGES)
    assert answer.choices[0].message.content == "one "


@pytest.mark.parametrize("name", LIKE_OPENAI)
def test_async_clients_that_are_made_like_openais(server: Replay, name: str) -> None:
    async def read() -> None:
        http_client = httpx.AsyncClient(transport=AsyncStopTransport("END"))
        made = made_like_openai(name, server.url, http_client, "Async")
        recording, model = recorded(server, wire.chat(TEXTS))
        stream = await made.chat.completions.create(model=model, messages=MESSAGES, stream=True)
        assert chat_text([chunk async for chunk in stream]) == "one "
        assert await asyncio.to_thread(is_gone, recording)

    asyncio.run(read())


@pytest.mark.parametrize("which", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_openai_3_takes_clients_of_both_packages(server: Replay, which: Any) -> None:
    openai = package("openai")
    if int(openai.__version__.partition(".")[0]) < 3:
        assert not os.environ.get("STOPSCAN_CLIENTS")
        pytest.skip("openai 3 is tested by ci/clients-tests")
    http_client = which.Client(transport=StopTransport("END"))
    made = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", http_client=http_client, max_retries=0)
    recording, model = recorded(server, wire.chat(TEXTS))
    with made.chat.completions.stream(model=model, messages=MESSAGES) as stream:
        assert stream.get_final_completion().choices[0].message.content == "one "
    assert is_gone(recording)


def test_mistralai(server: Replay) -> None:
    client: Callable[..., Any] = package("mistralai.client").Mistral
    made = client(api_key="none", server_url=server.url, client=httpx2.Client(transport=StopTransport("END")))
    recording, model = recorded(server, wire.chat(TEXTS))
    with made.chat.stream(model=model, messages=MESSAGES) as stream:
        assert chat_text(event.data for event in stream) == "one "
    assert is_gone(recording)
    assert made.chat.complete(model=model, messages=MESSAGES).choices[0].message.content == "one "


def test_mistralai_async(server: Replay) -> None:
    async def read() -> None:
        http = httpx2.AsyncClient(transport=AsyncStopTransport("END"))
        made = package("mistralai.client").Mistral(api_key="none", server_url=server.url, async_client=http)
        recording, model = recorded(server, wire.chat(TEXTS))
        async with await made.chat.stream_async(model=model, messages=MESSAGES) as stream:
            assert chat_text([event.data async for event in stream]) == "one "
        assert await asyncio.to_thread(is_gone, recording)

    asyncio.run(read())


def test_cohere_v2(server: Replay) -> None:
    http = httpx.Client(transport=StopTransport("END"))
    made = package("cohere").ClientV2(api_key="none", base_url=server.url, httpx_client=http)
    recording, model = recorded(server, cohere(TEXTS))
    events = list(made.chat_stream(model=model, messages=MESSAGES))
    deltas = [event.delta.message.content.text for event in events if event.type == "content-delta"]
    assert "".join(text or "" for text in deltas) == "one "
    assert events[-1].delta.finish_reason == "STOP_SEQUENCE"
    assert is_gone(recording)


@pytest.mark.parametrize("drain", [False, True])
def test_made_events_fit_coheres_types(drain: bool) -> None:
    package("cohere")
    valid_after_each_stop("cohere_v2", drain)


@pytest.mark.parametrize("drain", [False, True])
@pytest.mark.parametrize("name", ["cohere_chat.sse", "cohere_tools.sse"])
def test_cut_recordings_fit_coheres_types(name: str, drain: bool) -> None:
    package("cohere")
    valid_as_the_recording(name, drain)


def test_huggingface_hub_2(server: Replay) -> None:
    hub = package("huggingface_hub")
    if not hasattr(hub, "set_client_factory") or int(hub.__version__.partition(".")[0]) < 2:
        assert not os.environ.get("STOPSCAN_CLIENTS")
        pytest.skip("huggingface_hub 2 is tested by ci/clients-tests")
    hub.set_client_factory(lambda: httpx2.Client(transport=StopTransport("END")))
    try:
        recording, model = recorded(server, wire.chat(TEXTS))
        made = hub.InferenceClient(base_url=f"{server.url}/v1", api_key="none")
        chunks = list(made.chat_completion(MESSAGES, model=model, stream=True))
        assert chat_text(chunks) == "one "
        assert is_gone(recording)
    finally:
        hub.close_session()
        hub.set_client_factory(lambda: httpx2.Client())


def test_langchain_openai(server: Replay) -> None:
    transport = StopTransport("END")
    http = {"http_client": httpx.Client(transport=transport), "max_retries": 0}
    recording, model = recorded(server, wire.chat(TEXTS))
    made = package("langchain_openai").ChatOpenAI(base_url=f"{server.url}/v1", api_key="none", model=model, **http)
    assert "".join(chunk.text for chunk in made.stream("hi")) == "one "
    assert is_gone(recording)
    assert made.invoke("hi").text == "one "


@pytest.mark.parametrize("stream", [False, True])
def test_the_usage_of_langchain_anthropic_after_a_stop(server: Replay, stream: bool) -> None:
    """langchain must report the last value that the API has sent for each token count, and must not add a count twice.
    langchain once raised TypeError for an event in which a count was null."""
    langchain = package("langchain_anthropic")
    model = server.record(
        Recording(wire.anthropic(TEXTS), wire.anthropic_whole([{"type": "text", "text": "one END two"}]))
    )
    made = langchain.ChatAnthropic(model=model, base_url=server.url, api_key="none", max_retries=0)
    with pytest.MonkeyPatch.context() as patch:  # ChatAnthropic takes no HTTP client
        clients = importlib.import_module("langchain_anthropic.chat_models")
        http_client = httpx2.Client(transport=StopTransport("END"), base_url=server.url)
        patch.setattr(clients, "_get_default_httpx_client", lambda **options: http_client)
        chunks = list(made.stream("hi")) if stream else [made.invoke("hi")]
    answer = chunks[0] if len(chunks) == 1 else sum(chunks[1:], chunks[0])
    assert answer.text == "one "
    assert answer.response_metadata["stop_sequence"] == "END"
    counts = {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}
    whole = {"input_tokens": 3, "output_tokens": wire.TOKENS, "total_tokens": 3 + wire.TOKENS}
    assert {name: answer.usage_metadata[name] for name in counts} == (counts if stream else whole)


def test_pydantic_ai(server: Replay) -> None:
    async def read() -> None:
        http = httpx2 if package("pydantic_ai").__version__ >= "2.5" else httpx
        client = http.AsyncClient(transport=AsyncStopTransport("END"))
        provider = package("pydantic_ai.providers.openai").OpenAIProvider(
            base_url=f"{server.url}/v1", api_key="none", http_client=client
        )
        recording, name = recorded(server, wire.chat(TEXTS))
        model = package("pydantic_ai.models.openai").OpenAIChatModel(name, provider=provider)
        async with package("pydantic_ai").Agent(model).run_stream("hi") as run:
            assert await run.get_output() == "one "
        assert await asyncio.to_thread(is_gone, recording)

    asyncio.run(read())


def test_openai_agents(server: Replay) -> None:
    async def read() -> None:
        agents, openai = package("agents"), package("openai")
        agents.set_tracing_disabled(True)
        http = httpx.AsyncClient(transport=AsyncStopTransport("END"))
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", http_client=http, max_retries=0)
        recording, name = recorded(server, wire.chat(TEXTS))
        model = agents.OpenAIChatCompletionsModel(model=name, openai_client=client)
        run = agents.Runner.run_streamed(agents.Agent(name="a", model=model), "hi")
        async for _ in run.stream_events():
            pass
        assert run.final_output == "one "
        assert await asyncio.to_thread(is_gone, recording)

    asyncio.run(read())
