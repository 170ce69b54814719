"""The policy of the adapters: which regions are protected, and whether the answer begins inside one."""

from __future__ import annotations

from typing import Any

import pytest

from stopscan import StopScanner, StopSet
from stopscan._protect import begins_in, protected, regions
from stopscan.segments import SegmentSet

THINK, CALL = ("<think>", "</think>"), ("<tool_call>", "</tool_call>")
NAMED = {"reasoning": (THINK,), "tool_calls": (CALL, ("[CALLS]", "\n"))}


@pytest.mark.parametrize(
    ("protect", "expected"),
    [
        ((), ()),
        ([], ()),
        ("reasoning", (THINK,)),
        (["reasoning"], (THINK,)),
        (["tool_calls", "reasoning"], (CALL, ("[CALLS]", "\n"), THINK)),
        ([THINK], (THINK,)),
        ([["<a>", "</a>"], THINK], (("<a>", "</a>"), THINK)),
        (["<think>", "</think>"], (THINK,)),
        (["<think>", "</think>", "<a>", "</a>"], (THINK, ("<a>", "</a>"))),
        (["reasoning", "<a>", "</a>", "tool_calls"], (THINK, ("<a>", "</a>"), CALL, ("[CALLS]", "\n"))),
        (["reasoning", THINK], (THINK,)),
        (["<a>", "reasoning"], (("<a>", "reasoning"),)),
    ],
)
def test_what_protect_means(protect: Any, expected: Any) -> None:
    assert regions(protect, NAMED) == expected


@pytest.mark.parametrize(
    ("protect", "problem"),
    [
        ("thinking", "'thinking' is neither a name"),
        (["<think>"], "'<think>' is neither a name"),
        (["<think>", "</think>", "<a>"], "'<a>' is neither a name"),
        ([["<think>"]], r"\['<think>'\] is not an opening and a closing marker"),
        ([["a", "b", "c"]], "is not an opening and a closing marker"),
        ([["", "b"]], "'' is no marker"),
        ([1, 2], "1 is no marker"),
        ([["a", None]], "None is no marker"),
        (7, "protect must be a list of regions, not 7"),
        (None, "protect must be a list of regions, not None"),
    ],
)
def test_what_protect_cannot_mean(protect: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        regions(protect, NAMED)


@pytest.mark.parametrize("named", [None, {"reasoning": (THINK,)}])
def test_a_name_that_the_model_has_no_markers_for(named: Any) -> None:
    with pytest.raises(ValueError, match="this model has no markers for 'tool_calls'"):
        regions("tool_calls", named)


def start(prompt_end: str, start_protected: bool | None = None, protect: Any = (THINK, CALL)) -> tuple[Any, bool]:
    stops, inside = protected(StopSet("END"), protect, prompt_end, start_protected)
    return stops.protect, inside


def test_the_prompts_end_opens_a_region() -> None:
    assert start("<|assistant|><think>") == ((THINK, CALL), True)
    assert start("<|assistant|><think>\n") == ((THINK, CALL), True)
    assert start("<|assistant|><tool_call>\n\n") == ((CALL, THINK), True)
    assert start("<|assistant|>") == ((THINK, CALL), False)
    assert start("") == ((THINK, CALL), False)


def test_the_users_words_open_none() -> None:
    """A user who asks `What does <think> mean?` must not switch the operator's stops off."""
    assert start("What does <think> mean?<|assistant|>") == ((THINK, CALL), False)


def test_start_protected_overrides_the_prompt() -> None:
    assert start("<think>", start_protected=False) == ((THINK, CALL), False)
    assert start("", start_protected=True) == ((THINK, CALL), True)
    assert start("<tool_call>", start_protected=True) == ((CALL, THINK), True)


def test_without_regions() -> None:
    assert start("<think>", protect=()) == ((), False)
    stops, inside = protected(StopSet("END"), (), "", True)
    assert inside
    with pytest.raises(ValueError, match="start_protected needs a set that protects a region"):
        StopScanner(stops, start_protected=inside)


@pytest.mark.parametrize("stop", THINK)
@pytest.mark.parametrize("kind", ["stop", "visible"])
def test_a_stop_that_equals_a_marker_wins(stop: str, kind: str) -> None:
    given = StopSet(stop) if kind == "stop" else StopSet(visible=stop)
    stops, inside = protected(given, (THINK, CALL), "<think>\n", None)
    assert (stops.protect, inside) == ((CALL,), False)
    assert [*stops.stop, *stops.visible] == [stop]


def test_a_sets_own_regions_and_patterns_stay() -> None:
    given = StopSet("END", visible=".", patterns=r"\d:", protect=[("`", "`")], max_held=9)
    stops, inside = protected(given, (THINK,), "<think>", None)
    assert inside
    assert stops == StopSet("END", visible=".", patterns=r"\d:", protect=[THINK, ("`", "`")], max_held=9)
    assert protected(given, (), "`", None)[0] is not None


@pytest.mark.parametrize(
    ("prompt_end", "region"),
    [
        ("<|assistant|>", "answer"),
        ("<|assistant|><think>", "reasoning"),
        ("<|assistant|><think>\n\n", "reasoning"),
        ("What does <think> mean?<|assistant|>", "answer"),
        ("[CALLS]\n", "calls"),
        ("[CALLS]", "answer"),
        ("A rethink>", "second thoughts"),
        ("", "answer"),
    ],
)
def test_the_region_that_an_answer_begins_in(prompt_end: str, region: str) -> None:
    again = "second thoughts"
    leads = {"think>": again, "<think>": "reasoning", "ink>": again, "[CALLS]\n": "calls"}
    back = {"</think>": "answer"}
    segments = SegmentSet({"answer": leads, "reasoning": back, again: back, "calls": back})
    assert begins_in(segments, prompt_end) == region
