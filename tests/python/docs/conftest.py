"""A local server for the programs in the documents. Environment variables give its address to the official clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import wire
from replay import Recording, replaying

ANSWER = "The first is 2.\nThe second is 3.\n\nQuestion: And the third?\nThe third is 5."
THOUGHT = "Thought: I have to look that up.\nAction: population[Reykjavík]\n"
IMAGINED = "Observation: 400,000\nThought: I know.\nFinal Answer: 400,000"
KNOWN = "Thought: I know.\nFinal Answer: 139,000"


def answered(path: str, body: dict[str, Any]) -> Recording:
    asked = str(body)
    text = ANSWER
    if "population[" in asked:
        text = KNOWN if "Observation: 139,000" in asked else THOUGHT + IMAGINED
    deltas = re.findall(r"(?s).{1,4}", text)
    api = {"completions": "chat", "responses": "responses", "messages": "anthropic"}[path.rpartition("/")[2]]
    whole = wire.chat_whole(text) if api == "chat" else None
    return Recording(wire.WIRES[api](deltas), whole)


@pytest.fixture(scope="session", autouse=True)
def apis() -> Iterator[None]:
    with replaying() as server, pytest.MonkeyPatch.context() as patch:
        server.default = answered
        patch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        patch.setenv("ANTHROPIC_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("ANTHROPIC_API_KEY", "none")
        yield
