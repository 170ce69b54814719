"""What a token costs from its id to safe text, beside the bare decoder and vLLM's way: `pytest benches/test_tokens.py`.

`python benches/test_tokens.py` prints the same cases as one table, run in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import rivals
from cases import Case, exhaust, feed_each, own
from measure import interleaved
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream
from workload import REALISTIC, cjk, code, numbered, prose, scattered, tokenizer

from stopscan.tokens import TokenScanner

TOKENS = 1024  # of one stream: short enough to be timed between two switches of a busy machine


def decoded(token_ids: list[int]) -> Iterator[str]:
    step = DecodeStream(skip_special_tokens=True).step
    for token_id in token_ids:
        yield step(tokenizer(), token_id) or ""


def decode_each(subject: tuple[DecodeStream, Tokenizer, list[int]]) -> None:
    decoder, vocabulary, token_ids = subject
    for token_id in token_ids:
        decoder.step(vocabulary, token_id)


def decoding() -> Case:
    def check(token_ids: list[int]) -> None:
        assert "".join(decoded(token_ids)) == tokenizer().decode(token_ids)

    def prepare(token_ids: list[int]) -> tuple[DecodeStream, Tokenizer, list[int]]:
        return DecodeStream(skip_special_tokens=True), tokenizer(), token_ids

    return Case("DecodeStream.step", prepare, own(decode_each), check)


def feeding(name: str, stop: list[str]) -> Case:
    """A scanner as servers make one: with an EOS and a limit."""

    def scanner() -> TokenScanner:
        return TokenScanner(tokenizer(), stop, eos_token_ids=[0], max_tokens=10 * TOKENS)

    def check(token_ids: list[int]) -> None:
        checked = scanner()
        text = "".join(map(checked.feed, token_ids)) + checked.close()
        assert text == tokenizer().decode(token_ids)
        assert checked.tokens_kept == len(token_ids)

    return Case(f"TokenScanner.feed, {name}", lambda ids: (scanner(), ids), own(feed_each), check)


def vllm(name: str, stop: list[str]) -> Case:
    """The decoder, `check_stop_strings` and the slice; without the calls between vLLM's classes."""

    def check(token_ids: list[int]) -> None:
        assert "".join(rivals.vllm(decoded(token_ids), stop)) == tokenizer().decode(token_ids)

    return Case(f"vLLM's way, {name}", lambda ids: rivals.vllm(decoded(ids), stop), own(exhaust), check)


STOPS = {"realistic stops": REALISTIC, "1 stop": numbered(1), "4 stops": numbered(4), "64 stops": numbered(64)}
HOLDING = {"64 stops that begin with letters": scattered(64)}
WAYS: list[Callable[[str, list[str]], Case]] = [feeding, vllm]
CASES = [decoding(), *(way(name, stop) for name, stop in {**STOPS, **HOLDING}.items() for way in WAYS)]


@cache
def windows(language: str) -> list[list[int]]:
    """Token ids of English prose and code, or of Chinese and Japanese, where some tokens are half characters."""
    ids = tokenizer().encode(cjk() if language == "cjk" else prose()[:200_000] + code()[:200_000]).ids
    return [ids[start : start + TOKENS] for start in range(0, len(ids) - TOKENS, TOKENS)]


@pytest.mark.parametrize("language", ["english", "cjk"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_token(benchmark: Any, case: Case, language: str) -> None:
    benchmark.group = f"{TOKENS} tokens, {language}"
    token_ids = windows(language)[0]
    case.check(token_ids)
    benchmark.pedantic(case.run, setup=lambda: ((case.prepare(token_ids),), {}), rounds=50, warmup_rounds=1)


def main() -> None:
    for language in ("english", "cjk"):
        inputs = windows(language)[:16]
        timings = interleaved(CASES, inputs, passes=7)
        bare = timings["DecodeStream.step"].fastest
        print(f"\n| {language} | ns per token | less the decoder |\n|---|---|---|")
        for name, timing in timings.items():
            tokens = len(inputs) * TOKENS
            print(f"| {name} | {timing.fastest / tokens:.0f} | {(timing.fastest - bare) / tokens:.0f} |")


if __name__ == "__main__":
    main()
