"""Compares ``FORMATS`` with vLLM's parsers: both find the same reasoning and answer, in whole texts and in pieces."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from format_answers import ANSWERS, Answer
from format_faults import BARES

from stopscan.segments import FORMATS, Segmenter, SegmentSet

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm.parser.engine", reason="vLLM is not installed")

# Maps a name in `FORMATS` to a module of vLLM and a function in it. The function returns the settings with which vLLM
# parses answers in this format.
CONFIGS = {
    "hermes": ("qwen3", "qwen3_config"),
    "qwen3": ("qwen3", "qwen3_config"),
    "qwen3_coder": ("qwen3", "qwen3_config"),
    "glm45": ("glm47_moe", "glm47_moe_config"),
    "glm47": ("glm47_moe", "glm47_moe_config"),
    "nemotron_v3": ("nemotron_v3", "nemotron_v3_config"),
    "granite4": ("granite_thinking", "granite_thinking_config"),
    "step3p5": ("step3p5", "step3p5_config"),
    "deepseek_v4": ("deepseek_v4", "deepseek_v4_config"),
    "deepseek_v41": ("deepseek_v41", "deepseek_v41_config"),
    "kimi_k2": ("kimi_k2", "kimi_k2_config"),
    "minimax_m2": ("minimax_m2", "minimax_m2_config"),
    "plamo3": ("plamo3", "plamo3_config"),
    "mimo": ("qwen3", "qwen3_config"),
    "seed_oss": ("qwen3", "qwen3_config"),
    "gemma4": ("gemma4", "gemma4_config"),
    "inkling": ("inkling", "inkling_config"),
}

# vLLM reads Seed-OSS with the parser of Qwen3 and these markers.
SEED = ("<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>")
OPTIONS: dict[str, dict[str, Any]] = {
    "seed_oss": dict(zip(("think_start", "think_end", "tool_start", "tool_end"), SEED, strict=True)),
    "deepseek_v4": {"thinking": True},
    "deepseek_v41": {"thinking": True},
}

# Leaves out an answer of the model Inkling that comes from sglang's code, `<|content_invoke_tool_text|>ls`. sglang
# reads it as a call, vLLM as text.
KNOWN = [answer for answer in ANSWERS if answer.form in CONFIGS and "of sglang" not in answer.source]
CALLS = {form: call for form, _, call in BARES} | {
    "hermes": '{"name": "f", "arguments": {}}',
    "qwen3": '{"name": "f", "arguments": {}}',
    "granite4": '{"name": "f", "arguments": {}}',
    "glm45": "f<arg_key>x</arg_key><arg_value>1</arg_value>",
    "glm47": "f<arg_key>x</arg_key><arg_value>1</arg_value>",
    "gemma4": "call:f{x:1}",
    "kimi_k2": "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "plamo3": "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>f<|plamo:end_tool_name:plamo|>"
    "<|plamo:begin_tool_arguments:plamo|>{}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
}
# These parsers drop all text after a call.
NOTHING_AFTER_CALLS = {"deepseek_v4", "deepseek_v41", "kimi_k2"}


def parts(config: Any, begins_in: str, deltas: Iterable[str]) -> dict[str, str]:
    """The reasoning and the content that vLLM finds."""
    from vllm.parser.engine.events import EventType
    from vllm.parser.engine.parser_engine_config import ParserState
    from vllm.parser.engine.streaming_parser_engine import StreamingParserEngine

    state = {"reasoning": ParserState.REASONING, "answer": ParserState.CONTENT, "header": config.initial_state}
    engine = StreamingParserEngine(config, None, initial_state=state[begins_in])
    events = [event for delta in deltas for event in engine.feed(delta, [])] + engine.finish()
    kinds = {"reasoning": EventType.REASONING_CHUNK, "answer": EventType.TEXT_CHUNK}
    return {part: "".join(event.value for event in events if event.type == kind) for part, kind in kinds.items()}


def config_of(form: str) -> Any:
    module, function = CONFIGS[form]
    return getattr(importlib.import_module(f"vllm.parser.{module}"), function)(**OPTIONS.get(form, {}))


@pytest.mark.parametrize("form", [form for form in CONFIGS if form in CALLS])
def test_faults_are_read_as_vllm_reads_them(form: str) -> None:
    """Compares stopscan with vLLM's parser on all sequences of four parts. A part is a marker, a text or a tool call.
    Models were seen to write a part twice or in the wrong place.

    Before the comparison, `bare` removes what is known to differ. This is white space, and surplus closing markers of
    calls, which vLLM leaves in the text. It is also Gemma 4's title "thought", which vLLM removes in a stage that is
    not called here.
    """
    config, markers = config_of(form), FORMATS[form]
    opening, closing = next(iter(markers["answer"])), next(iter(markers["reasoning"]))
    call = next(marker for marker, lead in markers["answer"].items() if lead == "tool_call")
    end = next(iter(markers["tool_call"]))
    title = "thought\n" if form == "gemma4" else ""
    parts_of_it = {"open": opening + title, "close": closing, "text": "some text ", "end": end}
    calls = {"call": call + CALLS[form] + end}
    if form in {known for known, _, _ in BARES}:
        calls["bare"] = CALLS[form] + "\n" + end
    seen = 0
    for chosen in product([*parts_of_it, *calls], repeat=4):
        after = [part for index, part in enumerate(chosen) if {*chosen[:index]} & {*calls}]
        if form in NOTHING_AFTER_CALLS and after:
            continue
        text = "".join((parts_of_it | calls)[part] for part in chosen)
        by_vllm = {part: bare(words, end, title) for part, words in parts(config, "reasoning", [text]).items()}
        segmenter = Segmenter(markers, region="reasoning")
        segments = [*segmenter.feed(text), *segmenter.flush()]
        for part, words in by_vllm.items():
            assert bare("".join(t for region, t, _ in segments if region == part), end, "") == words, (chosen, part)
        seen += 1
    assert seen > 300


def bare(text: str, end: str, title: str) -> str:
    return re.sub(r"\s", "", text.replace(end, "").replace(title, "") if title else text.replace(end, ""))


@pytest.mark.parametrize("answer", KNOWN, ids=lambda answer: answer.form)
def test_reasoning_and_answer_are_those_of_vllm(answer: Answer) -> None:
    config = config_of(answer.form)
    begins_in = SegmentSet(FORMATS[answer.form]).region_after(answer.prompt)
    if begins_in == "answer" and answer.text.startswith(("<think>", "<seed:think>")):
        # These answers begin with the opening marker of the reasoning. vLLM begins in the reasoning even before it
        # reads this marker, and drops the marker.
        begins_in = "reasoning"
    ours = {
        part: "".join(text for region, text in answer.segments if region == part) for part in ("reasoning", "answer")
    }
    for deltas in ([answer.text], answer.text):
        by_vllm = parts(config, begins_in, deltas)
        # Gemma 4 begins its reasoning with "thought", which vLLM removes only in a stage that is not called here.
        assert {part: words.removeprefix("thought\n") for part, words in by_vllm.items()} == ours
