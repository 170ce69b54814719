from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, get_args

from stopscan import StopScanner, StopSet

OpenAi: TypeAlias = Literal["openai", "openai-reasoning", "responses", "azure", "mistral", "deepseek", "grok", "vllm"]
Name: TypeAlias = Literal[OpenAi, "anthropic", "gemini", "bedrock", "cohere", "ollama", "none"]


class Limit(NamedTuple):
    most: int | None  # the most stops of a request; None: no limit is documented
    blank: bool = True  # whether a stop may consist of white space only


# How many stops each API takes in a request. The comment above an entry names the source of the limit, and quotes or
# sums up the source.
LIMITS: dict[str, Limit] = {
    # openai.types.chat.completion_create_params, `stop`: up to 4 sequences
    "openai": Limit(4),
    # openai.types.chat.completion_create_params: o3 and o4-mini do not support `stop`. GPT-5 also answers a stop with a
    # 400.
    "openai-reasoning": Limit(0),
    # openai.types.responses.response_create_params has no parameter for stops
    "responses": Limit(0),
    # langchain#20234: a fifth stop is answered with a 400
    "azure": Limit(4),
    # litellm#3286: 'each stop sequence must contain non-whitespace'
    "anthropic": Limit(None, blank=False),
    # GenerationConfig, `stopSequences`: the set of character sequences (up to 5)
    "gemini": Limit(5),
    # langchain#38047: this limit was found by a trial on the API
    "mistral": Limit(4),
    # DeepSeek's "create chat completion", `stop`: a string, or a list of up to 16
    "deepseek": Limit(16),
    # xAI's reasoning guide: `stop` is an error with reasoning models. grok-4 and later models are reasoning models.
    "grok": Limit(0),
    # API_runtime_InferenceConfiguration, `stopSequences`; a model may take fewer, or none
    "bedrock": Limit(2500),
    # cohere.v2.client, `stop_sequences`: a list of up to 5 strings
    "cohere": Limit(5),
    # docs/modelfile.md: multiple stop patterns may be set
    "ollama": Limit(None),
    # vLLM 0.33, the default of VLLM_MAX_STOP_STRINGS for requests over HTTP
    "vllm": Limit(4),
    # Use "none" if a server handles stops wrongly, or does not say which stop fired. Such a server gets no stops.
    "none": Limit(0),
}


# `native_stops` compares each stop that the API can take with each stop that it could hide. This is the most pairs that
# it compares, because a client of a proxy can send very many stops. Stops beyond the limit are not sent to the API: a
# scan must find them.
MOST_PAIRS = 65_536

assert set(LIMITS) == set(get_args(Name))


def limits_of(api: str) -> Limit:
    """Returns the limits of the API. Raises ``ValueError`` for an unknown name. Its message lists the known APIs."""
    if api not in LIMITS:
        raise ValueError(f"unknown api {api!r}; known are {', '.join(LIMITS)}")
    return LIMITS[api]


def native_stops(api: str, stop: StopSet | str | Iterable[str] | None, /) -> tuple[list[str], StopSet]:
    """Returns a tuple: the stops to send to the API, and the ``StopSet`` of the stops that remain to scan for.

    The API ends its text at the stops that are sent. A scan of that text with the set then gives the same result as a
    scan for all stops would.

    - Patterns, visible stops and ``repeat`` always remain.
    - A stop that the API would accept also remains if a cut at this stop could remove another remaining stop from the
      text: ``"abc"`` remains if ``"b"`` remains.
    - If very many stops overlap each other, the later stops remain (``MOST_PAIRS``).
    - All stops remain if there is a pattern, a region or a ``repeat``, because the API could cut away the
      end of a match, or cut the text in a region in which stops do not fire.

    Raises ``ValueError`` for an API that is not in the table. The message lists the APIs.

    >>> native_stops("openai", ["a", "b", "c", "d", "e"])
    (['a', 'b', 'c', 'd'], StopSet(('e',)))
    >>> native_stops("anthropic", ["END", "\\n\\n"])
    (['END'], StopSet(('\\n\\n',)))
    """
    limit = limits_of(api)
    stops = StopSet(stop)
    only_strings = len(stops) == len(stops.stop) + len(stops.visible)
    if not only_strings or stops.protect or stops.regions:
        return [], stops
    # If one stop contains another, servers differ: vLLM cuts at the stop that is first in the list, llama.cpp at the
    # stop that begins first. So the API gets only one of the two, the stop that completes first. If both complete at
    # the same character, it gets the longer one.
    able = [stop for stop in stops.stop if limit.blank or stop.strip()]
    hidden = StopSet(stops.stop)
    able = [stop for stop in able if hidden.find(stop[:-1]) is None]
    backwards = sorted({stop[::-1] for stop in able})  # so a stop comes right before the longer stops that end with it
    ending = {stop[::-1] for stop, later in pairwise(backwards) if later.startswith(stop)}
    able = [stop for stop in able if stop not in ending]
    scanner, others = StopScanner(able), [*stops.visible]
    # Only a stop that contains another stop, or ends with the beginning of another stop, can be hidden.
    for stop in stops.stop:
        scanner.reset()
        if scanner.feed(stop[1:]) != stop[1:] or scanner.match is not None:
            others.append(stop)
    able = able[: MOST_PAIRS // max(len(others), 1)]
    hides = {stop: _hidden_by(stop, others) for stop in able}
    while True:
        native = able[: limit.most]
        sent = {*native}
        hiding = [stop for stop in native if not hides[stop] <= sent]
        if not hiding:
            return native, StopSet([stop for stop in stops.stop if stop not in sent], visible=stops.visible)
        able = [stop for stop in able if stop not in hiding]


def _hidden_by(native: str, others: list[str]) -> set[str]:
    """Returns the stops in ``others`` that the API may hide if it gets only the stop ``native``. The API ends the text
    at ``native``, and so may cut away a part of a stop that should win.

    The stop that completes first wins. If two complete together, the longer one wins. So a stop can win against
    ``native`` in three cases: it ends with the first characters of ``native`` (in the text ``abc``, ``ab`` wins against
    ``bc``), it is contained in ``native``, or it is longer than ``native`` and both complete together. If ``native``
    completes inside a stop, this stop never fires.
    """
    scanner, hidden = StopScanner(native), set()
    for other in others:
        scanner.reset()
        scanner.feed(other)
        ended = scanner.held != "" or other in native[:-1]
        if ended if scanner.match is None else scanner.match.end == len(other) > len(native):
            hidden.add(other)
    return hidden
