"""``LLM.generate``, offline: vLLM's results, with stopscan off and on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

import cloudpickle
from reported_loops import REPORTS
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm_streams import STREAMS

from stopscan.vllm import install
from stopscan_conformance import Reciter
from stopscan_conformance.scripts import default_scripts

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def reciter() -> Reciter:
    return Reciter(default_scripts() | {name: report.script for name, report in REPORTS.items()})


@pytest.fixture(scope="module")
def checkpoint(reciter: Reciter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reciter.write(tmp_path_factory.mktemp("reciter"))


@pytest.fixture(scope="module")
def llm(checkpoint: Path) -> Iterator[LLM]:
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # lets the test send `of_ours` to the engine core
    llm = LLM(str(checkpoint), gpu_memory_utilization=0.1, enforce_eager=True, dtype="float32", max_model_len=512)
    yield llm
    llm.llm_engine.engine_core.shutdown()


def answers(llm: LLM, prompt: str, **params: Any) -> list[Any]:
    params = {"temperature": 0, "max_tokens": 40, **params}
    return llm.generate([prompt], SamplingParams(**params), use_tqdm=False)[0].outputs


@pytest.mark.parametrize("row", STREAMS, ids=lambda row: row["name"])
def test_text_and_reasons(llm: LLM, reciter: Any, row: dict[str, Any], stopscan: str) -> None:
    (answer,) = answers(llm, reciter.prompt(row["script"]), **row["params"])
    result = {name: getattr(answer, name) for name in ("text", "finish_reason", "stop_reason")}
    result["tokens"] = len(answer.token_ids)
    assert result == {name: row[stopscan][name] for name in result}


def test_token_ids_and_logprobs_end_with_the_stop(llm: LLM, reciter: Any, stopscan: str) -> None:
    (answer,) = answers(llm, reciter.prompt("split"), stop=["END"], logprobs=1)
    ids = reciter.token_ids("split")[:6]
    assert list(answer.token_ids) == ids
    assert [token for token, position in zip(ids, answer.logprobs, strict=True) if token in position] == ids


@pytest.mark.parametrize(
    ("include", "text"), [(False, "1, 2, 3 hello world 4, 5, "), (True, "1, 2, 3 hello world 4, 5, 6")]
)
def test_a_stop_token_id(llm: LLM, reciter: Any, stopscan: str, include: bool, text: str) -> None:
    stop = reciter.token_id("count", "6")
    options = {"stop": ["nine"], "stop_token_ids": [stop], "include_stop_str_in_output": include}
    (answer,) = answers(llm, reciter.prompt("count"), **options)
    assert (answer.text, answer.finish_reason, answer.stop_reason) == (text, "stop", stop)


def test_many_requests_at_once_with_two_answers_each(llm: LLM, reciter: Any, stopscan: str) -> None:
    scripts = {"late": "The quick brown fox", "count": "1, 2", "split": "This is the "}
    params = [
        SamplingParams(n=2, temperature=1, max_tokens=40, stop=stop)
        for stop in ([" jumps"], [", 3"], ["nothing", "END"])
    ]
    outputs = llm.generate([reciter.prompt(script) for script in scripts], params, use_tqdm=False)
    assert [[answer.text for answer in output.outputs] for output in outputs] == [
        [text] * 2 for text in scripts.values()
    ]


def test_the_loops_of_reports(llm: LLM, reciter: Any) -> None:
    install()
    repeats = [report.repeat for report in REPORTS.values()]
    numbers = [[repeat.count, repeat.max_period, repeat.min_length] for repeat in repeats]
    params = [
        SamplingParams(temperature=0, max_tokens=500, extra_args={"stopscan_repeat": repeat}) for repeat in numbers
    ]
    outputs = llm.generate([reciter.prompt(name) for name in REPORTS], params, use_tqdm=False)
    for output, report in zip(outputs, REPORTS.values(), strict=True):
        (answer,) = output.outputs
        assert (answer.text, len(answer.token_ids)) == (report.streamed, report.tokens)
        assert (answer.finish_reason, answer.stop_reason) == ("repetition", "repetition_detected")


def test_malformed_option_is_refused_and_engine_continues(llm: LLM, reciter: Any) -> None:
    install()
    with pytest.raises(
        VLLMValidationError, match="stopscan_protect must be a list of names of regions or pairs of markers, not 5"
    ):
        answers(llm, reciter.prompt("split"), stop=["END"], extra_args={"stopscan_protect": 5})
    assert not llm.llm_engine.has_unfinished_requests()
    assert answers(llm, reciter.prompt("split"), stop=["END"])[0].text == "This is the "


def of_ours(worker: Any) -> tuple[int, list[str], list[str]]:
    """The id of this process, the stopscan modules in it, and the functions of vLLM that stopscan has wrapped in it."""
    import os
    import sys

    modules = [name for name in sys.modules if name.partition(".")[0] == "stopscan"]
    wrapped = [
        f"{owner.__name__}.{name}"
        for module in [module for name, module in sys.modules.items() if name.startswith("vllm.v1.engine") and module]
        for owner in list(vars(module).values())
        if isinstance(owner, type)
        for name, found in list(vars(owner).items())
        if "stopscan" in getattr(getattr(found, "__func__", found), "__globals__", {}).get("__name__", "")
    ]
    return os.getpid(), modules, wrapped


def test_nothing_of_ours_is_in_the_engine_core(llm: LLM) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    install()
    ((process, modules, wrapped),) = llm.collective_rpc(of_ours)
    assert process != os.getpid()
    assert wrapped == []
    assert [name for name in modules if name.startswith(("stopscan.vllm", "stopscan.engines"))] == ["stopscan.vllm"]
    assert of_ours(None)[2] != []
