"""vLLM with its own stops and with stopscan's: `OutputProcessor.process_outputs` as a whole, for each token.

"$(ci/vllm-env)/bin/python" benches/vllm_detokenizer.py
"""

from __future__ import annotations

import platform
import tempfile
from datetime import date
from itertools import cycle, islice
from time import thread_time_ns
from typing import Any

import vllm
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector

from stopscan.vllm import install, uninstall
from stopscan_conformance.reciter import Reciter

WORDS = [
    f" {word}"
    for word in [
        "the",
        "cat",
        "sat",
        "on",
        "a",
        "mat",
        "and",
        "read",
        "some",
        "code",
        "until",
        "late",
        "at",
        "night",
        "in",
        "its",
        "own",
        "room",
    ]
]
# Processor time, because other processes may run: the best of so many rounds of each.
ROUNDS = 15


def stops(count: int) -> list[str]:
    """Stops that begin as the text does now and then, and never come."""
    return ["<|end_of_document|>", " night owl", "\n\nUser:", " mat!", *(f" room {number}" for number in range(60))][
        :count
    ]


def stream(tokenizer: Any, tokens: list[int], stop: list[str], requests: int = 8) -> tuple[float, str]:
    """The processor time of one token, in nanoseconds, with some requests at once; and the text of the first."""
    processor = OutputProcessor(tokenizer, log_stats=False)
    queues = {}
    for name in map(str, range(requests)):
        params = SamplingParams(stop=stop, output_kind=RequestOutputKind.DELTA)
        queues[name] = RequestOutputCollector(params.output_kind, name)
        request = EngineCoreRequest(
            request_id=name, external_req_id=name, prompt_token_ids=[], mm_features=None, sampling_params=params,
            pooling_params=None, arrival_time=0.0, lora_request=None, cache_salt=None, data_parallel_rank=None,
        )  # fmt: skip
        processor.add_request(request, None, queue=queues[name])
    steps = [[EngineCoreOutput(request_id=name, new_token_ids=[token]) for name in queues] for token in tokens]
    pieces, took = [], 0
    for step in steps:
        start = thread_time_ns()
        processor.process_outputs(step)
        took += thread_time_ns() - start
        pieces += [queue.get_nowait().outputs[0].text for queue in queues.values()][:1]
    return took / len(tokens) / requests, "".join(pieces)


def main() -> None:
    reciter = Reciter({"words": WORDS})
    with tempfile.TemporaryDirectory() as directory:
        tokenizer = get_tokenizer(str(reciter.write(directory)))
    print(f"{date.today()}, {platform.machine()}, CPython {platform.python_version()}, vLLM {vllm.__version__}\n")
    print("| stops | vLLM, ns a token | with stopscan, ns a token | ratio |\n| ---: | ---: | ---: | ---: |")
    tokens = list(islice(cycle(reciter.token_ids("words")), 1000))
    text = "".join(islice(cycle(WORDS), len(tokens)))
    for number in (0, 1, 4, 64):
        best: dict[bool, float] = {}
        for ours in [False, True] * ROUNDS:  # by turns, so that other processes disturb both
            if ours:
                install()
            took, streamed = stream(tokenizer, tokens, stops(number))
            uninstall()
            assert text.startswith(streamed)
            best[ours] = min(took, best.get(ours, took))
        print(f"| {number} | {best[False]:,.0f} | {best[True]:,.0f} | {best[True] / best[False]:.2f} |")


if __name__ == "__main__":
    main()
