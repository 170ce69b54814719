"""What others do with stops on the client's side, for ``benches/clients.py``: DSPy's lm15 and LangChain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cases import Case, exhaust, own, streaming
from workload import numbered


def lm15_events(deltas: list[str]) -> list[Any]:
    from dspy._vendor.lm15.types import StreamDeltaEvent, TextDelta

    return [StreamDeltaEvent(TextDelta(delta)) for delta in deltas]


def lm15(events: Iterable[Any], stop: list[str]) -> Iterator[Any]:
    from dspy._vendor.lm15.result import truncate_stream_at_stop

    return truncate_stream_at_stop(iter(events), tuple(stop))


def lm15_cases() -> list[Case]:
    return [
        Case("lm15: bare", lambda deltas: iter(lm15_events(deltas)), own(exhaust), lambda deltas: None),
        Case("lm15", lambda deltas: lm15(lm15_events(deltas), numbered(4)), own(exhaust), lambda _: None),
    ]


def langchain_each(deltas: list[str]) -> None:
    """What it takes to cut a stream with it: the text so far, once more for each event."""
    from langchain_community.llms.utils import enforce_stop_tokens

    text = ""
    for delta in deltas:
        text += delta
        enforce_stop_tokens(text, ["END", "Human:", "Question:", "Observation result:"])


def langchain_cases() -> list[Case]:
    bare = streaming("langchain: bare", lambda deltas: deltas)
    return [bare, Case("langchain", lambda deltas: deltas, langchain_each, lambda deltas: None)]
