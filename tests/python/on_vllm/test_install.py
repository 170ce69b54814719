"""Installing, the plugin, the options of a request and the server's default, without an engine."""

from __future__ import annotations

from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

import vllm
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import FinishReason
from vllm.v1.engine.detokenizer import IncrementalDetokenizer
from vllm.v1.engine.input_processor import InputProcessor
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
        vars(InputProcessor)["__init__"],
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


@pytest.mark.parametrize("version", ["0.31.2", "0.33.0", "0.320.0", "1.0.0", "dev"])
def test_another_version_is_an_error_and_vllm_stays_as_it_is(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    monkeypatch.setattr(vllm, "__version__", version)
    with pytest.raises(RuntimeError, match=f"supports vLLM 0.32, and this is vLLM {version}"):
        install()
    monkeypatch.undo()
    assert patched() == before


@pytest.mark.parametrize("version", ["0.32.0", "0.32.1+cpu", "0.32.0rc1"])
def test_every_0_32_is_supported(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "__version__", version)
    install()


def plugin() -> None:
    (entry_point,) = entry_points(group="vllm.general_plugins", name="stopscan")
    entry_point.load()()


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
    monkeypatch.setenv("STOPSCAN_VLLM_PROTECT", '["<think>", "</think>"]')
    plugin()
    assert text(tokenizer, reciter, "think", stop=["END"]) == ("<think>Is it END?</think>It is 5 or 6 ", "END")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STOPSCAN_VLLM", "yes"),
        ("STOPSCAN_VLLM_PROTECT", "<think>"),
        ("STOPSCAN_VLLM_PROTECT", '["<think>"]'),
        ("STOPSCAN_VLLM_PROTECT", '"<think>"'),
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
        (["END"], {"stopscan_protect": "<think>"}, "stopscan_protect must be a flat list .* not '<think>'"),
        (["END"], {"stopscan_protect": ["<think>"]}, "stopscan_protect must be a flat list"),
        (["END"], {"stopscan_protect": ["<think>", 1]}, "stopscan_protect must be a flat list"),
        (["END"], {"stopscan_protect": ["<think>", ""]}, "stopscan_protect must be a flat list"),
        (["END"], {"stopscan_protect": [["<think>", "</think>"]]}, "stopscan_protect must be a flat list"),
        (
            ["END"],
            {"stopscan_protect": THINK, "stopscan_start_protected": 2},
            "stopscan_start_protected must be 0 or 1",
        ),
        (["END"], {"stopscan_start_protected": "yes"}, "stopscan_start_protected must be 0 or 1, not 'yes'"),
        (["END"], {"stopscan_protected": THINK}, "stopscan_protected is not an option"),
        (["END"], {"stopscan_start_protected": 1}, "stopscan_start_protected needs the markers of a region"),
        (["</think>"], {"stopscan_protect": THINK}, 'stop "</think>" is both'),
        (["\ud800"], {}, "stop .* surrogates"),
        ([], {"stopscan_protect": ["<think>"]}, "stopscan_protect must be a flat list"),
    ],
)
def test_malformed_options_are_refused_before_and_when_a_request_is_added(
    tokenizer: Any, stop: list[str], extra_args: dict[str, Any], message: str
) -> None:
    params = SamplingParams(stop=stop, extra_args=extra_args)
    install()
    with pytest.raises(VLLMValidationError, match=message):
        SamplingParams.from_optional(stop=stop, extra_args=extra_args)
    with pytest.raises(VLLMValidationError, match=message):
        run(tokenizer, [[1]], params)


ANSWER = "<think>Is it END?</think>It is 5 or 6 "


@pytest.mark.parametrize(
    ("script", "params", "expected"),
    [
        ("think", {"extra_args": {"stopscan_protect": THINK}}, (ANSWER, "END")),
        ("think", {"extra_args": {"stopscan_protect": THINK, "stopscan_start_protected": 0}}, (ANSWER, "END")),
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


def test_starting_inside_a_region_of_special_tokens(checkpoint: Any, reciter: Any) -> None:
    install()
    tokenizer = get_tokenizer(str(checkpoint))
    options = {"stop": ["END"], "extra_args": {"stopscan_protect": ["<|message|>", "<|end|>"]}}
    assert text(tokenizer, reciter, "split", **options) == ("This is the ", "END")
    assert text(tokenizer, reciter, "split", prompt="<|message|>", **options) == ("This is the END of it", None)


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


@pytest.mark.parametrize(
    ("name", "message"), [("", "this engine has none"), ("openai_gptoss", "names no start and end")]
)
def test_the_default_of_a_server_without_markers_is_an_error_when_its_engine_is_made(
    name: str, message: str, checkpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(self: Any, config: Any, renderer: Any = None) -> None:
        self.renderer = renderer

    config = SimpleNamespace(structured_outputs_config=SimpleNamespace(reasoning_parser=name))
    with monkeypatch.context() as patch:
        patch.setattr(InputProcessor, "__init__", init)
        install(protect="reasoning")
        with pytest.raises(ValueError, match=message):
            InputProcessor(config, SimpleNamespace(tokenizer=get_tokenizer(str(checkpoint))))
        uninstall()
