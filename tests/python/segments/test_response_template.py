"""`from_response_template`, compared with transformers' own parser."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given
from segment_setups import as_read
from transformers_parts import parts

from stopscan.segments import Segmenter, SegmentSet, from_response_template, split

# This template and the next are from transformers' tests/utils/test_chat_parsing.py.
COHERE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    "fields": {
        "content": {"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>", "content": "text"},
        "thinking": {"open": "<|START_THINKING|>", "close": "<|END_THINKING|>", "content": "text"},
        "tool_calls": {
            "open": "<|START_ACTION|>",
            "close": "<|END_ACTION|>",
            "content": "json",
            "transform_each": True,
            "transform": {"type": "function", "function": {"name": "{tool_name}", "arguments": "{parameters}"}},
        },
    },
}
SMOLLM = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>", "content": "text"},
        "tool_calls": {"open": "<tool_call>", "close": "</tool_call>", "repeats": True, "content": "json"},
        "content": {"close": "<|im_end|>", "content": "text"},
    },
}
FIELD = {"open": "<x>", "close": "</x>"}


def test_a_template_without_an_outer_field() -> None:
    text = '<|START_THINKING|>I should.<|END_THINKING|>\n<|START_ACTION|>[{"tool_name": "f"}]<|END_ACTION|>'
    assert as_read(split([text], from_response_template(COHERE))) == [
        ("reasoning", "I should."),
        ("outside", "\n"),
        ("tool_call", '[{"tool_name": "f"}]'),
    ]


def test_stream_begins_in_an_outer_template_field() -> None:
    template = from_response_template(SMOLLM)
    assert next(iter(template)) == "answer"
    assert as_read(split(['Hi.<tool_call>{"name": "f"}</tool_call>.<|im_end|>\n'], template)) == [
        ("answer", "Hi."),
        ("tool_call", '{"name": "f"}'),
        ("answer", ".\n"),
    ]


def test_unknown_field_keeps_name_and_unclosed_lasts() -> None:
    template = {"start_anchor": "|", "fields": {"notes": {"open": ["[note]", "[n]"]}, "content": {}}}
    assert as_read(split(["a[n]b[note]c"], from_response_template(template))) == [
        ("answer", "a"),
        ("notes", "b[note]c"),
    ]


@pytest.mark.parametrize(
    ("field", "region"),
    [
        ("reasoning", "reasoning"),
        ("reasoning_content", "reasoning"),
        ("thinking", "reasoning"),
        ("tool_calls", "tool_call"),
        ("content", "answer"),
        ("notes", "notes"),
    ],
)
def test_the_region_of_a_field(field: str, region: str) -> None:
    template = from_response_template({"fields": {field: FIELD}})
    assert template == {"outside": {"<x>": region}, region: {"</x>": "outside"}}
    assert template.source == "a response template"


def test_empty_stop_is_left_to_the_caller() -> None:
    made = ("content", "content_args", "repeats", "join", "optional", "transform", "transform_each")
    template = {"version": 1, "defaults": {}, "start_anchor_pattern": "x", "fields": {"content": dict.fromkeys(made)}}
    assert from_response_template(template) == {"answer": {}}


def test_region_after_takes_what_follows_the_last_start_anchor() -> None:
    prompt = "<|im_start|>user\nWhat is <think>?<|im_end|>\n<|im_start|>assistant\n<think>\n"
    segments = SegmentSet(from_response_template(SMOLLM))
    assert segments.region_after(prompt.rpartition(SMOLLM["start_anchor"])[2]) == "reasoning"
    assert parts(SMOLLM, prompt, ["hm</think>yes"]) == [("thinking", "\nhm"), ("content", "yes")]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            {"fields": {"x": {"open_pattern": r"\s*<x>"}}},
            "field 'x': 'open_pattern' is a regular expression; give the marker itself as 'open' instead",
        ),
        (
            {"fields": {"x": {"open": "<x>", "close_pattern": "$"}}},
            "field 'x': 'close_pattern' is a regular expression; give the marker itself as 'close' instead",
        ),
        ({"fields": {"x": {**FIELD, "until": "<y>"}}}, "field 'x': unknown key 'until'"),
        ({"fields": {"x": FIELD}, "stop": []}, "response template: unknown key 'stop'"),
        ({"fields": {"x": FIELD}, "version": 2}, "response template: 'version' must be 1, not 2"),
        ({}, "'fields' must be a mapping with at least one field"),
        ({"fields": {}}, "'fields' must be a mapping with at least one field"),
        ({"fields": ["x"]}, "'fields' must be a mapping with at least one field"),
        ({"fields": {"x": "<x>"}}, "field 'x': must be a mapping, not str"),
        (
            {"fields": {"x": {"open": ""}}},
            "field 'x': 'open' must be a non-empty string or a non-empty list of non-empty strings",
        ),
        ({"fields": {"x": {"open": []}}}, "field 'x': 'open' must be"),
        ({"fields": {"x": {"open": {"<x>": "<y>"}}}}, "field 'x': 'open' must be"),
        ({"fields": {"x": {"open": ["<x>", 1]}}}, "field 'x': 'open' must be"),
        ({"fields": {"x": {"open": "<x>", "close": None}}}, "field 'x': 'close' must be"),
        ({"fields": {"x": {}, "y": {"close": "|"}}}, "fields 'x' and 'y': only one field may lack 'open'"),
        (
            {"fields": {"thinking": FIELD, "reasoning": {"open": "<r>"}}},
            "field 'reasoning': two fields map to the region 'reasoning'",
        ),
        ({"fields": {"content": {}, "answer": FIELD}}, "field 'answer': two fields map to the region 'answer'"),
        ({"fields": {"outside": FIELD}}, "field 'outside': two fields map to the region 'outside'"),
        (
            {"fields": {"x": {"open": "<x>"}, "y": {"open": "<x><y>"}}},
            "field 'y': 'open' '<x><y>' is never found: field 'x': 'open' '<x>' completes inside it",
        ),
        (
            {"fields": {"x": {"open": "<x>", "close": ["|", "||"]}}},
            "field 'x': 'close' '||' is never found: field 'x': 'close' '|' completes inside it",
        ),
        (
            {"fields": {"content": {"close": "<end>"}, "x": {"open": "<end>!"}}},
            "field 'x': 'open' '<end>!' is never found: field 'content': 'close' '<end>' completes inside it",
        ),
    ],
)
def test_what_it_cannot_take_is_named(template: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        from_response_template({"start_anchor": "|", **template})


def test_a_template_is_a_mapping() -> None:
    with pytest.raises(TypeError, match="a response template is a mapping, not list"):
        from_response_template([])  # type: ignore[arg-type]


NAMES = {"content": "answer", "notes": "notes", "thinking": "reasoning", "tool_calls": "tool_call"}
ANCHOR = "#"
marker = st.text("ab<", min_size=1, max_size=4)
anchor = marker | st.lists(marker, min_size=1, max_size=3)


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    # If a field of the template has these keys, transformers' parser joins all texts of this field, unchanged.
    verbatim = {"repeats": True, "join": "", "content_args": {"strip": False}}
    fields = {}
    for name in draw(st.lists(st.sampled_from(sorted(NAMES)), min_size=1, unique=True)):
        field: dict[str, Any] = {"open": draw(anchor), **verbatim}
        if draw(st.booleans()):
            field["close"] = draw(anchor)
        fields[name] = field
    if draw(st.booleans()):
        del fields[draw(st.sampled_from(sorted(fields)))]["open"]
    return {"start_anchor": ANCHOR, "fields": fields}


def literals(field: dict[str, Any], key: str) -> list[str]:
    given = field.get(key, [])
    return [given] if isinstance(given, str) else given


def live_together(template: dict[str, Any]) -> list[list[str]]:
    """Returns a list of markers for each region of the template: the markers that a segmenter must look for in this
    region."""
    fields = template["fields"].values()
    outer = [word for field in fields for word in literals(field, "open")]
    outer += [word for field in fields if "open" not in field for word in literals(field, "close")]
    return [outer, *(literals(field, "close") for field in fields if "open" in field)]


def ends_inside_another(words: list[str]) -> bool:
    return any(inner in word[:-1] for word in words for inner in words)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    template = draw(templates())
    assume(not any(ends_inside_another(words) for words in live_together(template)))
    markers = [word for words in live_together(template) for word in words]
    pieces = st.sampled_from(markers or ["a"]) | st.text("ab<.", min_size=1, max_size=3)
    text = "".join(draw(st.lists(pieces, max_size=12)))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return template, [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def joined(segments: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, "".join(text for _, text in group)) for name, group in groupby(segments, lambda segment: segment[0])]


@given(templates())
def test_only_markers_ending_inside_others_are_refused(template: dict[str, Any]) -> None:
    if any(ends_inside_another(words) for words in live_together(template)):
        with pytest.raises(ValueError, match="is never found"):
            from_response_template(template)
    else:
        SegmentSet(from_response_template(template))


@given(cases())
def test_the_segments_are_those_of_transformers(case: tuple[dict[str, Any], list[str]]) -> None:
    template, deltas = case
    by_transformers = joined([(NAMES[field], text) for field, text in parts(template, "", deltas)])
    ours = list(split(deltas, from_response_template(template)))
    assert joined([segment[:2] for segment in ours if segment[0] != "outside"]) == by_transformers


@given(cases())
def test_the_values_are_those_of_transformers_field_by_field(case: tuple[dict[str, Any], list[str]]) -> None:
    from transformers.utils.chat_parsing import parse_response

    template, deltas = case
    message = parse_response("".join(deltas), template, prefix="")
    texts = dict.fromkeys(NAMES.values(), "")
    for region, text, _ in split(deltas, from_response_template(template)):
        if region != "outside":
            texts[region] += text
    assert {name: text for name, text in texts.items() if text} == {NAMES[name]: text for name, text in message.items()}


@given(cases())
def test_the_region_after_a_prompt_is_that_of_transformers(case: tuple[dict[str, Any], list[str]]) -> None:
    template, deltas = case
    prompt = ANCHOR.join(deltas)
    own = prompt.rpartition(ANCHOR)[2]
    # No marker contains "!", so "!" becomes text of the region in which the prompt ends.
    fields = [NAMES[field] for field, text in parts(template, prompt, ["!"]) if text.endswith("!")]
    segments = SegmentSet(from_response_template(template))
    assert [segments.region_after(own)] == (fields or ["outside"])
    assert Segmenter(segments, region=segments.region_after(own)).feed("!") == [(segments.region_after(own), "!", 0)]
