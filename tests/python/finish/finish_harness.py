"""Helpers for the tests of `stopscan.finish`. `write` calls the function `to_*` of an API, and `read` calls the
function `from_*`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

from stopscan import finish as mappers
from stopscan.finish import EndReason, Finish

STRING = Finish("stop_sequence", "END", 26)
TOKEN = Finish("stop_token", 2)
FINISHES = {"stop_sequence": STRING, "stop_token": TOKEN} | {reason: Finish(reason) for reason in get_args(EndReason)}
APIS = ("anthropic", "openai", "responses", "ollama", "sglang", "llama_cpp", "gemini", "bedrock", "tgi")


def write(api: str, finish: Finish) -> Any:
    return getattr(mappers, f"to_{api}")(finish)


def read(api: str, payload: object) -> Finish | None:
    return getattr(mappers, f"from_{api}")(payload)  # type: ignore[no-any-return]


def outcome(api: str, payload: object) -> tuple[str, str | int | None] | None:
    """Reads a payload, and returns the reason and the stop, or ``None`` if the payload reports no end."""
    finish = read(api, payload)
    return None if finish is None else (finish.reason, finish.matched_stop)


def as_object(payload: Any) -> Any:
    """The payload as nested plain objects, as from a client that does not return dicts."""
    if isinstance(payload, list):
        return [as_object(item) for item in payload]
    if isinstance(payload, dict):
        return SimpleNamespace(**{key: as_object(value) for key, value in payload.items()})
    return payload
