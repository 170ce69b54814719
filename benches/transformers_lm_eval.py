"""Times samples of a task in lm-evaluation-harness, with its own model ``hf`` and with stopscan's ``hf-stopscan``.

    "$(ci/transformers-env)/bin/python" benches/transformers_lm_eval.py

Needs `pip install --no-deps litellm` in that environment, for a real vocabulary. The model is tiny, so that most of the
time is the cost of the stops.
"""

from __future__ import annotations

import logging
import os
import platform
from datetime import date
from time import perf_counter
from typing import Any

import lm_eval
import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from report import options
from transformers import LlamaConfig, LlamaForCausalLM
from transformers_loop import vocabulary

import stopscan.transformers.lm_eval  # noqa: F401

STOPS = ["Question:", "</s>", "<|im_end|>", "\n\nHuman:"]
SAMPLES = 64
TOKENS = 128
ROUNDS = 3


def tiny(tokenizer: Any) -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=512, eos_token_id=None, bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def milliseconds(lm: Any, stops: list[str]) -> float:
    """Returns the milliseconds for a sample of ``TOKENS`` tokens in which no stop fires."""
    generation = {"until": stops, "max_gen_toks": TOKENS, "do_sample": False}
    arguments = [(f"Question: how much is {number}?", dict(generation)) for number in range(SAMPLES)]
    requests = [Instance("generate_until", {}, each, number) for number, each in enumerate(arguments)]
    begun = perf_counter()
    lm.generate_until(requests, disable_tqdm=True)
    return (perf_counter() - begun) / SAMPLES * 1000


def main() -> None:
    options(__doc__).parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
    tokenizer = vocabulary()
    model = tiny(tokenizer)
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    print(f"{date.today()}, {platform.machine()}, CPython {platform.python_version()}, torch {torch.__version__},")
    print(f"transformers {transformers.__version__}, lm_eval {lm_eval.__version__}, load {load}; {len(STOPS)} stops,")
    print(f"{len(tokenizer)} tokens, {SAMPLES} samples of {TOKENS} tokens each, the best of {ROUNDS}\n")
    print("| ms a sample | batch 1 | 8 | 64 |\n| --- | ---: | ---: | ---: |")
    best: dict[str, list[float]] = {"hf": [], "hf-stopscan": [], "hf, no stop but the EOS": []}
    for batch in (1, 8, 64):
        ways = {
            way: get_model(way.split(",")[0])(pretrained=model, tokenizer=tokenizer, batch_size=batch) for way in best
        }
        rounds = [[milliseconds(lm, [] if "EOS" in way else STOPS) for way, lm in ways.items()] for _ in range(ROUNDS)]
        for way, times in zip(best, zip(*rounds, strict=True), strict=True):
            best[way].append(min(times))
    for way, times in best.items():
        print(f"| {way} | {' | '.join(f'{time:.1f}' for time in times)} |")


if __name__ == "__main__":
    main()
