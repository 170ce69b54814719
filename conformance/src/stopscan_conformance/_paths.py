"""Requests as they go over the wire, for what no official client would send or read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopscan_conformance._apis import Request, anthropic, openai, responses

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-completions": "/v1/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "ollama-chat": "/api/chat",
    "ollama-generate": "/api/generate",
    "generate": "/generate",
}


def body_of(api: str, model: str, request: Request) -> dict[str, Any]:
    """The JSON of a request."""
    top: dict[str, Any] = {"model": model, "stream": request.stream}
    if api.startswith("ollama"):
        content: dict[str, Any] = {"messages": request.messages} if api == "ollama-chat" else {"prompt": request.text}
        return {**top, **content, "options": {**request.limit("num_predict"), **request.named("stop")}}
    if api == "generate":
        sampling = {**request.limit("max_new_tokens"), **request.named("stop")}
        return {"text": request.text, "stream": request.stream, "sampling_params": sampling}
    if api == "anthropic":
        return {**top, **anthropic.content(request), **request.named("stop_sequences")}
    if api == "openai-responses":
        limit = request.limit("max_output_tokens")
        return {**top, "input": responses.input_of(request), **limit, **request.named("stop")}
    content = {named(api, "content"): request.messages if api == "openai-chat" else request.text}
    options = openai.options(request)
    return {**top, **content, **options.pop("extra_body"), **options}


def with_option(api: str, body: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The body with an option where the API has it; a `value` of None takes it away."""
    holder = {"generate": "sampling_params"}.get(api, "options" if api.startswith("ollama") else "")
    options = {**(body[holder] if holder else body), name: value}
    if value is None:
        del options[name]
    return {**body, holder: options} if holder else options


def named(api: str, name: str) -> str:
    """An option's name, and the content's, in an API's own words."""
    own: Mapping[str, Mapping[str, str]] = {
        "anthropic": {"stop": "stop_sequences"},
        "openai-completions": {"content": "prompt"},
        "openai-responses": {"limit": "max_output_tokens", "content": "input"},
        "ollama-chat": {"limit": "num_predict"},
        "ollama-generate": {"limit": "num_predict", "content": "prompt"},
        "generate": {"limit": "max_new_tokens", "content": "text"},
    }
    usual = {"stop": "stop", "limit": "max_tokens", "content": "messages"}
    return {**usual, **own.get(api, {})}.get(name, name)
