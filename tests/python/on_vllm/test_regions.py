"""Protected regions, in which no stop fires. A request or the server names their markers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from tokenizers.processors import TemplateProcessing
from vllm.sampling_params import SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm_harness import ANSWER, THINK, checked, run, text

from stopscan.vllm import install

pytestmark = pytest.mark.vllm


@pytest.mark.parametrize(
    ("script", "params", "expected"),
    [
        ("think", {"extra_args": {"stopscan_protect": THINK}}, (ANSWER, "END")),
        ("think", {"extra_args": {"stopscan_protect": THINK, "stopscan_start_protected": 0}}, (ANSWER, "END")),
        ("think", {"extra_args": {"stopscan_protect": THINK, "of_another_plugin": 1}}, (ANSWER, "END")),
        ("think", {"extra_args": {"stopscan_protect": []}}, ("<think>Is it ", "END")),
        ("think", {"prompt": "[think] <think>\n"}, ("<think>Is it ", "END")),
        ("unclosed", {"extra_args": {"stopscan_protect": THINK}}, ("<think>Still END thinking", None)),
        # If the prompt ends with the opening marker, the answer begins in the region. If text or the closing marker
        # follows the opening marker, the answer begins outside of the region.
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
        (["<|channel|>", "<|end|>"], True, "analysisIs it END?assistantfinalIt is 5 or 6 END here"),
        (["<|message|>", "<|end|>"], True, "analysisIs it END?assistantfinalIt is 5 or 6 END here"),
        (["<|end|>", "<|start|>"], True, "analysisIs it "),
    ],
)
def test_skipped_special_token_markers_count(
    checkpoint: Any, reciter: Any, markers: list[str], skip: bool, expected: str
) -> None:
    # In the script, "<|channel|>" and "<|message|>" occur twice. The second time, they have other ids but the same
    # text, so they must open a region as well.
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
    # Like the tokenizers of many models, this one begins every text with a special token.
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
    assert checked(stop=["END"], extra_args=start).extra_args == start
    install()
    assert text(tokenizer, reciter, "think", stop=["END"]) == ("<think>Is it ", "END")
