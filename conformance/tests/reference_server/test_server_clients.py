"""Stops that the client finds, with a real engine: the text is as with the server's own stops, and generation ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import ollama
import openai
import pytest
from server_harness import CountingEngine, served

from stopscan import StopSet
from stopscan_clients import StopTransport
from stopscan_conformance.reciter import SCRIPTS, Reciter

STOPS = ["END", "STOP", "hello world", "abc", "b", "aab", "###", "\n", "fox jumps", "é", "世", "ha!", "gap  t"]
LONG = 1_500

Ask = Callable[..., Iterable[Any]]  # url, prompt, stops for the server, transport that stops in the client


def chat(url: str, prompt: str, stop: list[str], transport: Any = None) -> Iterable[Any]:
    http_client = transport and httpx.Client(transport=transport)
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", http_client=http_client)
    messages: Any = [{"role": "user", "content": prompt}]
    return client.chat.completions.create(model="reciter", messages=messages, stream=True, extra_body={"stop": stop})


def completions(url: str, prompt: str, stop: list[str], transport: Any = None) -> Iterable[Any]:
    http_client = transport and httpx.Client(transport=transport)
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", http_client=http_client)
    return client.completions.create(model="reciter", prompt=prompt, stream=True, extra_body={"stop": stop})


def responses(url: str, prompt: str, stop: list[str], transport: Any = None) -> Iterable[Any]:
    http_client = transport and httpx.Client(transport=transport)
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", http_client=http_client)
    return client.responses.create(model="reciter", input=prompt, stream=True, extra_body={"stop": stop})


def messages(url: str, prompt: str, stop: list[str], transport: Any = None) -> Iterable[Any]:
    http_client = transport and httpx2.Client(transport=transport)
    client = anthropic.Anthropic(base_url=url, api_key="none", http_client=http_client)
    return client.messages.create(
        model="reciter",
        messages=[{"role": "user", "content": prompt}],
        max_tokens=4096,
        stream=True,
        extra_body={"stop_sequences": stop},
    )


def generate(url: str, prompt: str, stop: list[str], transport: Any = None) -> Iterable[Any]:
    options = {"transport": transport} if transport else {}
    return ollama.Client(host=url, **options).generate(
        model="reciter", prompt=prompt, stream=True, options={"stop": stop}
    )


TEXTS: dict[Ask, Callable[[Any], str | None]] = {
    chat: lambda event: event.choices[0].delta.content if event.choices else None,
    completions: lambda event: event.choices[0].text if event.choices else None,
    responses: lambda event: event.delta if event.type == "response.output_text.delta" else None,
    messages: lambda event: getattr(event.delta, "text", None) if event.type == "content_block_delta" else None,
    generate: lambda event: event.response,
}


def read(ask: Ask, events: Iterable[Any]) -> str:
    return "".join(TEXTS[ask](event) or "" for event in events)


@pytest.mark.parametrize("ask", TEXTS, ids=lambda ask: ask.__name__)
def test_it_is_what_the_servers_own_stops_give(url: str, ask: Ask) -> None:
    stops = StopSet(STOPS)
    fired = 0
    for name in [name for name in SCRIPTS if not name.startswith("harmony")]:
        told: list[int] = []
        transport = StopTransport(stops, on_match=lambda choice, match, told=told: told.append(choice))
        assert read(ask, ask(url, f"[{name}]", [], transport)) == read(ask, ask(url, f"[{name}]", STOPS)), name
        fired += bool(told)
    assert fired >= 8


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> CountingEngine:
    reciter = Reciter({"long": [*["word "] * 20, "END", *["word "] * LONG]}, special_tokens=[])
    return CountingEngine(str(reciter.write(tmp_path_factory.mktemp("long") / "reciter")))


@pytest.fixture(scope="module")
def long_url(long: CountingEngine) -> Iterator[str]:
    with served(long) as url:
        yield url


@pytest.mark.parametrize("ask", TEXTS, ids=lambda ask: ask.__name__)
def test_the_engine_stops_when_the_connection_is_closed(long: CountingEngine, long_url: str, ask: Ask) -> None:
    before = len(long.model.widths)
    assert read(ask, ask(long_url, "[long]", [], StopTransport("END"))) == "word " * 20
    deadline = time.monotonic() + 30
    made = -1
    while made != len(long.model.widths) and time.monotonic() < deadline:
        made = len(long.model.widths)
        time.sleep(0.2)
    assert 20 < made - before < LONG
