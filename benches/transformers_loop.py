"""Times how long the stops take in one step of a generation, for each row of the batch. Compares `Stops` with the
criteria and streamers of transformers and lm-evaluation-harness.

    "$(ci/transformers-env)/bin/python" benches/transformers_loop.py

Needs `pip install --no-deps litellm` in that environment, for a real vocabulary.
"""

from __future__ import annotations

import importlib.util
import logging
import platform
from collections.abc import Callable
from datetime import date
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch
import transformers
from lm_eval.models.utils_hf import stop_sequences_criteria
from report import options
from transformers import PreTrainedTokenizerFast, StoppingCriteriaList, StopStringCriteria, TextIteratorStreamer

from stopscan.transformers import Stops

TEXT = (Path(__file__).parents[1] / "docs" / "rules.md").read_text()
STOPS = ["\n\nHuman:", "</answer>", "<|end_of_document|>", "Question:"]
STEPS = 200
ROUNDS = 7


def vocabulary() -> Any:
    package = Path(importlib.util.find_spec("litellm").origin).parent
    file = package / "litellm_core_utils" / "tokenizers" / "anthropic_tokenizer.json"
    return PreTrainedTokenizerFast(tokenizer_file=str(file), eos_token="<EOT>", pad_token="<EOT>")


class Empty:
    def step(self, ids: Any) -> None:
        pass


def empty_method(tokenizer: Any, prompt: Any) -> Callable[[Any], Any]:
    return Empty().step


def stopscan(tokenizer: Any, prompt: Any) -> Callable[[Any], Any]:
    stops = Stops(tokenizer, STOPS)
    stops.put(prompt)
    return stops


def stop_string_criteria(tokenizer: Any, prompt: Any) -> Callable[[Any], Any]:
    criterion = StopStringCriteria(tokenizer, STOPS)
    return lambda ids: criterion(ids, None)


def multi_token_eos_criteria(tokenizer: Any, prompt: Any) -> Callable[[Any], Any]:
    criteria = StoppingCriteriaList(stop_sequences_criteria(tokenizer, STOPS, prompt.shape[1], len(prompt)))
    return lambda ids: [criterion(ids, None) for criterion in criteria]


def text_iterator_streamer(tokenizer: Any, prompt: Any) -> Callable[[Any], Any]:
    streamer = TextIteratorStreamer(tokenizer, skip_prompt=True)
    streamer.put(prompt)
    return lambda ids: streamer.put(ids[:, -1])


WAYS = [empty_method, stopscan, stop_string_criteria, multi_token_eos_criteria, text_iterator_streamer]


def microseconds(make: Callable[..., Any], tokenizer: Any, sequences: list[Any]) -> float:
    """Returns the microseconds for a step of all rows, on average over a generation in which no stop fires."""
    step = make(tokenizer, sequences[0])
    begun = perf_counter_ns()
    for ids in sequences[1:]:
        step(ids)
    return (perf_counter_ns() - begun) / STEPS / 1000


def building(make: Callable[..., Any], tokenizer: Any, prompt: Any) -> float:
    transformers.generation.stopping_criteria.STOP_STRING_EMBEDDING_CACHE.clear()
    begun = perf_counter_ns()
    make(tokenizer, prompt)
    return (perf_counter_ns() - begun) / 1e6


def main() -> None:
    options(__doc__).parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
    tokenizer = vocabulary()
    ids = tokenizer(TEXT * 20).input_ids
    begun = perf_counter_ns()
    Stops(tokenizer, STOPS)
    first = (perf_counter_ns() - begun) / 1e6
    sequences = {}
    for rows in (1, 8, 64):
        whole = torch.tensor([ids[17 * row : 17 * row + 50 + STEPS] for row in range(rows)])
        sequences[rows] = [whole[:, : 50 + step].contiguous() for step in range(STEPS + 1)]
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{date.today()}, {platform.machine()}, CPython {platform.python_version()}, {versions}, {len(STOPS)} stops,")
    print(f"{len(tokenizer)} tokens; the first Stops of the process, with the vocabulary: {first:.0f} ms\n")
    print("| | a row and step, us: batch 1 | 8 | 64 | to build, ms |\n| --- | ---: | ---: | ---: | ---: |")
    for make in WAYS:
        # A TextIteratorStreamer takes only one row.
        batches = [1] if make is text_iterator_streamer else [1, 8, 64]
        best = [min(microseconds(make, tokenizer, sequences[n]) for _ in range(ROUNDS)) / n for n in batches]
        built = min(building(make, tokenizer, sequences[1][0]) for _ in range(3))
        cells = [f"{time:.2f}" for time in best] + [""] * (3 - len(best)) + [f"{built:.2f}"]
        print(f"| {make.__name__.replace('_', ' ')} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
