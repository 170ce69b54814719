"""vLLM's detokenizer with its own stops and with stopscan's: `update` and `get_next_output_text` for each token.

"$(ci/vllm-env)/bin/python" benches/vllm_detokenizer.py
"""

from __future__ import annotations

import platform
import tempfile
from datetime import date
from itertools import cycle, islice
from time import thread_time_ns
from types import SimpleNamespace
from typing import Any

import vllm
from vllm import SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine.detokenizer import IncrementalDetokenizer

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
# Processor time, because other processes may run: the best of so many rounds.
ROUNDS = 20


def stops(count: int) -> list[str]:
    """Stops that begin as the text does now and then, and never come."""
    return ["<|end_of_document|>", " night owl", "\n\nUser:", " mat!", *(f" room {number}" for number in range(60))][
        :count
    ]


def stream(tokenizer: Any, tokens: list[int], stop: list[str]) -> tuple[int, str]:
    request = SimpleNamespace(request_id="", sampling_params=SamplingParams(stop=stop), prompt_token_ids=[])
    detokenizer = IncrementalDetokenizer.from_new_request(tokenizer, request)
    pieces = []
    start = thread_time_ns()
    for token in tokens:
        detokenizer.update([token], False)
        pieces.append(detokenizer.get_next_output_text(False, True))
    took = thread_time_ns() - start
    return took, "".join([*pieces, detokenizer.get_next_output_text(True, True)])


def nanoseconds(tokenizer: Any, tokens: list[int], stop: list[str], text: str) -> float:
    """The processor time for a token, in the best round."""
    best = None
    for _ in range(ROUNDS):
        took, streamed = stream(tokenizer, tokens, stop)
        assert streamed == text
        best = took if best is None else min(best, took)
    return best / len(tokens)


def main() -> None:
    reciter = Reciter({"words": WORDS})
    with tempfile.TemporaryDirectory() as directory:
        tokenizer = get_tokenizer(str(reciter.write(directory)))
    print(f"{date.today()}, {platform.machine()}, CPython {platform.python_version()}, vLLM {vllm.__version__}\n")
    print("| output | stops | vLLM, ns a token | stopscan, ns a token | ratio |\n| ---: | ---: | ---: | ---: | ---: |")
    for characters in (1_000, 60_000):
        text = "".join(islice(cycle(WORDS), characters * len(WORDS) // len("".join(WORDS))))
        count = characters * len(WORDS) // len("".join(WORDS))
        tokens = list(islice(cycle(reciter.token_ids("words")), count))
        for number in (0, 1, 4, 64):
            theirs = nanoseconds(tokenizer, tokens, stops(number), text)
            install()
            ours = nanoseconds(tokenizer, tokens, stops(number), text)
            uninstall()
            print(f"| {len(text):,} | {number} | {theirs:,.0f} | {ours:,.0f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
