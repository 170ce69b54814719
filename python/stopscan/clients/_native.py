from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stopscan import StopSet


class Limit(NamedTuple):
    most: int | None  # how many stops a request may have; None: no limit is documented
    blank: bool  # whether a stop may be nothing but white space
    source: str


LIMITS = {
    "openai": Limit(4, True, "openai.types.chat.completion_create_params, `stop`: up to 4 sequences"),
    "openai-reasoning": Limit(0, True, "the same: not supported with o3 and o4-mini; GPT-5 answers with a 400, too"),
    "responses": Limit(0, True, "openai.types.responses.response_create_params has no such parameter"),
    "azure": Limit(4, True, "langchain#20234: a fifth is answered with a 400"),
    "anthropic": Limit(None, False, "litellm#3286: 'each stop sequence must contain non-whitespace'"),
    "gemini": Limit(5, True, "GenerationConfig, `stopSequences`: the set of character sequences (up to 5)"),
    "mistral": Limit(4, True, "langchain#38047, tried on the API"),
    "deepseek": Limit(16, True, "create chat completion, `stop`: a string or up to 16"),
    "grok": Limit(
        0, True, "xAI's reasoning guide: `stop` is an error with reasoning models, which grok-4 and later are"
    ),
    "bedrock": Limit(
        2500, True, "API_runtime_InferenceConfiguration, `stopSequences`; a model may take fewer, or none"
    ),
    "ollama": Limit(None, True, "docs/modelfile.md: multiple stop patterns may be set"),
    "vllm": Limit(4, True, "vLLM 0.33, VLLM_MAX_STOP_STRINGS over HTTP"),
}


def native_stops(api: str, stop: str | Iterable[str] | None, /) -> tuple[list[str], list[str]]:
    """Returns the stops to send to the API, and those that are left to scan for, both in the given order.

    A stop is left although the API would take it if the API would then cut text that another one must be found in:
    ``"b"`` when ``"ab"`` is left, ``"abc"`` when ``"b"`` is. An API that does not say which stop ended its text says so
    of the ones it was sent, too; scan for all of them, and send none, where that matters.

    ``ValueError`` for an API that is not in the table, with those that are.

    >>> native_stops("openai", ["a", "b", "c", "d", "e"])
    (['a', 'b', 'c', 'd'], ['e'])
    >>> native_stops("anthropic", ["END", "\\n\\n"])
    (['END'], ['\\n\\n'])
    """
    if api not in LIMITS:
        raise ValueError(f"no limits are known of {api!r}; they are of {', '.join(LIMITS)}")
    limit = LIMITS[api]
    stops = StopSet(stop).stop
    able = [stop for stop in stops if limit.blank or stop.strip()]
    while True:
        native = able[: limit.most]
        left = [stop for stop in stops if stop not in native]
        hiding = [stop for stop in native if any(_hides(stop, other) for other in left)]
        if not hiding:
            return native, left
        able = [stop for stop in able if stop not in hiding]


def _hides(native: str, other: str) -> bool:
    """Whether an API that stops at ``native`` cuts text in which another stop would have been found, by rule 1."""
    return other in native[:-1] or other.endswith(native)
