"""The region "reasoning": for each reasoning parser of vLLM, no stop fires in what the parser reads as reasoning."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm.exceptions import VLLMValidationError
from vllm.reasoning import ReasoningParserManager
from vllm.v1.engine.input_processor import InputProcessor
from vllm_harness import checked, patched
from vllm_parsers import OPENERS, STATES, THINKING, answer

from stopscan.vllm import install, uninstall
from stopscan.vllm._install import install_as_asked as plugin

pytestmark = pytest.mark.vllm


@pytest.fixture
def tokenizer(marked: Any) -> Any:
    return marked


# "beam" and "hf" are left out, because they read their markers from a tokenizer's `response_template`.
PARSERS = sorted(set(ReasoningParserManager.list_registered()) - {"beam", "hf"})


def test_the_table_has_all_parsers() -> None:
    assert set(PARSERS) <= set(STATES)


@pytest.mark.parametrize("enabled", [False, True], ids=["", "thinking"])
@pytest.mark.parametrize("parser", PARSERS)
def test_vllm_53066_an_answer_that_begins_inside_its_reasoning(
    tokenizer: Any, start: Any, parser: str, enabled: bool
) -> None:
    state, closing = STATES[parser]
    start("reasoning", parser)
    inside = state == "always" or (state == "if asked" and enabled)
    thought = f"Is it END?{closing}"
    text = answer(tokenizer, f"{thought}It is 5 END here", parser_options=THINKING if enabled else None)
    assert text == (f"{thought}It is 5 " if inside else "Is it ")


@pytest.mark.parametrize("skip", [False, True], ids=["", "special tokens skipped"])
@pytest.mark.parametrize("parser", PARSERS)
def test_vllm_52393_no_stop_between_parser_markers(tokenizer: Any, start: Any, parser: str, skip: bool) -> None:
    closing = STATES[parser][1]
    start("reasoning", parser)
    thought = f"{OPENERS.get(parser, closing.replace('/', ''))}Is it END?{closing}"
    ids = tokenizer.encode(f"{thought}It is 5 ", add_special_tokens=False)
    shown = tokenizer.decode(ids, skip_special_tokens=skip)
    assert answer(tokenizer, f"{thought}It is 5 END here", skip_special_tokens=skip) == shown


@pytest.mark.parametrize("closing", ["Here is my response:", "Here's my response:"])
@pytest.mark.parametrize("opening", ["Here is my thought process:", "Here's my thought process:"])
def test_either_ending_closes_either_beginning_of_granite(
    tokenizer: Any, start: Any, opening: str, closing: str
) -> None:
    start("reasoning", "granite")
    text = f"{opening} END {closing} 5 END"
    assert answer(tokenizer, text) == text[:-3]


def test_a_thought_that_the_prompt_begins_or_ends(tokenizer: Any, start: Any) -> None:
    start("reasoning", "deepseek_r1")
    text = "Is it END?</think>It is 5 END"
    assert answer(tokenizer, text, prompt="<think>\nWell,") == "Is it END?</think>It is 5 "
    assert answer(tokenizer, text, prompt="<think>Well.</think>") == "Is it "
    assert answer(tokenizer, text, prompt="<think>Well.</think>So") == "Is it "
    start("reasoning", "minimax_m2_append_think")
    assert answer(tokenizer, text) == text[:-3]
    assert answer(tokenizer, text, prompt="<think>Well.</think>\n\n") == "Is it "
    start("reasoning", "openai_gptoss")
    text = "<|channel|>final<|message|>It is 5 END"
    assert answer(tokenizer, text, prompt="<|start|>assistant") == text[:-3]
    assert answer(tokenizer, "It is 5 END", prompt="<|start|>assistant<|channel|>final<|message|>") == "It is 5 "
    start("reasoning", "gemma4")
    text = "Is it END?<channel|>It is 5 END"
    assert answer(tokenizer, text, prompt="<|channel>thought\n") == text[:-3]
    assert answer(tokenizer, text, prompt="<|channel>thought\n<channel|>") == "Is it "


@pytest.mark.parametrize(("effort", "name"), [("high", "think"), ("medium", "think_fast"), ("low", "think_faster")])
def test_request_names_its_first_region(tokenizer: Any, start: Any, effort: str, name: str) -> None:
    start("reasoning", "k2_horizon")
    options = {"chat_template_kwargs": {"reasoning_effort": effort}}
    text = f"Is it END?</ifm|{name}>It is 5 END"
    assert answer(tokenizer, text, parser_options=options) == text[:-3]


def test_a_prompt_of_embeddings(tokenizer: Any, start: Any) -> None:
    start("reasoning", "deepseek_r1")
    text = "Is it END?</think>It is 5 END"
    assert answer(tokenizer, text, prompt=None) == text[:-3]
    assert answer(tokenizer, text, prompt=None, extra_args={"stopscan_protect": ["<a>", "</a>"]}) == "Is it "


@pytest.mark.parametrize("value", ["reasoning", '["reasoning"]'])
def test_the_plugin_takes_names_from_the_environment(
    tokenizer: Any, start: Any, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    monkeypatch.setenv("STOPSCAN_VLLM_PROTECT", value)
    plugin()
    start(None, "deepseek_r1")
    text = "Is it END?</think>It is 5 END"
    assert answer(tokenizer, text) == text[:-3]


def test_qwen3_begins_in_reasoning_unless_thinking_is_off(tokenizer: Any, start: Any) -> None:
    start([], "qwen3")
    install(protect=["reasoning"])
    assert answer(tokenizer, "It is 5 END") == "It is 5 END"
    not_thinking = {"chat_template_kwargs": {"enable_thinking": False}}
    assert answer(tokenizer, "It is 5 END", parser_options=not_thinking) == "It is 5 "


def test_another_install_forgot_the_parsers_of_engines(tokenizer: Any, start: Any) -> None:
    start([], "deepseek_r1")
    install(protect=["reasoning"])
    text = "Is it END?</think>It is 5 END"
    assert answer(tokenizer, text) == text[:-3]


def test_a_request_overrides_the_parser(tokenizer: Any, start: Any) -> None:
    start("reasoning", "deepseek_r1")
    text = "Is it END?</think>It is 5 END"
    assert answer(tokenizer, text, extra_args={"stopscan_protect": []}) == "Is it "
    assert answer(tokenizer, text, extra_args={"stopscan_start_protected": 0}) == "Is it "
    assert answer(tokenizer, text, stop=["END", "</think>"]) == "Is it "


def test_names_and_markers_side_by_side(tokenizer: Any, start: Any) -> None:
    text = "<a>END</a><think>END</think>5 END"
    start(["reasoning", ("<a>", "</a>")], "cohere_command3")
    assert answer(tokenizer, text) == "<a>END</a><think>"
    start([], "minimax_m3")
    request = {"stopscan_protect": ["reasoning", "<a>", "</a>", "<think>", "</think>"]}
    assert answer(tokenizer, text, extra_args=request) == "<a>END</a><think>END</think>5 "
    assert answer(tokenizer, "<mm:think>END</mm:think>5 END", extra_args=request) == "<mm:think>END</mm:think>5 "


@pytest.mark.parametrize("name", ["", "nameless", "unclosed", "unopened"])
def test_reasoning_without_markers_is_passed_over(tokenizer: Any, start: Any, name: str) -> None:
    start(["reasoning", ("<a>", "</a>")], name)
    assert answer(tokenizer, "<a>END</a><think>END") == "<a>END</a><think>"
    with pytest.raises(VLLMValidationError, match="stopscan_protect: this model has no markers for 'reasoning'"):
        answer(tokenizer, "END", extra_args={"stopscan_protect": ["reasoning"]})
    start("reasoning", name, tokenizer=None)


def test_moved_configuration_is_named(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    install()
    with pytest.raises(RuntimeError, match="unreadable in vLLM's configuration"):
        InputProcessor(SimpleNamespace(parsers=None), SimpleNamespace(tokenizer=object()))
    uninstall()
    monkeypatch.setenv("STOPSCAN_VLLM", "optional")
    plugin()
    InputProcessor(SimpleNamespace(parsers=None), SimpleNamespace(tokenizer=object()))
    assert patched() == before


def test_optional_covers_a_reasoning_parser_that_raises(
    start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Raising:
        def __init__(self, *args: Any, **options: Any) -> None:
            raise KeyError("a token that this tokenizer lacks")

    monkeypatch.setitem(ReasoningParserManager.reasoning_parsers, "raising", Raising)
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    before = patched()
    install()
    with pytest.raises(RuntimeError, match=r"cannot use the engine \(reasoning parser: raising\): KeyError"):
        start(None, "raising")
    uninstall()
    monkeypatch.setenv("STOPSCAN_VLLM", "optional")
    plugin()
    start(None, "raising")
    assert patched() == before
    assert "running without stopscan: stopscan cannot use the engine (reasoning parser: raising)" in caplog.text


def test_raising_reasoning_parser_is_not_counted(tokenizer: Any, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    base = ReasoningParserManager.get_reasoning_parser("deepseek_r1")

    class Raising(base):
        def is_reasoning_end(self, *args: Any) -> bool:
            raise IndexError("at a request")

    monkeypatch.setitem(ReasoningParserManager.reasoning_parsers, "raising", Raising)
    start("reasoning", "raising")
    for _ in range(5):
        assert answer(tokenizer, "<think>END</think>It is END") == "<think>END</think>It is "


@pytest.fixture(autouse=True)
def _nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers parsers that are not vLLM's. They name none of their markers, or only one."""
    base = ReasoningParserManager.get_reasoning_parser("granite")
    for name, markers in {
        "nameless": {},
        "unclosed": {"reasoning_start_str": "<think>"},
        "unopened": {"reasoning_end_str": "</think>"},
    }.items():
        monkeypatch.setitem(ReasoningParserManager.reasoning_parsers, name, type(name, (base,), markers))


def test_unknown_engine_name_is_refused_at_once(start: Any) -> None:
    named = {"stop": ["END"], "extra_args": {"stopscan_protect": ["reasoning"]}}
    install()
    checked(**named)
    start([], "")
    with pytest.raises(VLLMValidationError, match="stopscan_protect: this model has no markers for 'reasoning'"):
        checked(**named)
    start([], "qwen3")
    checked(**named)


@pytest.mark.parametrize(
    ("prompt", "inside"),
    [
        ("<assistant>", True),
        ("What does </think> mean?<assistant>", True),
        ("<think>Well.</think>Hi. And now?<assistant><think>\n", True),
        ("What does <think> mean?<assistant></think>", False),
        ("a<assistant><think>Well.</think>", False),
    ],
)
def test_marker_in_user_text_changes_no_region(tokenizer: Any, start: Any, prompt: str, inside: bool) -> None:
    start("reasoning", "deepseek_r1")
    text = "Is it END?</think>It is 5 END"
    assert answer(tokenizer, text, prompt=prompt) == (text[:-3] if inside else "Is it ")
