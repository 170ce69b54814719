"""Regions by name: what vLLM's own reasoning and tool parsers say of an answer, for all of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm.exceptions import VLLMValidationError
from vllm.parser import ParserManager
from vllm.reasoning import ReasoningParserManager
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.tool_parsers import ToolParserManager
from vllm.v1.engine.input_processor import InputProcessor
from vllm_harness import run

from stopscan.vllm import _hooks, install, uninstall
from stopscan.vllm._install import install_as_asked as plugin
from stopscan_conformance.reciter import Reciter

pytestmark = pytest.mark.vllm

# Every parser looks its own markers up.
MARKERS = """
<think> </think> <mm:think> </mm:think> <seed:think> </seed:think> [THINK] [/THINK] [TOOL_CALLS] <|open|> <|close|>
<|sep|> <|START_THINKING|> <|END_THINKING|> <|CHATBOT_TOKEN|> <tool_call> </tool_call> <ifm|think> </ifm|think>
<ifm|think_fast> </ifm|think_fast> <ifm|think_faster> </ifm|think_faster> <|channel> <channel|> <|content_thinking|>
<|content_text|> <|end_message|> <|plamo:begin_think:plamo|> <|plamo:end_think:plamo|> <assistant> <|eom|> </ Ġ</ think
"""
THINKING = {"chat_template_kwargs": {"thinking": True, "enable_thinking": True, "reasoning_effort": "high",
                                     "thinking_mode": "enabled"}}  # fmt: skip

# What each parser takes an answer without a marker for: reasoning, the answer, or what the request's
# `chat_template_kwargs` say; and what closes the reasoning.
STATES = {
    "cohere_command3": ("never", "<|END_THINKING|>"),
    "cohere_command4": ("never", "<|END_THINKING|>"),
    "deepseek_r1": ("always", "</think>"),
    "deepseek_v3": ("if asked", "</think>"),
    "deepseek_v4": ("always", "</think>"),
    "deepseek_v41": ("always", "</think>"),
    "ernie45": ("always", "</think>"),
    "gemma4": ("never", "<channel|>"),
    "glm45": ("always", "</think>"),
    "glm47": ("always", "</think>"),
    "granite": ("never", "Here is my response:"),
    "granite_thinking_parser": ("always", "</think>"),
    "holo2": ("always", "</think>"),
    "hunyuan_a13b": ("never", "</think>"),
    "hy_v3": ("if asked", "</think>"),
    "hy_v4": ("always", "</think>"),
    "inkling": ("never", "<|end_message|>"),
    "k2_horizon": ("always", "</ifm|think>"),
    "kimi_k2": ("always", "</think>"),
    "kimi_k3": ("always", "<|close|>think<|sep|>"),
    "ling3": ("always", "</think>"),
    "mimo": ("always", "</think>"),
    "minicpmv": ("always", "</think>"),
    "minimax_m2": ("always", "</think>"),
    "minimax_m2_append_think": ("always", "</think>"),
    "minimax_m3": ("if asked", "</mm:think>"),
    "mistral": ("never", "[/THINK]"),
    "muse": ("never", "<|eom|>"),
    "muse_glimmer": ("never", "<|eom|>"),
    "musespark1x": ("never", "<|eom|>"),
    "nemotron_v3": ("always", "</think>"),
    "olmo3": ("always", "</think>"),
    "openai_gptoss": ("always", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "plamo3": ("always", "<|plamo:end_think:plamo|>"),
    "poolside_v1": ("if asked", "</think>"),
    "qwen3": ("always", "</think>"),
    "seed_oss": ("always", "</seed:think>"),
    "step3": ("always", "</think>"),
    "step3p5": ("always", "</think>"),
    "step5": ("always", "</think>"),
}
# What opens the reasoning, where it is not the closing marker without its slash.
OPENERS = {
    "cohere_command3": "<|START_THINKING|>",
    "cohere_command4": "<|START_THINKING|>",
    "gemma4": "<|channel>",
    "granite": "Here's my thought process:",
    "inkling": "<|content_thinking|>",
    "kimi_k3": "<|open|>think<|sep|>",
    "muse": " to=self<|message|>",
    "muse_glimmer": " to=self<|message|>",
    "musespark1x": " to=self<|message|>",
    "openai_gptoss": "<|channel|>analysis<|message|>",
    "plamo3": "<|plamo:begin_think:plamo|>",
}
# These read all they know out of a tokenizer's `response_template`.
PARSERS = sorted(set(ReasoningParserManager.list_registered()) - {"beam", "hf"})


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    reciter = Reciter(
        {"pieces": ["a", " t", "hink", " </", "</", "think", ">", "<", "final"]}, added_tokens=MARKERS.split()
    )
    return get_tokenizer(str(reciter.write(tmp_path_factory.mktemp("markers"))))


@pytest.fixture
def start(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs, and makes an engine as far as stopscan sees it."""

    def init(self: Any, vllm_config: Any, renderer: Any = None) -> None:
        self.renderer = renderer

    def make(protect: Any, reasoning_parser: str = "", tokenizer: Any = tokenizer, *, keywords: bool = False) -> None:
        if protect is not None:
            install(protect=protect)
        config = SimpleNamespace(structured_outputs_config=SimpleNamespace(reasoning_parser=reasoning_parser))
        arguments = {"vllm_config": config, "renderer": SimpleNamespace(tokenizer=tokenizer)}
        InputProcessor(**arguments) if keywords else InputProcessor(*arguments.values())

    monkeypatch.setattr(InputProcessor, "__init__", init)
    yield make
    uninstall()


def answer(
    tokenizer: Any,
    text: str,
    *,
    prompt: str | None = "x",
    parser_options: dict[str, Any] | None = None,
    request_id: str = "r",
    **params: Any,
) -> str:
    """What comes of ``text`` with the stop END."""
    params = {"stop": ["END"], "output_kind": RequestOutputKind.DELTA, "skip_special_tokens": False, **params}
    steps = [[token] for token in tokenizer.encode(text, add_special_tokens=False)]
    prompt_ids = None if prompt is None else tokenizer.encode(prompt, add_special_tokens=False)
    return run(
        tokenizer,
        steps,
        SamplingParams(**params),
        prompt=prompt_ids,
        parser_options=parser_options,
        request_id=request_id,
    ).text


def test_the_table_has_all_parsers() -> None:
    assert set(PARSERS) <= set(STATES)


@pytest.mark.parametrize("asked", [False, True], ids=["", "thinking"])
@pytest.mark.parametrize("parser", PARSERS)
def test_vllm_53066_an_answer_that_begins_inside_its_reasoning(
    tokenizer: Any, start: Any, parser: str, asked: bool
) -> None:
    state, closing = STATES[parser]
    start("reasoning", parser)
    inside = state == "always" or (state == "if asked" and asked)
    thought = f"Is it END?{closing}"
    text = answer(tokenizer, f"{thought}It is 5 END here", parser_options=THINKING if asked else None)
    assert text == (f"{thought}It is 5 " if inside else "Is it ")


@pytest.mark.parametrize("skip", [False, True], ids=["", "special tokens skipped"])
@pytest.mark.parametrize("parser", PARSERS)
def test_vllm_52393_no_stop_fires_between_the_markers_of_a_parser(
    tokenizer: Any, start: Any, parser: str, skip: bool
) -> None:
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
def test_a_request_says_which_of_a_parsers_regions_it_begins_in(
    tokenizer: Any, start: Any, effort: str, name: str
) -> None:
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
def test_a_server_passes_over_reasoning_that_its_parser_has_no_markers_for(
    tokenizer: Any, start: Any, name: str
) -> None:
    start(["reasoning", ("<a>", "</a>")], name)
    assert answer(tokenizer, "<a>END</a><think>END") == "<a>END</a><think>"
    with pytest.raises(VLLMValidationError, match="stopscan_protect this model has no markers for 'reasoning'"):
        answer(tokenizer, "END", extra_args={"stopscan_protect": ["reasoning"]})
    start("reasoning", name, tokenizer=None)


def test_a_configuration_that_moved_is_an_error_that_names_it(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    with pytest.raises(RuntimeError, match="cannot read the reasoning parser of vLLM's configuration"):
        InputProcessor(SimpleNamespace(parsers=None), SimpleNamespace(tokenizer=object()))
    uninstall()
    monkeypatch.setenv("STOPSCAN_VLLM", "optional")
    plugin()
    InputProcessor(SimpleNamespace(parsers=None), SimpleNamespace(tokenizer=object()))
    assert not _hooks.installed()


@pytest.fixture(autouse=True)
def _nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsers of somebody's own that say nothing of their markers, or only of one."""
    base = ReasoningParserManager.get_reasoning_parser("granite")
    for name, markers in {
        "nameless": {},
        "unclosed": {"reasoning_start_str": "<think>"},
        "unopened": {"reasoning_end_str": "</think>"},
    }.items():
        monkeypatch.setitem(ReasoningParserManager.reasoning_parsers, name, type(name, (base,), markers))


def test_a_name_that_no_engine_here_knows_is_refused_at_once(start: Any) -> None:
    named = {"stop": ["END"], "extra_args": {"stopscan_protect": ["reasoning"]}}
    install()
    SamplingParams.from_optional(**named)
    start([], "")
    with pytest.raises(VLLMValidationError, match="stopscan_protect this model has no markers for 'reasoning'"):
        SamplingParams.from_optional(**named)
    start([], "qwen3")
    SamplingParams.from_optional(**named)


def calls(tool_parser: str | None) -> None:
    ParserManager.get_parser(tool_parser_name=tool_parser, enable_auto_tools=False)


def test_vllm_42210_no_stop_fires_in_a_tool_call(tokenizer: Any, start: Any) -> None:
    text = 'Well. <tool_call>{"END": 1}</tool_call> So END'
    start("tool_call")
    calls("hermes")
    assert answer(tokenizer, text) == text[:-3]
    start([])
    calls("hermes")
    assert answer(tokenizer, text) == 'Well. <tool_call>{"'
    assert answer(tokenizer, text, extra_args={"stopscan_protect": ["tool_call"]}) == text[:-3]


def test_an_engine_that_is_made_after_its_tool_parser_was_named(tokenizer: Any, start: Any) -> None:
    install(protect="tool_call")
    calls("hermes")
    start(None)
    text = 'Well. <tool_call>{"END": 1}</tool_call> So END'
    assert answer(tokenizer, text) == text[:-3]


def test_calls_whose_parser_nobody_named_are_passed_over_in_a_default(tokenizer: Any, start: Any) -> None:
    start("tool_call")
    calls(None)
    assert answer(tokenizer, "So END") == "So "
    with pytest.raises(VLLMValidationError, match="no markers for 'tool_call'"):
        answer(tokenizer, "So END", extra_args={"stopscan_protect": ["tool_call"]})


def test_vllm_34101_calls_that_nothing_closes_last_to_the_end(tokenizer: Any, start: Any) -> None:
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


# Their calls have no markers, or stand between headers.
UNMARKED = {
    "beam", "hf", "inkling", "llama4_json", "muse", "muse_glimmer", "musespark1x", "openai", "pythonic", "xlam",
}  # fmt: skip


@pytest.mark.parametrize("parser", sorted(ToolParserManager.list_registered()))
def test_every_tool_parser_has_a_region_or_no_markers(tokenizer: Any, start: Any, parser: str) -> None:
    start([])
    calls(parser)
    named = {"stop": ["END"], "extra_args": {"stopscan_protect": ["tool_call"]}}
    if parser in UNMARKED:
        with pytest.raises(VLLMValidationError, match="no markers for 'tool_call'"):
            SamplingParams.from_optional(**named)
    else:
        SamplingParams.from_optional(**named)


# An answer to a chat that begins inside its reasoning, with a call; and one on a route that vLLM does not parse.
TEXT = 'Is it END?</think>Well. <tool_call>{"END": 1}</tool_call> So END'


@pytest.mark.parametrize(
    ("request_id", "extra_args", "expected"),
    [
        ("chatcmpl-1", {}, TEXT[:-3]),
        ("resp_1", {}, TEXT[:-3]),
        ("cmpl-1", {}, "Is it "),
        ("1", {}, "Is it "),
        ("chatcmpl-1", {"stopscan_protect": []}, "Is it "),
        ("chatcmpl-1", {"stopscan_protect": ["reasoning"]}, 'Is it END?</think>Well. <tool_call>{"'),
        ("cmpl-1", {"stopscan_protect": ["reasoning", "tool_call"]}, TEXT[:-3]),
    ],
)
def test_stops_are_for_the_answer_on_chat_routes(
    tokenizer: Any, start: Any, request_id: str, extra_args: dict[str, Any], expected: str
) -> None:
    install()
    start(None, "deepseek_r1")
    calls("hermes")
    assert answer(tokenizer, TEXT, request_id=request_id, extra_args=extra_args) == expected


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
def test_a_user_who_writes_a_marker_does_not_end_or_begin_the_reasoning(
    tokenizer: Any, start: Any, prompt: str, inside: bool
) -> None:
    start("reasoning", "deepseek_r1")
    text = "Is it END?</think>It is 5 END"
    assert answer(tokenizer, text, prompt=prompt) == (text[:-3] if inside else "Is it ")
