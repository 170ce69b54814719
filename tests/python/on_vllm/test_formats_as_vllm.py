"""The forms that vLLM's parser engine knows, beside that engine: the same answers, whole and in pieces."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import pytest
from format_answers import ANSWERS, Answer

from stopscan.segments import FORMATS, SegmentSet

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm.parser.engine", reason="vLLM is not installed")

# The form, and vLLM's module and function that describe it.
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
    "inkling": ("inkling", "inkling_config"),
}

# Inkling's calls in text are text for vLLM, and calls for sglang.
KNOWN = [answer for answer in ANSWERS if answer.form in CONFIGS and "of sglang" not in answer.source]


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


@pytest.mark.parametrize("answer", KNOWN, ids=lambda answer: answer.form)
def test_reasoning_and_answer_are_those_of_vllm(answer: Answer) -> None:
    module, function = CONFIGS[answer.form]
    config = getattr(importlib.import_module(f"vllm.parser.{module}"), function)()
    begins_in = SegmentSet(FORMATS[answer.form]).region_after(answer.prompt)
    if begins_in == "answer" and answer.text.startswith("<think>"):
        begins_in = "reasoning"  # as vLLM does, for which this is a second marker
    ours = {
        part: "".join(text for region, text in answer.segments if region == part) for part in ("reasoning", "answer")
    }
    assert parts(config, begins_in, [answer.text]) == ours
    assert parts(config, begins_in, answer.text) == ours
