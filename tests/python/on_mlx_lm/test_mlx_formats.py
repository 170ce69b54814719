"""mlx-lm's own parsers of tool calls can parse the text of stopscan's `tool_call` segments."""

from __future__ import annotations

import pytest
from format_answers import ANSWERS, Answer

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")

# Maps a name in `FORMATS` to the name of the mlx-lm parser that reads tool calls in this format.
PARSERS = {
    "hermes": "json_tools",
    "qwen3": "json_tools",
    "qwen3_coder": "qwen3_coder",
    "smollm3": "json_tools",
    "glm45": "glm47",
    "glm47": "glm47",
    "gemma4": "gemma4",
    "functiongemma": "function_gemma",
    "kimi_k2": "kimi_k2",
    "kimi_k3": "kimi_k3",
    "lfm2": "pythonic",
    "longcat": "longcat",
    "minimax_m2": "minimax_m2",
    "mistral": "mistral",
}
CALLS = [
    pytest.param(answer, text, id=answer.form)
    for answer in ANSWERS
    for region, text, *_ in answer.segments
    if region == "tool_call" and answer.form in PARSERS
]


@pytest.mark.parametrize(("answer", "text"), CALLS)
def test_mlx_lm_parses_the_segment(answer: Answer, text: str) -> None:
    name = PARSERS[answer.form]
    parser = pytest.importorskip(f"mlx_lm.tool_parsers.{name}", reason=f"this mlx-lm has no parser {name}")
    calls = parser.parse_tool_call(text, [])
    names = [call["name"] for call in (calls if isinstance(calls, list) else [calls])]
    assert names
    assert all(name in text for name in names)
