"""The error for an unknown form or region lists the names that exist."""

from __future__ import annotations

import pytest

from stopscan import StopScanner, StopSet
from stopscan.segments import FORMATS, Segmenter, SegmentSet

MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}


def test_an_unknown_form_lists_the_forms() -> None:
    with pytest.raises(KeyError, match=r"there is no form 'qwen'; there are .*qwen3"):
        FORMATS["qwen"]
    assert FORMATS.get("qwen") is None
    assert "qwen" not in FORMATS


def test_an_unknown_region_lists_the_regions() -> None:
    with pytest.raises(ValueError, match=r'no region "tool"; there are answer, reasoning$'):
        Segmenter(SegmentSet(MARKERS), region="tool")
    with pytest.raises(ValueError, match=r'no region "tool"; there are answer, reasoning$'):
        SegmentSet(MARKERS, stop="END", stop_in=["tool"])
    with pytest.raises(ValueError, match=r'no region "tool"; there are answer, <think>$'):
        StopScanner(StopSet("END", protect=[("<think>", "</think>")]), region="tool")
