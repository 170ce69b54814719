"""The region "tool_call": no stop fires in the text that vLLM's tool parser reads as a call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm.exceptions import VLLMValidationError
from vllm.tool_parsers import ToolParserManager
from vllm_harness import checked
from vllm_parsers import answer, calls

from stopscan.vllm import _install, install

pytestmark = pytest.mark.vllm


@pytest.fixture
def tokenizer(marked: Any) -> Any:
    return marked


def test_vllm_42210_no_stop_fires_in_a_tool_call(tokenizer: Any, start: Any) -> None:
    text = 'Well. <tool_call>{"END": 1}</tool_call> So END'
    start("tool_call")
    calls("hermes")
    assert answer(tokenizer, text) == text[:-3]
    start([])
    calls("hermes")
    assert answer(tokenizer, text) == 'Well. <tool_call>{"'
    assert answer(tokenizer, text, extra_args={"stopscan_protect": ["tool_call"]}) == text[:-3]


def test_engine_made_after_its_tool_parser(tokenizer: Any, start: Any) -> None:
    install(protect="tool_call")
    calls("hermes")
    start(None)
    text = 'Well. <tool_call>{"END": 1}</tool_call> So END'
    assert answer(tokenizer, text) == text[:-3]


def test_default_ignores_calls_without_a_named_parser(tokenizer: Any, start: Any) -> None:
    start("tool_call")
    calls(None)
    assert answer(tokenizer, "So END") == "So "
    with pytest.raises(VLLMValidationError, match="no markers for 'tool_call'"):
        answer(tokenizer, "So END", extra_args={"stopscan_protect": ["tool_call"]})


def test_vllm_34101_unclosed_calls_last_to_the_end(tokenizer: Any, start: Any) -> None:
    start("tool_call")
    calls("mistral")
    text = '[TOOL_CALLS]f{"a": "END"}[TOOL_CALLS]g{"b": "END"}'
    assert answer(tokenizer, text) == text


@pytest.mark.parametrize(
    ("parser", "opening", "closing"),
    [
        ("deepseek_v4", "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
        ("deepseek_v4", "<｜DSML｜toolcalls>", "</｜DSML｜tool_calls>"),
        ("deepseek_v4", "<｜DSML｜tool>", "</｜DSML｜tool_calls>"),
        ("internlm", "<|action_start|> <|plugin|>", "<|action_end|>"),
    ],
)
def test_every_spelling_of_a_calls_opening_marker(
    tokenizer: Any, start: Any, parser: str, opening: str, closing: str
) -> None:
    start("tool_call")
    calls(parser)
    text = f"{opening}END{closing}So END"
    assert answer(tokenizer, text) == text[:-3]


# vLLM's tool parsers without a region "tool_call" in stopscan: their calls have no fixed markers, or stand between
# headers, as in OpenAI's Harmony format.
UNMARKED = {
    "beam", "hf", "inkling", "llama4_json", "muse", "muse_glimmer", "musespark1x", "openai", "pythonic", "xlam",
}  # fmt: skip


@pytest.mark.parametrize("parser", sorted(ToolParserManager.list_registered()))
def test_every_tool_parser_has_a_region_or_no_markers(tokenizer: Any, start: Any, parser: str) -> None:
    start([])
    # Tells the adapter the name of the parser directly. The function `calls` would need the parser's package, which may
    # not be installed.
    _install._adapter.parser_made(SimpleNamespace(tool_parser_cls=object), None, parser)
    named = {"stop": ["END"], "extra_args": {"stopscan_protect": ["tool_call"]}}
    if parser in UNMARKED:
        with pytest.raises(VLLMValidationError, match="no markers for 'tool_call'"):
            checked(**named)
    else:
        checked(**named)
