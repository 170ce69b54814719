"""stopscan's options in a vLLM request: malformed ones are refused, and patterns can be stops."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams
from vllm_harness import ANSWER, THINK, checked, run, text

from stopscan.vllm import install

pytestmark = pytest.mark.vllm


@pytest.mark.parametrize(
    ("stop", "extra_args", "message"),
    [
        (["END"], {"stopscan_protect": "<think>"}, "stopscan_protect .*'<think>' is not a region"),
        (["END"], {"stopscan_protect": ["<think>"]}, "stopscan_protect .*'<think>' is not a region"),
        (["END"], {"stopscan_protect": ["<think>", 1]}, "stopscan_protect .*1"),
        (["END"], {"stopscan_protect": ["<think>", ""]}, "stopscan_protect .*'' is not a marker"),
        (
            ["END"],
            {"stopscan_protect": [["<think>"]]},
            "stopscan_protect .* is not a pair of an opening and a closing marker",
        ),
        (
            ["END"],
            {"stopscan_protect": 5},
            "stopscan_protect must be a list of names of regions or pairs of markers, not 5",
        ),
        (
            ["END"],
            {"stopscan_protect": THINK, "stopscan_start_protected": 2},
            "stopscan_start_protected must be true or false",
        ),
        (["END"], {"stopscan_start_protected": "yes"}, "stopscan_start_protected must be true or false, not 'yes'"),
        (["END"], {"stopscan_protected": THINK}, "stopscan_protected is not an option"),
        (["END"], {"stopscan_start_protected": 1}, "stopscan_start_protected needs a region"),
        (["\ud800"], {}, "stop .* surrogates"),
        ([], {"stopscan_protect": ["<think>"]}, "stopscan_protect .*'<think>' is not a region"),
        ([], {"stopscan_patterns": 5}, "stopscan_patterns must be a string or a list of strings, not 5"),
        ([], {"stopscan_patterns": ["a", 5]}, "stopscan_patterns must be a string"),
        ([], {"stopscan_patterns": ["a("]}, "stopscan_patterns is malformed: .*a\\("),
        ([], {"stopscan_patterns": "a*"}, "stopscan_patterns is malformed: .*empty"),
        ([], {"stopscan_patterns": "a.*b"}, "stopscan_patterns is malformed: .*a\\.\\*b"),
    ],
)
def test_malformed_options_are_refused_at_each_door(
    tokenizer: Any, stop: list[str], extra_args: dict[str, Any], message: str
) -> None:
    params = SamplingParams(stop=stop, extra_args=extra_args)
    install()
    with pytest.raises(VLLMValidationError, match=message):
        checked(stop=stop, extra_args=extra_args)
    with pytest.raises(VLLMValidationError, match=message) as refusal:
        run(tokenizer, [[1]], params)
    # In its answer to an HTTP client, vLLM names the wrong option in the field "param". vLLM takes the name from the
    # error's attribute `parameter`.
    assert message.startswith(refusal.value.parameter)


def test_patterns_need_text() -> None:
    install()
    patterns = {"extra_args": {"stopscan_patterns": "a"}}
    with pytest.raises(VLLMValidationError, match="stopscan_patterns needs detokenize"):
        checked(detokenize=False, **patterns)
    assert checked(**patterns).extra_args == patterns["extra_args"]
    assert not checked(detokenize=False).detokenize


@pytest.mark.parametrize("patterns", ["E[A-Z]D", ["never [0-9]", "E[A-Z]D"], ("never [0-9]", "E[A-Z]D")])
@pytest.mark.parametrize("stop", [[], ["too late"]])
def test_patterns(tokenizer: Any, reciter: Any, patterns: Any, stop: list[str]) -> None:
    install()
    params = {"stop": stop, "extra_args": {"stopscan_patterns": patterns}}
    assert text(tokenizer, reciter, "split", **params) == ("This is the ", "END")
    assert text(tokenizer, reciter, "split", include_stop_str_in_output=True, **params) == ("This is the END", "END")
    params["extra_args"]["stopscan_protect"] = THINK
    assert text(tokenizer, reciter, "think", **params) == (ANSWER, "END")
