"""``stopscan.regions``: the graph of a model's regions, and stops that do not fire in some of the regions."""

from __future__ import annotations

from inspect import signature
from types import SimpleNamespace
from typing import Any

import pytest
from segment_setups import by_region

from stopscan import Repeat, StopScanner, StopSet
from stopscan.regions import graph_of, protected, region_after, segments_of
from stopscan.regions.shared import describe, regions_in, start_region
from stopscan.segments import FORMATS, Segmenter, SegmentSet, split

QWEN3 = FORMATS["qwen3"]
TEXTS = {
    "thought": "<think>hm END</think>done END more",
    "call in the answer": "a<tool_call>END</tool_call>done END more",
    "call in the thoughts": "<think>hm END<tool_call>END</tool_call>done END more",
    "nothing closes it": "<think>END and END",
    "no region": "END",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("protect", [[], ["reasoning"], ["tool_call"], ["reasoning", "tool_call"]])
def test_stops_fire_where_those_of_segments_do(text: str, protect: list[str]) -> None:
    """A scanner must find the same match as a segmenter with the same regions, however the text is cut into deltas."""
    stops = protected(StopSet("END"), QWEN3, protect)
    outside = [region for region in ("answer", "reasoning", "tool_call") if region not in protect]
    segments = SegmentSet(QWEN3, stop="END", stop_in=outside)
    assert segments_of(StopSet("END"), QWEN3, protect) == segments
    segmenter = Segmenter(segments)
    segmenter.feed(text)
    for cut in range(len(text) + 1):
        scanner = StopScanner(stops)
        shown = scanner.feed(text[:cut]) + scanner.feed(text[cut:]) + scanner.flush()
        assert scanner.match == segmenter.match
        assert shown == (text if scanner.match is None else text[: scanner.match.offset])


def test_sets_with_regions_keep_every_option() -> None:
    options = {
        "patterns": ["a{3}"],
        "visible": ["v"],
        "visible_patterns": ["[.!?]"],
        "max_held": 99,
        "repeat": Repeat(),
    }
    about_regions = {"protect", "regions", "stop_in"}
    assert {"stop", *options} == {*signature(StopSet).parameters} - about_regions  # a new option gets a value here
    stops = StopSet("END", **options)
    for made in (protected(stops, QWEN3), segments_of(stops, QWEN3)):
        for name in ("stop", *options):
            assert getattr(made, name) == getattr(stops, name)


@pytest.mark.parametrize(
    ("stop", "text"),
    [("</think>", "<think>hm "), ("<think>", ""), ("</tool_call>", "<think>hm END<tool_call>")],
)
def test_a_stop_that_is_a_marker_wins(stop: str, text: str) -> None:
    stops = protected(StopSet([stop, "END"]), QWEN3)
    assert stops.truncate(TEXTS["call in the thoughts"])[0] == text


def test_pairs_of_markers_beside_names() -> None:
    stops = protected(StopSet("END", protect=[("(", ")")]), QWEN3, ["reasoning", "[", "]"])
    text = "(END)[END]<think>END</think>"
    assert stops.truncate(f"{text}END")[0] == text
    assert protected(StopSet("END"), None, [("(", ")")]) == StopSet("END", protect=[("(", ")")])
    assert protected(StopSet("END"), None) == StopSet("END")


def test_text_between_a_pair_is_a_segment() -> None:
    segments = segments_of(StopSet(["END", ")"], protect=[("[", "]")]), QWEN3, ["reasoning", "[", "]", "(", ")"])
    stream = split("<think>END [END</think>] END</think>[END] <think> END", segments)
    assert by_region(stream) == [
        ("reasoning", "END "),
        ("reasoning protected", "[END</think>"),
        ("reasoning", "] END"),
        ("answer protected", "[END"),
        ("answer", "] <think> "),
    ]
    assert stream.match is not None
    assert stream.match.sequence == "END"


def test_segments_of_another_model() -> None:
    with pytest.raises(ValueError, match="no markers for 'reasoning'"):
        segments_of(StopSet("END"), {"answer": {}}, ["reasoning"])
    assert segments_of(StopSet("END"), {"answer": {}}) == SegmentSet({"answer": {}}, stop="END")


def test_the_pair_of_a_known_region_is_its_name() -> None:
    """A region can be protected by its name or by its two markers: ``<think>`` and ``</think>`` mean ``reasoning``.

    Before a fix, the two markers were ignored if the regions of the model (here ``QWEN3``) had the opening marker.
    """
    assert protected(StopSet("END"), QWEN3, ["tool_call", "<think>", "</think>"]) == protected(StopSet("END"), QWEN3)


def test_text_that_is_for_nobody_has_no_stops() -> None:
    text = "<|channel|>analysis<|message|>END<|end|><|start|>assistant<|channel|>final<|message|>Yes "
    assert protected(StopSet(["END", "assistant"]), FORMATS["harmony"]).truncate(f"{text}END")[0] == text


@pytest.mark.parametrize(
    ("protect", "message"),
    [
        ("reasoning", "this model has no markers for 'reasoning'"),
        (["tool_calls"], "'tool_calls' is not a region .*, and no closing marker"),
        ([["a"]], "is not a pair of an opening and a closing marker"),
        ([["a", ""]], "'' is not a marker"),
        (5, "must be a list of names of regions or pairs of markers, not 5"),
    ],
)
def test_what_cannot_be_protected_is_refused(protect: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        protected(StopSet("END"), None, protect)


def test_a_servers_default_passes_over_what_a_model_lacks() -> None:
    assert regions_in(FORMATS["think"], ["reasoning", "tool_call", "<a>", "</a>"]) == ["reasoning", ("<a>", "</a>")]
    assert regions_in(None, ["reasoning"]) == []


@pytest.mark.parametrize(
    ("prompt_end", "region"),
    [
        ("<|im_start|>assistant\n<think>\n", "reasoning"),
        ("What does <think> mean?<|im_end|>\n<|im_start|>assistant\n", "answer"),
        ("<think>\n\n</think>\n\n", "answer"),
        ("", "answer"),
    ],
)
def test_only_the_prompts_end_opens_a_region(prompt_end: str, region: str) -> None:
    # A region may have several states, such as "answer/after reasoning".
    assert region_after(QWEN3, prompt_end).split("/")[0] == region
    stops = protected(StopSet("END"), QWEN3)
    assert start_region(stops, prompt_end) == region_after(QWEN3, prompt_end)
    assert start_region(stops, prompt_end, False) == "answer"
    assert start_region(stops, prompt_end, True) == "reasoning"


@pytest.mark.parametrize(
    ("name", "prompt_end", "region"),
    [
        ("gemma4", "<|turn>model\n<|channel>thought\n", "reasoning"),
        ("harmony", "<|end|><|start|>assistant<|channel|>analysis<|message|>", "reasoning"),
        ("harmony", "<|end|><|start|>assistant<|channel|>final<|message|>", "answer"),
        ("muse", "<|start|>assistant to=self<|message|>", "reasoning"),
        ("hunyuan_a13b", "<think>\n\n</think>\n<answer>\n", "answer/after reasoning"),
        ("qwen3", "<think>\n\n</think>\n\n", "answer/after reasoning"),
    ],
)
def test_several_markers_at_prompt_end_give_region(name: str, prompt_end: str, region: str) -> None:
    """A prompt may end with several markers, and the first may lead to a region in which the second has a meaning.
    All of them must count. Before a fix, only the markers of the first region counted, so a stop fired in the
    reasoning."""
    assert region_after(FORMATS[name], prompt_end) == SegmentSet(FORMATS[name]).region_after(prompt_end) == region
    stops = protected(StopSet("END"), FORMATS[name])
    scanner = StopScanner(stops, region=start_region(stops, prompt_end))
    assert (scanner.feed("END") == "END") == (region == "reasoning")


@pytest.mark.parametrize("name", FORMATS)
def test_no_marker_of_a_users_opens_a_region(name: str) -> None:
    form = FORMATS[name]
    for marker in {marker for markers in form.values() for marker in markers}:
        prompt = f"What is {marker}<|im_end|>\n<|im_start|>assistant\n"
        assert region_after(form, prompt) == region_after(form, "")


def test_a_log_says_what_begins_each_region() -> None:
    assert describe(QWEN3) == "reasoning (<think>), tool_call (<tool_call>)"
    assert describe(FORMATS["think"]) == "reasoning (<think>)"
    assert describe({}) == "none"
    seed = {"content": {"<a>": "reasoning", "<b>": "reasoning"}, "reasoning": {"</a>": "content"}}
    assert describe(seed) == "reasoning (<a> <b>)"


def test_a_graph_without_regions_is_none() -> None:
    with pytest.raises(ValueError, match="the graph has no regions"):
        region_after({}, "x")


def test_a_template_of_glm_is_not_one_of_hermes() -> None:
    """Chat templates of GLM and of Hermes have the same markers. But GLM's reasoning can open again, so stopscan must
    not take GLM's template for one of Hermes."""
    template = "<tool_call>{n}\n<arg_key>k</arg_key>\n</tool_call><|assistant|>\n<think></think>"
    assert graph_of(SimpleNamespace(chat_template=template)) == FORMATS["glm45"]


def test_a_tokenizer_with_several_chat_templates() -> None:
    """If a tokenizer has several chat templates, the markers in all of them count. transformers keeps them in a
    mapping, which stopscan ignored before a fix."""
    templates = {"default": "<think></think>", "tool_use": "<think></think><tool_call></tool_call>"}
    assert graph_of(SimpleNamespace(chat_template=templates)) == FORMATS["hermes"]


def test_a_response_template_that_is_none_is_passed_over() -> None:
    tokenizer = SimpleNamespace(response_template=5, chat_template="<think></think><tool_call></tool_call>")
    assert graph_of(tokenizer) == FORMATS["hermes"]


def test_the_graph_of_mlx_lms_markers() -> None:
    tokenizer = SimpleNamespace(
        has_thinking=True, think_start="<think>", think_end="</think>",
        has_tool_calling=True, tool_call_start="<tool_call>", tool_call_end="</tool_call>",
    )  # fmt: skip
    assert graph_of(tokenizer) == {
        "answer": {"<think>": "reasoning", "<tool_call>": "tool_call"},
        "reasoning": {"</think>": "answer", "<tool_call>": "tool_call"},
        "tool_call": {"</tool_call>": "answer"},
    }


@pytest.mark.parametrize("name", FORMATS)
def test_a_chat_template_tells_the_form(name: str) -> None:
    markers = {marker for edges in FORMATS[name].values() for marker in edges}
    found = graph_of(SimpleNamespace(chat_template="\n".join(sorted(markers))))
    assert found is not None
    assert {marker for edges in found.values() for marker in edges} == markers


def test_a_tokenizer_of_which_nothing_is_known() -> None:
    assert graph_of(SimpleNamespace(chat_template=None)) is None
    assert graph_of(SimpleNamespace(chat_template="{{ messages }}")) is None
    assert graph_of(object()) is None


def test_a_response_template_without_a_name_for_the_answer() -> None:
    template = {"fields": {"thinking": {"open": "<think>", "close": "</think>"}}}
    graph = graph_of(SimpleNamespace(response_template=template))
    stops = protected(StopSet("END"), graph, "reasoning")
    assert stops.truncate("<think>END</think>Yes. END")[0] == "<think>END</think>Yes. "


@pytest.mark.parametrize("name", [name for name in FORMATS if "reasoning" in FORMATS[name]])
def test_start_protected_begins_in_reasoning_not_in_header(name: str) -> None:
    """With `start_protected`, a stream must begin in the reasoning. Before a fix, a Harmony stream began in the header,
    where ` to=` begins a tool call."""
    stops = protected(StopSet("END"), FORMATS[name], ["reasoning"])
    assert start_region(stops, "", True) == "reasoning"


@pytest.mark.parametrize("protect", [["(", ")", "(", "]"], ["reasoning", "(", ")", "(", "]"]])
def test_an_opening_marker_with_two_closing_markers_is_refused(protect: list[str]) -> None:
    """An opening marker with two closing markers must be refused. Before a fix, if `protect` also named a region, the
    second closing marker silently replaced the first one."""
    for make in (protected, segments_of):
        with pytest.raises(ValueError, match=r'opening marker "\(" has two closing markers'):
            make(StopSet("END"), QWEN3, protect)
