"""Installing, the plugin, the options of a request and the server's default, without an engine."""

from __future__ import annotations

import logging
import os
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

import vllm
from tokenizers.processors import TemplateProcessing
from vllm.exceptions import VLLMValidationError
from vllm.parser import ParserManager
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import FinishReason
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.detokenizer import IncrementalDetokenizer
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.engine.output_processor import RequestState
from vllm_harness import SlowTokenizer, run

from stopscan.vllm import install, uninstall

pytestmark = pytest.mark.vllm

THINK = ["<think>", "</think>"]


@pytest.fixture(scope="module", params=["fast", "slow"])
def tokenizer(request: pytest.FixtureRequest, checkpoint: Any) -> Any:
    fast = get_tokenizer(str(checkpoint))
    return fast if request.param == "fast" else SlowTokenizer(fast)


def patched() -> list[Any]:
    return [
        vars(IncrementalDetokenizer)["from_new_request"],
        vars(SamplingParams)["from_optional"],
        vars(AsyncLLM)["generate"],
        vars(InputProcessor)["process_inputs"],
        vars(RequestState)["_new_completion_output"],
        vars(InputProcessor)["__init__"],
        vars(ParserManager)["get_parser"],
    ]


def text(tokenizer: Any, reciter: Any, script: str, *, prompt: str = "", **params: Any) -> tuple[str, Any]:
    steps = [[token] for token in [*reciter.token_ids(script), reciter.eos_token_id]]
    params.setdefault("output_kind", RequestOutputKind.DELTA)
    prompt_ids = tokenizer.encode(prompt, add_special_tokens=False)
    result = run(tokenizer, steps, SamplingParams(**params), finish=FinishReason.STOP, prompt=prompt_ids)
    return result.text, result.stop_reason


def test_install_twice_and_uninstall_leave_vllm_as_it_was() -> None:
    before = patched()
    install()
    install()
    assert all(new is not old for new, old in zip(patched(), before, strict=True))
    uninstall()
    assert all(new is old for new, old in zip(patched(), before, strict=True))
    uninstall()


def test_a_forked_process_has_nothing_of_ours() -> None:
    before = patched()
    install()
    child = os.fork()
    if child == 0:
        os._exit(0 if patched() == before else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert patched() != before


@pytest.mark.parametrize("protect", ["<think>", ["<think>"], [("<think>",)], 5])
def test_malformed_regions_are_refused_at_once(protect: Any) -> None:
    before = patched()
    with pytest.raises(ValueError, match=r"^protect"):
        install(protect=protect)
    assert patched() == before


def test_the_version_alone_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "__version__", "0.99.0")
    install()


def note(monkeypatch: pytest.MonkeyPatch) -> tuple[type, list[str]]:
    """A plugin that writes down, in front of what it finds, which requests get a detokenizer."""
    found, seen = IncrementalDetokenizer.from_new_request.__func__, []

    def noting(cls: type, tokenizer: Any, request: Any) -> Any:
        seen.append(request.request_id)
        return found(cls, tokenizer, request)

    monkeypatch.setattr(IncrementalDetokenizer, "from_new_request", classmethod(noting))
    return IncrementalDetokenizer, seen


@pytest.mark.parametrize("first", [True, False], ids=["before stopscan", "after stopscan"])
def test_another_plugins_wrapper_stays(
    tokenizer: Any, reciter: Any, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not first:
        install()
    _, seen = note(monkeypatch)
    theirs = vars(IncrementalDetokenizer)["from_new_request"]
    think, stops = [("<think>", "</think>")], {"stop": ["END"]}
    install()
    install(protect=think)
    assert text(tokenizer, reciter, "think", **stops) == (ANSWER, "END")
    assert seen.count("r") == 1
    uninstall()
    assert vars(IncrementalDetokenizer)["from_new_request"] is theirs
    assert text(tokenizer, reciter, "think", **stops) == ("<think>Is it ", "END")
    install(protect=think)
    assert text(tokenizer, reciter, "think", **stops) == (ANSWER, "END")
    assert seen.count("r") == 3
    uninstall()
    monkeypatch.undo()


def test_install_again_where_another_plugin_put_back_what_it_found() -> None:
    before = patched()
    install()
    IncrementalDetokenizer.from_new_request = before[0]
    install()
    assert all(new is not old for new, old in zip(patched(), before, strict=True))
    uninstall()
    assert all(new is old for new, old in zip(patched(), before, strict=True))


def test_vllms_own_checks_and_parsers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> tuple[type, type]:
        with pytest.raises(VLLMValidationError, match="temperature"):
            SamplingParams(temperature=-1)
        parser = ParserManager.get_parser("hermes", "deepseek_r1", enable_auto_tools=True)
        return parser.tool_parser_cls, parser.reasoning_parser_cls

    before = check()
    install()
    assert check() == before
    found = ParserManager.get_parser.__func__
    theirs = classmethod(lambda cls, *args, **options: found(cls, *args, **options))
    monkeypatch.setattr(ParserManager, "get_parser", theirs)
    uninstall()
    assert check() == before
    monkeypatch.undo()
    uninstall()


def plugin() -> None:
    """What vLLM does in a process that then makes an engine, as far as stopscan sees it."""
    (entry_point,) = entry_points(group="vllm.general_plugins", name="stopscan")
    entry_point.load()()
    with pytest.raises(AttributeError, match="model_config"):
        InputProcessor(SimpleNamespace())


@pytest.mark.parametrize("environment", [{}, {"STOPSCAN_VLLM": ""}, {"STOPSCAN_VLLM": "0"}])
def test_the_plugin_is_off_unless_asked_for(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    monkeypatch.delenv("STOPSCAN_VLLM", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    plugin()
    assert patched() == before


def test_the_plugin_takes_the_markers_from_the_environment(
    tokenizer: Any, reciter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    plugin()
    assert text(tokenizer, reciter, "think", stop=["END"]) == ("<think>Is it ", "END")
    uninstall()
    monkeypatch.setenv("STOPSCAN_VLLM_PROTECT", '["<think>", "</think>"]')
    plugin()
    assert text(tokenizer, reciter, "think", stop=["END"]) == ("<think>Is it END?</think>It is 5 or 6 ", "END")


def test_the_plugin_installs_where_vllm_has_no_rust_frontend(monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    monkeypatch.delitem(vllm.envs.environment_variables, "VLLM_USE_RUST_FRONTEND", raising=False)
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    plugin()
    assert all(new is not old for new, old in zip(patched(), before, strict=True))


@pytest.mark.parametrize("problem", ["parts", "rust"])
def test_a_vllm_that_does_not_fit_is_refused_or_runs_without_with_a_warning(
    problem: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = patched()
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    message = {"parts": "does not fit vLLM", "rust": "VLLM_USE_RUST_FRONTEND=1"}[problem]
    if problem == "rust":
        monkeypatch.setattr(vllm.envs, "VLLM_USE_RUST_FRONTEND", True, raising=False)
    else:
        monkeypatch.delattr(RequestState, "_new_completion_output")
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    with pytest.raises(RuntimeError, match=message):
        plugin()
    monkeypatch.setenv("STOPSCAN_VLLM", "optional")
    plugin()
    (warning,) = {(record.levelname, record.message) for record in caplog.records if "stopscan" in record.name}
    assert warning[0] == "WARNING"
    assert warning[1].startswith("running without stopscan: ")
    assert message in warning[1]
    monkeypatch.undo()
    assert patched() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STOPSCAN_VLLM", "yes"),
        ("STOPSCAN_VLLM_PROTECT", "<think>"),
        ("STOPSCAN_VLLM_PROTECT", '["<think>"]'),
        ("STOPSCAN_VLLM_PROTECT", '"<think>"'),
        ("STOPSCAN_VLLM_PROTECT", '["<a>", "</a>", "<a>", "</b>"]'),
        ("STOPSCAN_VLLM_PROTECT", '["\\ud800", "</a>"]'),
        ("STOPSCAN_VLLM_LIMITS", "patterns=many"),
        ("STOPSCAN_VLLM_LIMITS", "regexes=5"),
    ],
)
def test_a_malformed_environment_is_an_error_that_names_the_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = patched()
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"^{name} must be"):
        plugin()
    assert patched() == before


@pytest.mark.parametrize(
    ("stop", "extra_args", "message"),
    [
        (["END"], {"stopscan_protect": "<think>"}, "stopscan_protect '<think>' is neither a name"),
        (["END"], {"stopscan_protect": ["<think>"]}, "stopscan_protect '<think>' is neither a name"),
        (["END"], {"stopscan_protect": ["<think>", 1]}, "stopscan_protect 1 is no marker"),
        (["END"], {"stopscan_protect": ["<think>", ""]}, "stopscan_protect '' is no marker"),
        (["END"], {"stopscan_protect": [["<think>"]]}, "stopscan_protect .* is not an opening and a closing marker"),
        (["END"], {"stopscan_protect": 5}, "stopscan_protect must be a list of regions, not 5"),
        (
            ["END"],
            {"stopscan_protect": THINK, "stopscan_start_protected": 2},
            "stopscan_start_protected must be 0 or 1",
        ),
        (["END"], {"stopscan_start_protected": "yes"}, "stopscan_start_protected must be 0 or 1, not 'yes'"),
        (["END"], {"stopscan_protected": THINK}, "stopscan_protected is not an option"),
        (["END"], {"stopscan_start_protected": 1}, "stopscan_start_protected needs the markers of a region"),
        (["\ud800"], {}, "stop .* surrogates"),
        ([], {"stopscan_protect": ["<think>"]}, "stopscan_protect '<think>' is neither"),
        ([], {"stopscan_patterns": 5}, "stopscan_patterns must be a regular expression or a list of them, not 5"),
        ([], {"stopscan_patterns": ["a", 5]}, "stopscan_patterns must be a regular expression"),
        ([], {"stopscan_patterns": ["a("]}, "stopscan_patterns is malformed: .*a\\("),
        ([], {"stopscan_patterns": "a*"}, "stopscan_patterns is malformed: .*empty"),
        ([], {"stopscan_patterns": "a.*b"}, "stopscan_patterns is malformed: .*a\\.\\*b"),
    ],
)
def test_malformed_options_are_refused_before_and_when_a_request_is_added(
    tokenizer: Any, stop: list[str], extra_args: dict[str, Any], message: str
) -> None:
    params = SamplingParams(stop=stop, extra_args=extra_args)
    install()
    with pytest.raises(VLLMValidationError, match=message):
        SamplingParams.from_optional(stop=stop, extra_args=extra_args)
    with pytest.raises(VLLMValidationError, match=message) as refusal:
        run(tokenizer, [[1]], params)
    # Over HTTP, it is the answer's "param".
    assert message.startswith(refusal.value.parameter)


def test_patterns_need_text() -> None:
    install()
    patterns = {"extra_args": {"stopscan_patterns": "a"}}
    with pytest.raises(VLLMValidationError, match="stopscan_patterns needs detokenize"):
        SamplingParams.from_optional(detokenize=False, **patterns)
    assert SamplingParams.from_optional(**patterns).extra_args == patterns["extra_args"]
    assert not SamplingParams.from_optional(detokenize=False).detokenize


@pytest.mark.parametrize("patterns", ["E[A-Z]D", ["never [0-9]", "E[A-Z]D"], ("never [0-9]", "E[A-Z]D")])
@pytest.mark.parametrize("stop", [[], ["too late"]])
def test_patterns(tokenizer: Any, reciter: Any, patterns: Any, stop: list[str]) -> None:
    install()
    params = {"stop": stop, "extra_args": {"stopscan_patterns": patterns}}
    assert text(tokenizer, reciter, "split", **params) == ("This is the ", "END")
    assert text(tokenizer, reciter, "split", include_stop_str_in_output=True, **params) == ("This is the END", "END")
    params["extra_args"]["stopscan_protect"] = THINK
    assert text(tokenizer, reciter, "think", **params) == (ANSWER, "END")


ANSWER = "<think>Is it END?</think>It is 5 or 6 "


@pytest.mark.parametrize(
    ("script", "params", "expected"),
    [
        ("think", {"extra_args": {"stopscan_protect": THINK}}, (ANSWER, "END")),
        ("think", {"extra_args": {"stopscan_protect": THINK, "stopscan_start_protected": 0}}, (ANSWER, "END")),
        ("think", {"extra_args": {"stopscan_protect": THINK, "of_another_plugin": 1}}, (ANSWER, "END")),
        ("think", {"extra_args": {"stopscan_protect": []}}, ("<think>Is it ", "END")),
        ("think", {"prompt": "[think] <think>\n"}, ("<think>Is it ", "END")),
        ("unclosed", {"extra_args": {"stopscan_protect": THINK}}, ("<think>Still END thinking", None)),
        # The prompt ends with the opening marker, as chat templates make it, or only quotes it.
        ("split", {"extra_args": {"stopscan_protect": THINK}}, ("This is the ", "END")),
        ("split", {"extra_args": {"stopscan_protect": THINK}, "prompt": "<think>\n"}, ("This is the END of it", None)),
        ("split", {"extra_args": {"stopscan_protect": THINK}, "prompt": "a <think> tag"}, ("This is the ", "END")),
        ("split", {"extra_args": {"stopscan_protect": THINK}, "prompt": "<think></think>"}, ("This is the ", "END")),
        (
            "think",
            {"extra_args": {"stopscan_protect": ["<a>", "</a>", *THINK]}, "prompt": "<think>\n"},
            (ANSWER, "END"),
        ),
        (
            "split",
            {"extra_args": {"stopscan_protect": THINK, "stopscan_start_protected": 0}, "prompt": "<think>\n"},
            ("This is the ", "END"),
        ),
        (
            "split",
            {"extra_args": {"stopscan_protect": THINK, "stopscan_start_protected": 1}},
            ("This is the END of it", None),
        ),
    ],
)
def test_no_stop_fires_in_a_protected_region(
    tokenizer: Any, reciter: Any, script: str, params: dict[str, Any], expected: tuple[str, Any]
) -> None:
    install()
    assert text(tokenizer, reciter, script, stop=["END"], **params) == expected


@pytest.mark.parametrize(
    ("markers", "skip", "expected"),
    [
        (
            ["<|channel|>", "<|end|>"],
            False,
            "<|channel|>analysis<|message|>Is it END?<|end|>"
            "<|start|>assistant<|channel|>final<|message|>It is 5 or 6 END here",
        ),
        (["<|channel|>", "<|end|>"], True, "analysisIs it END?assistantfinalIt is 5 or 6 "),
        (["<|message|>", "<|end|>"], True, "analysisIs it END?assistantfinalIt is 5 or 6 "),
        (["<|end|>", "<|start|>"], True, "analysisIs it "),
    ],
)
def test_markers_that_are_special_tokens_count_where_the_text_leaves_them_out(
    checkpoint: Any, reciter: Any, markers: list[str], skip: bool, expected: str
) -> None:
    # The second "<|channel|>" and "<|message|>" of the script are tokens of their own, with other ids.
    install()
    tokenizer = get_tokenizer(str(checkpoint))
    extra_args = {"stopscan_protect": markers}
    result, _ = text(tokenizer, reciter, "harmony", stop=["END"], skip_special_tokens=skip, extra_args=extra_args)
    assert result == expected


@pytest.mark.parametrize(
    ("markers", "stop", "answer", "shown"),
    [
        (["It", "<|end|>"], "END", "ItEND<|end|>5 END", "ItEND5 "),
        (["<|message|>", "It"], "END", "<|message|>ENDIt5 END", "ENDIt5 "),
        (["<|message|>It", "<|end|>"], "It", "<|message|>It END<|end|>5", "It END5"),
        (["<|message|>", "<|end|>", "It", "5"], "END", "ItEND5<|message|>END<|end|>END", "ItEND5END"),
    ],
)
def test_markers_of_which_the_text_shows_a_part(
    checkpoint: Any, markers: list[str], stop: str, answer: str, shown: str
) -> None:
    install()
    tokenizer = get_tokenizer(str(checkpoint))
    # As of many models, one that begins every text with a token.
    begin = [("<|start|>", tokenizer.convert_tokens_to_ids("<|start|>"))]
    tokenizer._tokenizer.post_processor = TemplateProcessing(single="<|start|> $A", special_tokens=begin)
    steps = [[token] for token in tokenizer.encode(answer, add_special_tokens=False)]
    literal = SamplingParams(stop=[stop], extra_args={"stopscan_protect": markers})
    pattern = SamplingParams(extra_args={"stopscan_protect": markers, "stopscan_patterns": f"{stop[:-1]}[{stop[-1]}]"})
    for params in (literal, pattern):
        assert run(tokenizer, steps, params).text == shown


def test_starting_inside_a_region_of_special_tokens(checkpoint: Any, reciter: Any) -> None:
    install()
    tokenizer = get_tokenizer(str(checkpoint))
    options = {"stop": ["END"], "extra_args": {"stopscan_protect": ["<|message|>", "<|end|>"]}}
    assert text(tokenizer, reciter, "split", **options) == ("This is the ", "END")
    assert text(tokenizer, reciter, "split", prompt="<|message|>", **options) == ("This is the END of it", None)
    begun, steps = (tokenizer.encode(part, add_special_tokens=False) for part in ("<|message|>", "END<|end|>5 END"))
    params = SamplingParams(stop=["END"], extra_args={"stopscan_protect": ["<|message|>", "<|end|>", "It", "?"]})
    assert run(tokenizer, [[token] for token in steps], params, prompt=begun).text == "END5 "


def test_the_server_default_yields_to_the_request(tokenizer: Any, reciter: Any) -> None:
    install(protect=[("<think>", "</think>")])
    assert text(tokenizer, reciter, "think", stop=["END"]) == (ANSWER, "END")
    assert text(tokenizer, reciter, "think", stop=["END"], extra_args={"stopscan_protect": []})[0] == "<think>Is it "
    assert text(tokenizer, reciter, "think", stop=["</think>"]) == ("<think>Is it END?", "</think>")
    start = {"stopscan_start_protected": 1}
    assert text(tokenizer, reciter, "split", stop=["END"], extra_args=start) == ("This is the END of it", None)
    assert text(tokenizer, reciter, "split", stop=["END", "<think>"], extra_args=start) == ("This is the ", "END")
    assert SamplingParams.from_optional(stop=["END"], extra_args=start).extra_args == start
    install()
    assert text(tokenizer, reciter, "think", stop=["END"]) == ("<think>Is it ", "END")
