"""Answers in every form (the markers of a model family) give the right segments, wherever the deltas are cut."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations

import pytest
from format_answers import ANSWERS, Answer
from format_faults import BARES, FAULTS
from formats_page import PAGE
from segment_setups import as_read

from stopscan.segments import FORMATS, Segmenter, SegmentSet, keep, stay

ALL = [*ANSWERS, *FAULTS]
each_answer = pytest.mark.parametrize("answer", ALL, ids=lambda answer: answer.form)


def segments_of(answer: Answer, deltas: Iterable[str]) -> list[tuple[str, str]]:
    """The segments of the whole stream. Adjacent segments of one region are joined, but two tool calls stay apart."""
    segments = SegmentSet(FORMATS[answer.form])
    return told_apart(Segmenter(segments, region=segments.region_after(answer.prompt)), deltas)


def told_apart(segmenter: Segmenter, deltas: Iterable[str]) -> list[tuple[str, str]]:
    given = [segment for delta in deltas for segment in segmenter.feed(delta)]
    return as_read(given + segmenter.flush())


@pytest.mark.parametrize("answer", FAULTS, ids=lambda answer: answer.form)
def test_faulty_answer_keeps_parts_in_three_pieces(answer: Answer) -> None:
    segments = SegmentSet(FORMATS[answer.form])
    segmenter = Segmenter(segments, region=segments.region_after(answer.prompt))
    text = answer.text
    for first, second in combinations(range(len(text) + 1), 2):
        assert told_apart(segmenter, [text[:first], text[first:second], text[second:]]) == answer.segments
        segmenter.reset()


@each_answer
def test_an_answer_has_its_parts_whatever_the_cut(answer: Answer) -> None:
    text = answer.text
    assert segments_of(answer, [text]) == answer.segments
    for cut in range(1, len(text)):
        assert segments_of(answer, [text[:cut], text[cut:]]) == answer.segments
    for size in (1, 2, 3, 5, 8):
        assert segments_of(answer, [text[at : at + size] for at in range(0, len(text), size)]) == answer.segments


def test_each_marker_of_each_form_is_in_an_answer() -> None:
    assert {answer.form for answer in ALL} == set(FORMATS)
    for form, markers in FORMATS.items():
        texts = [answer.prompt + answer.text for answer in ALL if answer.form == form]
        for marker in {marker for leads in markers.values() for marker in leads}:
            assert any(marker in text for text in texts), (form, marker)


@pytest.mark.parametrize("form", FORMATS)
def test_a_form_compiles_and_names_its_source(form: str) -> None:
    markers = FORMATS[form]
    segments = SegmentSet(markers, stop=["END"], stop_in=["answer"])
    assert segments.markers == {region: dict(leads) for region, leads in markers.items()}
    assert segments.regions[0] in {"answer", "header"}
    assert re.match(r".+: .+", markers.source)


@pytest.mark.parametrize("form", FORMATS)
def test_form_is_a_mapping_with_a_useful_repr(form: str) -> None:
    markers = FORMATS[form]
    assert len(markers) == len([*markers]) == len(dict(markers))
    assert dict(markers) == {region: markers[region] for region in markers}
    assert eval(repr(markers), {"Format": type(markers), "keep": keep, "stay": stay}) == markers
    assert repr(markers.source) in repr(markers)


@pytest.mark.parametrize("form", FORMATS)
def test_every_region_is_reached_from_the_first(form: str) -> None:
    markers = FORMATS[form]
    reached = {next(iter(markers))}
    while more := {leads for region in reached for leads in markers[region].values()} - reached:
        reached |= more
    assert reached == set(markers)


THINKING = [form for form, markers in FORMATS.items() if "reasoning" in markers and "header" not in markers]
CALLING = [form for form in THINKING if "tool_call/in reasoning" in FORMATS[form]]
REOPENING = {"glm45", "glm45v", "glm47", "deepseek_v4", "deepseek_v41", "gemma4", "olmo3", "plamo3", "mistral"}


def markers_of(form: str) -> tuple[str, str, str, str]:
    """The opening and closing markers of the reasoning and of a call. Those of the call are "" if the form has none."""
    markers = FORMATS[form]
    opening = {lead.partition("/")[0]: marker for marker, lead in reversed(list(markers["answer"].items()))}
    return opening["reasoning"], next(iter(markers["reasoning"])), *call_of(form)


def call_of(form: str) -> tuple[str, str]:
    """The opening and the closing marker of a call in the answer. Each is "" if the form has none."""
    answer, call = FORMATS[form].get("answer", {}), FORMATS[form].get("tool_call", {})
    opening = next((m for m, lead in answer.items() if lead == "tool_call" and type(lead) is str), "")
    return opening, next((m for m, lead in call.items() if not lead.startswith("tool_call")), "")


def read(form: str, text: str, region: str = "reasoning") -> list[tuple[str, str]]:
    return told_apart(Segmenter(FORMATS[form], region=region), [text])


@pytest.mark.parametrize("form", THINKING)
def test_repeated_opening_marker_in_reasoning_is_removed(form: str) -> None:
    opening, closing, _, _ = markers_of(form)
    assert read(form, f"a {opening}b{closing}c") == [("reasoning", "a b"), ("answer", "c")]


@pytest.mark.parametrize("form", THINKING)
def test_closing_marker_in_answer_is_removed_unless_phrase(form: str) -> None:
    _, closing, _, _ = markers_of(form)
    kept = closing if form == "granite" else ""
    assert read(form, f"a{closing}b{closing}c") == [("reasoning", "a"), ("answer", f"b{kept}c")]
    assert read(form, f"b{closing}c", "answer") == [("answer", f"b{kept}c")]


@pytest.mark.parametrize("form", THINKING)
def test_opening_marker_after_reasoning_is_text_unless_reopened(form: str) -> None:
    opening, closing, _, _ = markers_of(form)
    again = [("reasoning", "c")] if form in REOPENING else [("answer", f"b{opening}c")]
    answer = [("answer", "b")] if form in REOPENING else []
    assert read(form, f"a{closing}b{opening}c") == [("reasoning", "a"), *answer, *again]


@pytest.mark.parametrize("form", CALLING)
def test_a_call_in_the_reasoning_ends_it(form: str) -> None:
    _, closing, call, end = markers_of(form)
    begun = [("reasoning", "a"), ("tool_call", "b")]
    if end:
        assert read(form, f"a{call}b{end}c{closing}d") == [
            *begun,
            ("answer", f"c{closing if form == 'granite' else ''}d"),
        ]
    # Here the reasoning quotes the opening marker of a call. The closing marker of the reasoning still leads to the
    # answer.
    assert read(form, f"a{call}b{closing}c") == [*begun, ("answer", "c")]


@pytest.mark.parametrize("form", CALLING)
def test_call_in_answer_may_quote_closing_reasoning_marker(form: str) -> None:
    _, closing, call, _ = markers_of(form)
    for region in ("answer", "reasoning"):
        before = [] if region == "answer" else [("reasoning", "a")]
        text = ("" if region == "answer" else f"a{closing}") + f"{call}b{closing}c"
        assert read(form, text, region) == [*before, ("tool_call", f"b{closing}c")]


@pytest.mark.parametrize("form", CALLING)
def test_leftover_closing_marker_of_a_call_is_removed(form: str) -> None:
    _, closing, call, end = markers_of(form)
    if end:
        called = [("reasoning", "a"), ("answer", "b"), ("tool_call", "c"), ("answer", "de")]
        assert read(form, f"a{closing}b{call}c{end}d{end}e") == called


@pytest.mark.parametrize(("form", "call"), [(form, call) for form, _, call in BARES])
def test_a_bare_call_is_text_in_the_reasoning(form: str, call: str) -> None:
    assert read(form, f"as {call}") == [("reasoning", f"as {call}")]


# In these forms, a call has a body between two markers. The call ends only after the body's closing marker.
BODIES = {
    form: ("<invoke name=f>", "</invoke>") if form == "minimax_m2" else ("<function=f>", "</function>")
    for form in ("qwen3_coder", "nemotron_v3", "step3p5", "mimo", "seed_oss", "minimax_m2")
}


def test_the_forms_with_bodies() -> None:
    assert {form for form, states in FORMATS.items() if any("/body" in state for state in states)} == {*BODIES}


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("region", ["answer", "reasoning"])
@pytest.mark.parametrize("marked", [True, False])
def test_call_body_may_quote_other_markers(form: str, region: str, *, marked: bool) -> None:
    """A parameter of a call may quote markers. Before a fix, a quoted `</think>` or `</tool_call>` ended the call, so a
    stop fired in the rest of the call."""
    opening, closing, call, end = markers_of(form)
    begin, close = BODIES[form]
    before, thought = (
        (f"a{closing}", [("reasoning", "a")]) if region == "answer" or not marked else ("a", [("reasoning", "a")])
    )
    quoting = f"{begin}\n<parameter=x>{opening}{closing}{call}{end}{begin} END</parameter>\n{close}"
    text = f"{before}{call if marked else ''}{quoting}\n{end}Done END more"
    segments = SegmentSet(FORMATS[form], stop=["END"], stop_in=["answer"])
    expected = [*thought, ("tool_call", f"{quoting}\n"), ("answer", "Done ")]
    for size in (1, 2, 3, len(text)):
        segmenter = Segmenter(segments, region="reasoning")
        given = [part for at in range(0, len(text), size) for part in segmenter.feed(text[at : at + size])]
        assert as_read(given) == expected
        assert len({part for name, _, part in given if name == "tool_call"}) == 1
        assert segmenter.match is not None


@pytest.mark.parametrize("form", BODIES)
def test_body_without_parameter_end_still_ends(form: str) -> None:
    _, _, call, end = markers_of(form)
    begin, close = BODIES[form]
    body = f"{begin}\n<parameter=a>\nx\n{close}\n"
    assert read(form, f"{call}{body}{end}Done", "answer") == [("tool_call", body), ("answer", "Done")]
    assert read(form, f"{call}{body}{body}{end}Done", "answer") == [("tool_call", body * 2), ("answer", "Done")]


# In these forms, one marker opens a list of calls. stopscan does not divide the list, so all its calls come out as one
# part. In all other forms, each call has a marker.
ONE_PART = {
    "apertus", "cohere_command", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_v41", "dots", "granite",
    "hunyuan_a13b", "hy_v3", "hy_v4", "jamba", "k2_horizon", "kimi_k2", "kimi_k3", "lfm2", "llama3", "llama4",
    "minimax_m2", "minimax_m3", "nemotron_nano", "olmo3", "phi4_mini", "plamo3", "step3",
}  # fmt: skip
# The texts that begin and end a call. In these forms, the call begins with a header or with a marker that stays in the
# text.
OTHERWISE = {
    "harmony": (" to=", "<|call|>"),
    "inkling": ("<|content_invoke_tool_json|>", "<|end_message|>"),
    "muse": (" to=f<|message|>", "<|eom|>"),
    "gigachat3": ("<|function_call|>", ""),
    "minicpm5": ("<function name=", "</function>"),
}


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"think"}))
def test_two_calls_are_two_parts_in_any_chunks(form: str) -> None:
    """Two tool calls must come out as two parts. Before a fix, `{"a":1}` and `{"b":2}` came out as one part."""
    opening, closing = OTHERWISE.get(form) or call_of(form)
    kept = opening if isinstance(FORMATS[form].get("answer", {}).get(opening), keep) else ""
    if form in ONE_PART and not closing:
        return  # in these forms, one marker opens an array of calls, which lasts to the end of the answer
    text = f'{opening}{{"a":1}}{closing}{opening}{{"b":2}}{closing}'
    for size in (1, 2, 3, 5, len(text)):
        segmenter = Segmenter(FORMATS[form])
        segments = [part for at in range(0, len(text), size) for part in segmenter.feed(text[at : at + size])]
        segments += segmenter.flush()
        calls: dict[int, str] = {}
        for region, piece, part in segments:
            if region == "tool_call":
                calls[part] = calls.get(part, "") + piece
        assert [*calls.values()] == [f'{kept}{{"a":1}}', f'{kept}{{"b":2}}']


@pytest.mark.parametrize("form", sorted(ONE_PART))
def test_array_or_section_of_calls_is_one_part(form: str) -> None:
    opening, closing = call_of(form)
    calls = '<call>{"a":1}</call>\n<call>{"b":2}</call>'
    begin = next(iter(Segmenter(FORMATS[form]).feed("x")), ("", "x", 0))[2]
    assert [
        segment for segment in Segmenter(FORMATS[form]).feed(opening + calls + closing) if segment[0] == "tool_call"
    ] == [("tool_call", calls, begin + 1)]


def test_page_names_forms_of_one_part() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = re.search(r"<!-- one part -->(.*?)<!-- end -->", page, re.DOTALL)
    assert named is not None
    assert set(re.findall("`([a-z0-9_]+)`", named.group(1))) == ONE_PART


def test_page_names_forms_that_reopen_reasoning() -> None:
    named = re.search(r"<!-- opened again -->(.*?)<!-- end -->", PAGE.read_text(encoding="utf-8"))
    assert named is not None
    assert set(re.findall("`([a-z0-9_]+)`", named.group(1))) == REOPENING


@pytest.mark.parametrize(("form", "closing", "call"), BARES)
def test_a_bare_call_ends_where_the_next_one_begins(form: str, closing: str, call: str) -> None:
    assert read(form, f"{call}{call}{closing}Done.", "answer") == [
        ("tool_call", call),
        ("tool_call", call),
        ("answer", "Done."),
    ]
    after = Segmenter(FORMATS[form], region="answer/after reasoning" if form not in REOPENING else "answer")
    assert [part for _, _, part in after.feed(f"{call}{call}")] == [1, 2]


def test_the_markers_inside_of_a_call_begin_no_part() -> None:
    """`<function=` begins a bare call, and is also in each call of Qwen3-Coder."""
    inner = "<function=f></function><function=g></function>"
    assert Segmenter(FORMATS["qwen3_coder"]).feed(f"<tool_call>{inner}</tool_call>") == [("tool_call", inner, 1)]
