"""``without_regions`` removes the named regions from a graph. A graph with headers is returned unchanged."""

from __future__ import annotations

import pytest

from stopscan import StopScanner, StopSet
from stopscan.regions import Graph, protected
from stopscan.regions.shared import region_name, without_regions
from stopscan.segments import FORMATS

NAMES = ("reasoning", "tool_call")


def only(form: str, names: tuple[str, ...]) -> Graph:
    return without_regions(FORMATS[form], {*NAMES} - {*names})


def scan(form: str, names: tuple[str, ...], stop: str, text: str) -> str:
    scanner = StopScanner(protected(StopSet(stop), only(form, names), names))
    return scanner.feed(text) + scanner.flush()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("names", [(), ("reasoning",), ("tool_call",), NAMES])
def test_without_regions_keeps_answer_and_named_regions(form: str, names: tuple[str, ...]) -> None:
    graph = FORMATS[form]
    kept = only(form, names)
    regions = {region_name(state) for state in kept}
    others = {region_name(state) for state in graph} - {"answer", *NAMES}
    assert regions == ({*map(region_name, graph)} if others else {*map(region_name, graph)} & {"answer", *names})
    assert all(to in kept for edges in kept.values() for to in edges.values())


def test_stop_spans_the_marker_of_an_unnamed_region() -> None:
    text = "<think>a call>\n</think>So <tool_call>\n{} </tool_call>!"
    assert scan("qwen3", ("reasoning",), "call>\n", text) == "<think>a call>\n</think>So <tool_"
    assert scan("qwen3", ("reasoning",), "call>!", text) == text[: -len("call>!")]
    assert scan("qwen3", NAMES, "call>!", text) == text


def test_a_call_that_ends_the_reasoning_is_answer() -> None:
    text = "<think>a END <tool_call>b END"
    assert scan("qwen3", ("reasoning",), "END", text) == "<think>a END <tool_call>b "
    assert scan("qwen3", NAMES, "END", text) == text


def test_reasoning_that_is_not_named_is_answer() -> None:
    text = "<think>a <tool_call>END</tool_call></think> END"
    assert scan("qwen3", ("tool_call",), "END", text) == text[:-3]
    assert scan("qwen3", ("tool_call",), "a", text) == "<think>"
