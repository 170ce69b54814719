"""LiteLLM over the transport: a stop ends the text, and closes the connection to the server."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import wire
from apis import MESSAGES
from replay import Recording, Replay

from stopscan import StopMatch
from stopscan_clients import StopTransport

ROUTES = {
    "hosted_vllm": ("chat", "/v1"),
    "anthropic": ("anthropic", "/v1/messages"),
    "ollama_chat": ("ollama", ""),
}


@pytest.mark.parametrize("provider", ROUTES)
def test_a_stop_ends_the_request(server: Replay, provider: str) -> None:
    # litellm is imported only here: the import takes 2 s, and each process that collects tests imports this file.
    litellm = pytest.importorskip("litellm", reason="litellm is not installed: ci/clients-tests installs it")
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    api, base = ROUTES[provider]
    events = wire.WIRES[api](["one E", "ND two", *["more"] * 9])
    last = next(number for number, event in enumerate(events, 1) if "ND two" in str(event))
    recording = Recording(events, pause=last)
    model = server.record(recording)
    matches: dict[int, StopMatch] = {}
    client = HTTPHandler(client=httpx.Client(transport=StopTransport("END", on_match=matches.__setitem__)))
    options: Any = {"messages": MESSAGES, "api_base": server.url + base, "api_key": "none", "client": client}
    chunks = list(litellm.completion(f"{provider}/{model}", stream=True, **options))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "one "
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert matches == {0: StopMatch("END", 4)}
    assert recording.gone.wait(10)
