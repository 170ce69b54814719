"""The APIs by name."""

from collections.abc import Mapping
from dataclasses import replace

from stopscan_conformance.apis import anthropic, ollama, openai, responses, sglang
from stopscan_conformance.apis.api import Api, End, Extras, Part, Request, short

__all__ = ["APIS", "Api", "End", "Extras", "Part", "Request", "short"]

_APIS = (
    openai.CHAT,
    openai.COMPLETIONS,
    responses.RESPONSES,
    anthropic.MESSAGES,
    ollama.CHAT,
    ollama.GENERATE,
    replace(responses.RESPONSES, name="responses-with-stop", stops=True, extra=True),
    sglang.GENERATE,
)
APIS: Mapping[str, Api] = {api.name: api for api in _APIS}
