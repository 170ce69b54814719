"""The forms for which `transformers serve` has a template, compared with the parser of transformers."""

from __future__ import annotations

from typing import Any

import pytest
from format_answers import ANSWERS, Answer
from transformers_parts import parts

serving = pytest.importorskip("transformers.cli.serving.utils", reason="transformers' server, 5.20 or later")

# For each form: a model type for which transformers has a template, and the text that this template removes at the
# beginning of a call. The template also removes the opening marker.
TEMPLATES = {
    "hermes": ("qwen2", ""),
    "qwen3": ("qwen3", ""),
    "qwen3_coder": ("qwen3_5", "\n<function=get_weather>"),
    "gemma4": ("gemma4", "call:get_current_temperature"),
}
FIELDS = {"content": "answer", "reasoning_content": "reasoning", "tool_calls": "tool_call"}

# Leaves out the answers whose reasoning is never closed: in these, transformers waits for `</think>` (docs/formats.md).
CLOSED = [answer for answer in ANSWERS if answer.form in TEMPLATES and "never closed" not in answer.source]


def template_of(model_type: str) -> dict[str, Any]:
    return next(template for types, template in serving._RESPONSE_TEMPLATE_FALLBACKS.items() if model_type in types)


@pytest.mark.parametrize("answer", CLOSED, ids=lambda answer: answer.form)
def test_the_parts_are_those_of_transformers(answer: Answer) -> None:
    """White space around the parts is not compared, because transformers drops it."""
    model_type, taken = TEMPLATES[answer.form]
    template = template_of(model_type)
    anchor = template["start_anchor"]
    prefix = (anchor if isinstance(anchor, str) else anchor[0]) + answer.prompt
    by_transformers = [(FIELDS[field], text.strip()) for field, text in parts(template, prefix, [answer.text])]
    ours = [
        (region, text.removeprefix(taken).removesuffix("</function>\n").strip()) for region, text in answer.segments
    ]
    assert [part for part in ours if part[1]] == [part for part in by_transformers if part[1]]


def test_each_template_has_a_form() -> None:
    for types in serving._RESPONSE_TEMPLATE_FALLBACKS:
        assert any(model_type in types for model_type, _ in TEMPLATES.values()), types
