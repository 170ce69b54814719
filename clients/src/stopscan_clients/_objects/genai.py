"""The connections of google-genai's async streams, which closing the stream leaves open."""

from __future__ import annotations

import gc
from types import AsyncGeneratorType, CoroutineType, FrameType
from typing import Any

LAYERS = (AsyncGeneratorType, CoroutineType, FrameType)


def http_responses(stream: Any) -> list[Any]:
    """Returns the HTTP responses that an async generator of google-genai reads from, ``[]`` for any other stream.

    The client gives no handle on them (python-genai#2425), and ``aclose`` ends only the outermost of six generators:
    the innermost are part of a cycle, so that the server goes on until a garbage collection, or for ever. So they are
    looked up where the generators refer to each other.
    """
    found: list[Any] = []
    seen: set[int] = set()
    layers: list[Any] = [stream] if isinstance(stream, AsyncGeneratorType) else []
    while layers:
        for below in gc.get_referents(layers.pop()):
            if id(below) in seen:
                continue
            seen.add(id(below))
            if isinstance(below, LAYERS):
                layers.append(below)
            elif type(below).__module__ == "google.genai._api_client" and hasattr(below, "response_stream"):
                found.append(below.response_stream)
    return found
