"""The parts that transformers' own parser finds in a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

chat_parsing = pytest.importorskip("transformers.utils.chat_parsing", reason="transformers 5.20 or later")


def parts(template: Mapping[str, Any], prefix: str, deltas: Iterable[str]) -> list[tuple[str, str]]:
    """The field and the text of each region that the parser opened, in order. Leaves out regions without text."""
    parser = chat_parsing.ResponseParser(template, prefix=prefix)
    events = [*parser.initial_events]
    for delta in deltas:
        events += parser.feed(delta)
    events += parser.finalize()[1]
    found: list[tuple[str, str]] = []
    for event in events:
        if event["type"] == "region_open":
            found.append((event["field"], ""))
        elif event["type"] == "region_chunk":
            field, text = found.pop()
            found.append((field, text + event["text"]))
    return [(field, text) for field, text in found if text]
