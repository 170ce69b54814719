"""Times vLLM's work per token, with its own stops and with stopscan's: `process_outputs` as a whole, and the
detokenizer alone.

"$(ci/vllm-env)/bin/python" benches/vllm_detokenizer.py
"""

from __future__ import annotations

import platform
import tempfile
from datetime import date
from itertools import cycle, islice, product
from time import thread_time_ns
from typing import Any

import vllm
from report import options
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector

from stopscan.vllm import install, uninstall
from stopscan_conformance.reciter import Reciter

WORDS = [" the", " cat", " sat", " on", " a", " mat", " and", " read", " some", " code", " late", " night", " room"]
# Each time is the fastest of this many rounds. Only the time of this thread is measured, because other processes may
# run.
ROUNDS = 15


def stops(count: int) -> list[str]:
    """Returns stops whose beginnings occur in the text now and then, but which never fire."""
    return ["<|end_of_document|>", " night owl", "\n\nUser:", " mat!", *(f" room {number}" for number in range(60))][
        :count
    ]


def added(tokenizer: Any, stop: list[str], requests: int) -> tuple[OutputProcessor, dict[str, Any]]:
    """Returns vLLM's output processor with some requests, and the queues of the requests."""
    processor, queues = OutputProcessor(tokenizer, log_stats=False), {}
    for name in map(str, range(requests)):
        params = SamplingParams(stop=stop, output_kind=RequestOutputKind.DELTA)
        queues[name] = RequestOutputCollector(params.output_kind, name)
        request = EngineCoreRequest(
            request_id=name, external_req_id=name, prompt_token_ids=[], mm_features=None, sampling_params=params,
            pooling_params=None, arrival_time=0.0, lora_request=None, cache_salt=None, data_parallel_rank=None,
        )  # fmt: skip
        processor.add_request(request, None, queue=queues[name])
    return processor, queues


def whole(tokenizer: Any, tokens: list[int], stop: list[str]) -> tuple[float, str]:
    """Runs 8 requests. Returns the processor time of `process_outputs` in ns per token, and the text of one request."""
    processor, queues = added(tokenizer, stop, 8)
    steps = [[EngineCoreOutput(request_id=name, new_token_ids=[token]) for name in queues] for token in tokens]
    pieces, took = [], 0
    for step in steps:
        start = thread_time_ns()
        processor.process_outputs(step)
        took += thread_time_ns() - start
        pieces += [queue.get_nowait().outputs[0].text for queue in queues.values()][:1]
    return took / len(tokens) / len(queues), "".join(pieces)


def alone(tokenizer: Any, tokens: list[int], stop: list[str]) -> tuple[float, str]:
    """As `whole`, but times only the detokenizer (`update`, `get_next_output_text`), with one request."""
    processor, _ = added(tokenizer, stop, 1)
    detokenizer, pieces = processor.request_states["0"].detokenizer, []
    start = thread_time_ns()
    for token in tokens:
        detokenizer.update([token], False)
        pieces.append(detokenizer.get_next_output_text(False, True))
    return (thread_time_ns() - start) / len(tokens), "".join(pieces)


def main() -> None:
    options(__doc__).parse_args()
    reciter = Reciter({"words": WORDS})
    with tempfile.TemporaryDirectory() as directory:
        tokenizer = get_tokenizer(str(reciter.write(directory)))
    print(f"{date.today()}, {platform.machine()}, CPython {platform.python_version()}, vLLM {vllm.__version__}\n")
    tokens = list(islice(cycle(reciter.token_ids("words")), 1000))
    text = "".join(islice(cycle(WORDS), len(tokens)))
    print("| measured | stops | vLLM, ns | with stopscan, ns | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for measured, number in product((whole, alone), (0, 1, 4, 64)):
        best: dict[bool, float] = {}
        for ours in [False, True] * ROUNDS:  # vLLM and stopscan run in turn: other processes disturb both alike
            if ours:
                install()
            took, streamed = measured(tokenizer, tokens, stops(number))
            uninstall()
            assert text.startswith(streamed)
            best[ours] = min(took, best.get(ours, took))
        theirs, mine = best[False], best[True]
        print(f"| {measured.__name__} | {number} | {theirs:,.0f} | {mine:,.0f} | {mine / theirs:.2f} |")


if __name__ == "__main__":
    main()
