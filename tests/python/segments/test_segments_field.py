"""Bugs of other projects that divide a stream into reasoning, answer and tool calls, one test for each report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from format_answers import ANSWERS, Answer
from segment_setups import as_read

from stopscan import StopMatch
from stopscan.segments import FORMATS, Segmenter, SegmentSet

Segments = list[tuple[str, str]]


def cut(form: str, deltas: Iterable[str], region: str | None = None) -> Segments:
    """The segments of a whole stream."""
    segmenter = Segmenter(FORMATS[form], region=region)
    return as_read([segment for delta in deltas for segment in segmenter.feed(delta)] + segmenter.flush())


def chunkings(text: str) -> Iterator[list[str]]:
    """Cuts the text in many ways: not at all, into two pieces at every place, and into single characters."""
    yield [text]
    yield from ([text[:at], text[at:]] for at in range(1, len(text)))
    yield list(text)


def test_vllm_55195_marker_and_text_in_one_delta() -> None:
    """In vLLM, the opening marker leaks into the reasoning, and Olmo's answer after the closing marker is lost."""
    assert cut("olmo3", ["<think>step one"]) == [("reasoning", "step one")]
    assert cut("olmo3", ["<think>step one</think>The answer."]) == [
        ("reasoning", "step one"),
        ("answer", "The answer."),
    ]


def test_vllm_40911_partial_marker_at_reasoning_end() -> None:
    """In vLLM, if a delta ends in `<|`, the text of Gemma's next tool call is sent as content."""
    deltas = ["<|channel>thought\nA call.<channel|><|", 'tool_call>call:f{a:<|"|>b<|"|>}<tool_call|>']
    expected = [("reasoning", "A call."), ("tool_call", 'call:f{a:<|"|>b<|"|>}')]
    assert cut("gemma4", deltas) == expected
    assert all(cut("gemma4", deltas) == expected for deltas in chunkings("".join(deltas)))


def test_vllm_43221_reasoning_end_and_call_in_one_delta() -> None:
    """In vLLM, the last words of the reasoning are lost."""
    deltas = ["I will use the tool ", "Write.</think><tool_call>", '{"name": "f"}</tool_call>']
    expected = [("reasoning", "I will use the tool Write."), ("tool_call", '{"name": "f"}')]
    assert cut("qwen3", deltas, region="reasoning") == expected


def test_vllm_50303_token_closes_marker_and_opens_reasoning() -> None:
    deltas = ["Here", " is", " my", " thought", " process", ":(", "hm", ")", "Here is my response", ":(yes)"]
    assert cut("granite", deltas) == [("reasoning", "(hm)"), ("answer", "(yes)")]


def test_vllm_57490_opening_call_marker_in_pieces() -> None:
    """If the opening marker of a call comes in pieces, vLLM sends a part of it as content, and the call is lost."""
    text = '<|action_start|><|plugin|>{"name": "f"}<|action_end|>'
    for size in (1, 8):
        deltas = [text[at : at + size] for at in range(0, len(text), size)]
        assert cut("internlm2", deltas) == [("tool_call", '{"name": "f"}')]


def test_sglang_38537_marker_that_contains_its_beginning() -> None:
    """The end of a text may be the beginning of a marker in several ways. The longest beginning must be held. sglang
    holds the shortest."""
    segmenter = Segmenter(FORMATS["internlm2"])
    assert (segmenter.feed("ok <|action_start|> <"), segmenter.held) == ([("answer", "ok ", 0)], "<|action_start|> <")
    assert segmenter.feed("|plugin|>{}") == [("tool_call", "{}", 1)]


CALLS = [answer for answer in ANSWERS if any(region == "tool_call" for region, _ in answer.segments)]


@pytest.mark.parametrize("answer", CALLS, ids=lambda answer: answer.form)
def test_sglang_35564_calls_that_come_token_by_token(answer: Answer) -> None:
    """Chunks must not change the calls. If tokens come one by one, eight parsers of sglang find wrong calls or none."""
    region = SegmentSet(FORMATS[answer.form]).region_after(answer.prompt)
    whole, by_character = cut(answer.form, [answer.text], region), cut(answer.form, answer.text, region)
    calls = [text for name, text in answer.segments if name == "tool_call"]
    assert [text for name, text in whole if name == "tool_call"] == calls
    assert [text for name, text in by_character if name == "tool_call"] == calls


def test_sglang_has_six_outcomes_of_22_chunkings() -> None:
    text = "pre <think>a</think>x"
    outcomes = [cut("qwen3", deltas) for deltas in chunkings(text)]
    assert len(outcomes) == 22
    assert all(outcome == [("answer", "pre "), ("reasoning", "a"), ("answer", "x")] for outcome in outcomes)


def test_sglang_35083_text_before_the_opening_marker() -> None:
    """sglang divides this text in four ways, depending on the chunks and on whether the answer is streamed."""
    for deltas in chunkings("Sure.<think>checking</think>Done."):
        assert cut("qwen3", deltas) == [("answer", "Sure."), ("reasoning", "checking"), ("answer", "Done.")]


def test_dynamo_10569_delta_ends_in_a_bracket() -> None:
    """If a delta ends with the first character of a marker, `<`, dynamo sends it at once. So it misses the marker, and
    the call stays in the reasoning."""
    assert cut("qwen3", ["think<", "/think>\n<tool_call>{}</tool_call>"], region="reasoning") == [
        ("reasoning", "think"),
        ("answer", "\n"),
        ("tool_call", "{}"),
    ]
    assert cut("glm45", ["<think>first</think>mid<", "think>second</think>end"]) == [
        ("reasoning", "first"),
        ("answer", "mid"),
        ("reasoning", "second"),
        ("answer", "end"),
    ]


def test_exo_2233_marker_with_text_in_its_chunk() -> None:
    """exo finds a call only if a chunk begins or ends with the marker."""
    text = 'Sure. <tool_call>{"name": "f"}</tool_call> Done.'
    expected = [("answer", "Sure. "), ("tool_call", '{"name": "f"}'), ("answer", " Done.")]
    assert all(cut("qwen3", deltas) == expected for deltas in chunkings(text))


def test_mlx_lm_1867_channels_of_gpt_oss() -> None:
    """mlx-lm sends the raw text of all channels, with the markers, as the content."""
    text = (
        "<|channel|>analysis<|message|>The user wants a function.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.edit <|constrain|>json<|message|>{}<|call|>"
        "<|start|>assistant<|channel|>final<|message|>```python\n1\n```<|return|>"
    )
    for deltas in chunkings(text):
        parts = dict(cut("harmony", deltas))
        assert parts["reasoning"] == "The user wants a function."
        assert parts["tool_call"] == "functions.edit <|constrain|>json<|message|>{}"
        assert parts["answer"] == "```python\n1\n```"


def test_rapid_mlx_799_unfinished_reasoning_is_sent_once() -> None:
    """Rapid-MLX sends the reasoning again, as the answer, if the stream ends before the closing marker."""
    segmenter = Segmenter(FORMATS["qwen3"])
    assert segmenter.feed("<think>half a thought</thi") == [("reasoning", "half a thought", 1)]
    assert (segmenter.flush(), segmenter.flush()) == ([("reasoning", "</thi", 1)], [])

    segmenter = Segmenter(SegmentSet(FORMATS["qwen3"], stop=["STOP"]))
    assert segmenter.feed("<think>half a STOP") == [("reasoning", "half a ", 1)]
    assert (segmenter.match, segmenter.region, segmenter.flush()) == (StopMatch("STOP", 14), "reasoning", [])


@pytest.mark.parametrize(
    ("deltas", "reasoning", "answer"),
    [(["<think>abc", "def</th", "ink> answer"], "abcdef", " answer"), (["<think>a</th", "ink>b"], "a", "b")],
)
def test_smg_1751_marker_behind_text_in_two_chunks(deltas: list[str], reasoning: str, answer: str) -> None:
    """smg holds a chunk only if the whole chunk is the beginning of a marker. So it sends this answer as reasoning."""
    assert cut("qwen3", deltas) == [("reasoning", reasoning), ("answer", answer)]


def test_vllm_52393_stops_inside_the_thinking() -> None:
    """In vLLM, the stop `Question:` of lm-evaluation-harness fires in the reasoning, so there is no answer."""
    segments = SegmentSet(FORMATS["deepseek_v4"], stop=["Question:"], stop_in=["answer"])
    segmenter = Segmenter(segments, region=segments.region_after("<think>"))
    assert segmenter.feed("Question: 2 + 2.</think>It is 4.\n\nQuest") == [
        ("reasoning", "Question: 2 + 2.", 0),
        ("answer", "It is 4.\n\n", 1),
    ]
    assert (segmenter.feed("ion: next"), segmenter.match) == ([], StopMatch("Question:", 34))
