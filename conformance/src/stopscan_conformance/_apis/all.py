"""The APIs by name. Harmony's are the same routes, with a model that speaks in channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stopscan_conformance._apis import anthropic, ollama, openai, responses, sglang
from stopscan_conformance._apis._api import Api

_APIS = (
    openai.CHAT,
    openai.COMPLETIONS,
    responses.RESPONSES,
    anthropic.MESSAGES,
    ollama.CHAT,
    ollama.GENERATE,
    sglang.GENERATE,
    replace(openai.CHAT, name="harmony-chat", harmony=True),
    replace(responses.RESPONSES, name="harmony-responses", harmony=True),
)
APIS: Mapping[str, Api] = {api.name: api for api in _APIS}
