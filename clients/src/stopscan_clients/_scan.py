from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from functools import partial
from inspect import isawaitable
from typing import Any

from stopscan import StopSet
from stopscan_clients._machines.machine import Options
from stopscan_clients._objects.helper import AsyncHelperStream, HelperStream, is_helper
from stopscan_clients._objects.streams import AsyncEventStream, E, EventStream
from stopscan_clients._request import body_asked, choices_asked, echoed_in


def scan_events(
    stream: Iterable[E],
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    drain: bool = False,
    region: str | None = None,
    choices: int | None = None,
) -> EventStream[E]:
    """Returns an iterator of the stream's events up to a stop in the assistant's text, with ``matches``.

    - ``stream`` is the stream that an official client (openai, anthropic, google-genai, ollama, boto3) or LiteLLM
      returns for a streaming request, or any iterable of events of the same shapes. A ``stream()`` helper accumulates
      only the events that the iterator gives out. Any other object is a ``TypeError``.
    - When stops have ended all choices, the stream is closed, so the server generates no more. The closing events of
      the API follow, without usage. ``drain=True`` reads the rest of the stream for the usage, and gives out nothing
      else.
    - An event that is not changed is the same object. An event that is cut is a copy.
    - Text that may be the beginning of a stop is held. Its event comes with less text or no text. The rest comes later,
      at the latest before the event that closes its part.
    - If the source raises, the error reaches the caller, and ``held`` has the held text.

    >>> chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ["one E", "ND", "two"]]
    >>> stream = scan_events(chunks, "END")
    >>> [chunk["choices"][0]["delta"].get("content") for chunk in stream]
    ['one ', '', None]
    >>> stream.matches[0].sequence
    'END'
    """
    if not hasattr(stream, "__iter__"):
        hint = "use ascan_events" if hasattr(stream, "__aiter__") else "it is no iterable of events"
        raise TypeError(f"scan_events cannot read {type(stream).__name__}: {hint}")
    options = _options(stream, stop, include_stop, drain, region, choices)
    return (HelperStream if is_helper(stream) else EventStream)(stream, options)


def ascan_events(
    stream: AsyncIterable[E],
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    drain: bool = False,
    region: str | None = None,
    choices: int | None = None,
) -> AsyncEventStream[E]:
    """Returns an async iterator of the stream's events up to a stop, as ``scan_events`` does.

    ``stream`` is the object that an async client returns when its request was awaited. If a step is cancelled, no event
    is lost: the events that were ready come with the next step.

    >>> async def answer(client, **request):
    ...     stream = await client.chat.completions.create(stream=True, **request)
    ...     async with ascan_events(stream, "Observation:") as events:
    ...         return "".join([event.choices[0].delta.content or "" async for event in events])
    """
    if not hasattr(stream, "__aiter__"):
        hint = "await it first" if isawaitable(stream) else "it is no async iterable of events"
        raise TypeError(f"ascan_events cannot read {type(stream).__name__}: {hint}")
    options = _options(stream, stop, include_stop, drain, region, choices)
    return (AsyncHelperStream if is_helper(stream) else AsyncEventStream)(stream, options)


def _options(
    stream: Any, stop: Any, include_stop: bool, drain: bool, region: str | None, choices: int | None
) -> Options:
    asked: Callable[[], int] = partial(choices_asked, stream) if choices is None else lambda: choices
    options = Options(
        StopSet(stop),
        include_stop,
        drain,
        {"region": region},
        asked,
        lambda index: echoed_in(body_asked(stream))(index),
    )
    options.scanner()  # a region that is not there is an error now, and not at the first event
    return options
