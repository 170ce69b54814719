"""LiteLLM over the transport, and what a stop closes of its own wrappers."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import httpx
import litellm
import pytest
import wire
from apis import MESSAGES
from litellm.llms.custom_httpx.http_handler import HTTPHandler
from packaging.version import Version
from replay import Recording, Replay

from stopscan import StopMatch
from stopscan_clients import StopTransport, scan_events

ROUTES = {
    "hosted_vllm": ("chat", "/v1"),
    "anthropic": ("anthropic", "/v1/messages"),
    "ollama_chat": ("ollama", ""),
}


@pytest.mark.parametrize("provider", ROUTES)
def test_a_stop_ends_the_request(server: Replay, provider: str) -> None:
    api, base = ROUTES[provider]
    events = wire.WIRES[api](["one E", "ND two", *["more"] * 9])
    last = next(number for number, event in enumerate(events, 1) if "ND two" in str(event))
    recording = Recording(events, pause=last)
    model = server.record(recording)
    told: dict[int, StopMatch] = {}
    client = HTTPHandler(client=httpx.Client(transport=StopTransport("END", on_match=told.__setitem__)))
    options: Any = {"messages": MESSAGES, "api_base": server.url + base, "api_key": "none", "client": client}
    chunks = list(litellm.completion(f"{provider}/{model}", stream=True, **options))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "one "
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert told == {0: StopMatch("END", 4)}
    assert recording.gone.wait(10)


@pytest.mark.parametrize("provider", ["anthropic", "ollama_chat"])
def test_closes_says_whether_litellms_wrapper_can_be_closed(server: Replay, provider: str) -> None:
    """LiteLLM 1.110 can close its wrappers over Anthropic and Ollama; versions before cannot."""
    api, base = ROUTES[provider]
    events = wire.WIRES[api](["one END", *["more"] * 9])
    last = next(number for number, event in enumerate(events, 1) if "one END" in str(event))
    recording = Recording(events, pause=last)
    model = server.record(recording)
    options: Any = {"messages": MESSAGES, "api_base": server.url + base, "api_key": "none"}
    stream = scan_events(litellm.completion(f"{provider}/{model}", stream=True, **options), "END")
    closes = stream.closes
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "one "
    assert recording.gone.wait(10 if closes else 1) == closes
    assert closes or Version(version("litellm")) < Version("1.110")
