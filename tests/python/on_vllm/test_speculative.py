"""Speculative decoding in the real engine: one step brings several tokens, with stopscan off and on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm import LLM, SamplingParams
from vllm.v1.engine.output_processor import OutputProcessor

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def llm(checkpoint: Path) -> Iterator[LLM]:
    guesses = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 1, "prompt_lookup_max": 2}
    options = {"gpu_memory_utilization": 0.1, "enforce_eager": True, "dtype": "float32", "max_model_len": 512}
    llm = LLM(str(checkpoint), speculative_config=guesses, **options)
    yield llm
    llm.llm_engine.engine_core.shutdown()


@pytest.mark.parametrize(
    ("params", "text", "stop_reason", "tokens"),
    [
        ({"stop": ["END"]}, "This is the ", "END", 6),
        ({"stop": ["END"], "include_stop_str_in_output": True}, "This is the END", "END", 6),
        ({"stop": ["it", "of", " is"]}, "This", " is", 2),
        ({"stop": ["is", " of"], "min_tokens": 2}, "This is the END", " of", 7),
        ({"stop": ["TOO LATE"]}, "This is the END of it", None, 9),
    ],
)
def test_a_stop_within_a_step(
    llm: LLM,
    reciter: Any,
    stopscan: str,
    params: dict[str, Any],
    text: str,
    stop_reason: str | None,
    tokens: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = []
    process = OutputProcessor.process_outputs

    def noting(self: Any, outputs: list[Any], *args: Any, **options: Any) -> Any:
        steps.extend(len(output.new_token_ids) for output in outputs)
        return process(self, outputs, *args, **options)

    monkeypatch.setattr(OutputProcessor, "process_outputs", noting)
    start = llm.get_tokenizer().convert_tokens_to_ids(reciter.prompt("split"))
    # The prompt contains the whole answer, because vLLM takes its speculative tokens (n-grams) from the prompt.
    prompt = {"prompt_token_ids": [start, *reciter.token_ids("split"), start]}
    output = llm.generate([prompt], SamplingParams(temperature=0, logprobs=0, **params), use_tqdm=False)[0]
    (answer,) = output.outputs
    assert max(steps) > 2
    assert (answer.text, answer.stop_reason, len(answer.token_ids)) == (text, stop_reason, tokens)
    assert [token for position in answer.logprobs for token in position] == list(answer.token_ids)
