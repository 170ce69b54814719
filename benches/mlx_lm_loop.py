"""Time for a token of mlx-lm's loop: without stops, with its server's stop handling around it, and with stopscan's.

"$(ci/mlx-env)/bin/python" benches/mlx_lm_loop.py
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from itertools import cycle, islice
from time import perf_counter_ns, thread_time_ns
from typing import Any

import mlx.core as mx
import mlx_lm
from mlx_lm.generate import TextStateMachine, make_stop_sequences, make_text_state_machine, stream_generate

import stopscan.mlx_lm
from stopscan_conformance.reciter import Reciter

WORDS = [
    " the",
    " cat",
    " sat",
    " on",
    " a",
    " mat",
    " and",
    " read",
    " some",
    " code",
    " until",
    " late",
    " night",
    ".",
]
TOKENS = 50
# The loops take turns, and the best round of each counts: other processes may run.
ROUNDS = 150


def stops(count: int) -> list[str]:
    """Stops that begin as the text does now and then, and never come."""
    return [" night owl", "<|end_of_document|>", "\n\nUser:", " mat!", *(f" code {number}" for number in range(60))][
        :count
    ]


def without_stops(model: Any, tokenizer: Any, prompt: str, _: list[str]) -> Iterator[str]:
    for response in stream_generate(model, tokenizer, prompt, max_tokens=-1):
        yield response.text


@cache  # as the server does
def automata(tokenizer: Any, stop: tuple[str, ...]) -> tuple[Any, Any]:
    return make_stop_sequences(tokenizer, stop), make_text_state_machine(tokenizer, stop)


def as_its_server(model: Any, tokenizer: Any, prompt: str, stop: list[str]) -> Iterator[str]:
    """The two automata that mlx_lm.server 0.32 runs over a generation: of the token ids, and of the text."""
    stop_sequences, text_machine = automata(tokenizer, tuple(stop))
    matcher, state = stop_sequences.matcher(), text_machine.make_state()
    for response in stream_generate(model, tokenizer, prompt, max_tokens=-1):
        ended = matcher.advance(response.token)
        state, text, _ = TextStateMachine.step(state, response.text)
        yield text
        if ended:
            return


def with_stopscan(model: Any, tokenizer: Any, prompt: str, stop: list[str]) -> Iterator[str]:
    for response in stopscan.mlx_lm.stream_generate(model, tokenizer, prompt, stop=stop, max_tokens=-1):
        yield response.text


def microseconds(
    loop: Callable[..., Iterator[str]], model: Any, tokenizer: Any, prompt: str, stop: list[str]
) -> tuple[float, float]:
    """The time that passes for a token, and the processor time of the loop's own thread, in which no model runs."""
    begun, thread_begun = perf_counter_ns(), thread_time_ns()
    text = "".join(loop(model, tokenizer, prompt, stop))
    passed, thread_passed = perf_counter_ns() - begun, thread_time_ns() - thread_begun
    assert len(text.split()) > TOKENS * 0.9
    return passed / TOKENS / 1000, thread_passed / TOKENS / 1000


def main() -> None:
    reciter = Reciter({"words": list(islice(cycle(WORDS), TOKENS))})
    with tempfile.TemporaryDirectory() as directory:
        model, tokenizer = mlx_lm.load(str(reciter.write(directory)))
    prompt = reciter.prompt("words")
    asked = [(loop, count) for count in (1, 4, 64) for loop in (as_its_server, with_stopscan)]
    columns = [(without_stops, 0), (with_stopscan, 0), *asked]
    rounds = [
        [microseconds(loop, model, tokenizer, prompt, stops(count)) for loop, count in columns] for _ in range(ROUNDS)
    ]
    best = [[min(times) for times in zip(*column, strict=True)] for column in zip(*rounds, strict=True)]
    versions = f"mlx {mx.__version__}, mlx-lm {mlx_lm.__version__}"
    print(f"{date.today()}, {platform.machine()}, CPython {platform.python_version()}, {versions}\n")
    print("| loop | stops | a token, us | of it in the loop's thread, us | more than without stops, us |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for (loop, count), (passed, thread) in zip(columns, best, strict=True):
        more = thread - best[0][1]
        print(f"| {loop.__name__.replace('_', ' ')} | {count} | {passed:.0f} | {thread:.1f} | {more:.1f} |")


if __name__ == "__main__":
    main()
