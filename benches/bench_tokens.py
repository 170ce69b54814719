"""Times a scan of token ids, decoding without a scan, and vLLM's way to find stops.

Also measures how long it takes to read a vocabulary, and how much memory the vocabulary takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import process_time
from typing import Any

import pytest
import rivals
from conftest import Case, Ran, feeding, reading
from memory import SCANNERS, measured
from tokenizers.decoders import DecodeStream
from workload import IN_A_ROW, REALISTIC, ids, numbered, tokenizer, vocabularies

from stopscan import StopSet
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

WINDOW = 4_000  # token ids in one timed run; the runs follow each other through one text of 40,000 ids
COUNTS = [1, 4, 16, 64, 256, 1000]
ROLES = ["\n\nHuman:", "### Instruction", "<|im_end|>", "</s>"]
THINKING = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
VOCABULARY = Vocabulary(tokenizer())


def scanner(stop: Sequence[str]) -> Case:
    """Returns a case that feeds a scanner. As on a server, the scanner has an EOS and a token limit."""
    stops = StopSet(stop)

    def make() -> TokenScanner:
        return TokenScanner(VOCABULARY, stops, eos_token_ids=[0], max_tokens=2 * IN_A_ROW)

    def check(token_ids: list[int]) -> None:
        checked = make()
        assert "".join(map(checked.feed, token_ids)) + checked.flush() == tokenizer().decode(token_ids)

    return feeding(make)._replace(check=check)


def segmenter(stop: Sequence[str]) -> Case:
    segments = SegmentSet(THINKING, stop=stop)
    return feeding(lambda: TokenSegmenter(VOCABULARY, segments, eos_token_ids=[0], max_tokens=2 * IN_A_ROW))


def decode_each(step: Any, vocabulary: Any, token_ids: Sequence[int]) -> None:
    for token_id in token_ids:
        step(vocabulary, token_id)


def decoded(token_ids: Sequence[int]) -> Iterator[str]:
    step = DecodeStream(skip_special_tokens=True).step
    for token_id in token_ids:
        yield step(tokenizer(), token_id) or ""


NEVER = {f"`feed`, {count:,} stops": scanner(numbered(count)) for count in (0, *COUNTS)}
PER_TOKEN = {
    **NEVER,
    "`feed`, 4 realistic stops": scanner(ROLES),
    "`feed`, 4 stops that begin often": scanner(REALISTIC),
    "`TokenSegmenter.feed`, 4 stops": segmenter(numbered(4)),
    "`DecodeStream.step`": Case(
        decode_each, lambda token_ids: (DecodeStream(skip_special_tokens=True).step, tokenizer(), token_ids)
    ),
}


def windows(language: str) -> list[list[int]]:
    return [ids(language)[start : start + WINDOW] for start in range(0, IN_A_ROW, WINDOW)]


@pytest.mark.parametrize("language", ["english", "cjk"])
@pytest.mark.parametrize("name", PER_TOKEN)
def test_per_token(bench: Any, language: str, name: str) -> None:
    bench(language, name, PER_TOKEN[name], windows(language))


def test_limits_per_token(ran: Ran, limit: Any) -> None:
    never = max(ran.of("english", name).times_empty for name in NEVER)
    limit("`TokenScanner.feed`, 0 to 1,000 stops that never begin / an empty Python method", never, most=1.4)
    realistic = ran.of("english", "`feed`, 4 realistic stops").times_empty
    limit("`TokenScanner.feed`, 4 realistic stops / an empty Python method", realistic, most=1.8)


@pytest.mark.parametrize("count", COUNTS)
def test_vllm(bench: Any, count: int) -> None:
    """Does what vLLM does for each token: decodes it, searches the text as `check_stop_strings` does, and slices the
    text. Leaves out the calls between vLLM's classes."""
    case = reading(lambda token_ids: rivals.vllm(decoded(token_ids), numbered(count)), check=False)
    bench("DecodeStream and vLLM's way", f"{count:,} stops", case, [ids("english")[:2_000]], passes=3)


@pytest.mark.parametrize("name", vocabularies())
def test_vocabulary(benchmark: Any, limit: Any, name: str) -> None:
    sources = vocabularies()

    def make() -> tuple[tuple[Any], dict[str, Any]]:
        return (sources[name](),), {}

    start = process_time()
    source = sources[name]()
    start = process_time()
    vocabulary = Vocabulary(source)
    seconds = process_time() - start
    assert vocabulary.native
    scale = 150_000 / len(size_of(source))
    benchmark.group = "vocabularies"
    benchmark.pedantic(Vocabulary, setup=make, rounds=2)
    limit(f"`Vocabulary` of {name}, for 150,000 ids", seconds * scale, most=0.3, unit=" s")
    kept = measured("vocabulary", name)[1]
    limit(f"`Vocabulary` of {name}, kept for 150,000 ids", kept * scale / 1e6, most=24, unit=" MB")
    benchmark.extra_info.update(
        case=name, columns={"ids": len(size_of(source)), "s": seconds, "MB": kept / 1e6}, with_loop=seconds * 1e9
    )


def test_limit_of_a_token_scanner(limit: Any) -> None:
    limit("one token scanner", measured("token_scanners")[1] / SCANNERS, most=512, unit=" bytes")


def size_of(source: Any) -> range:
    """Returns the range of the ids of a tokenizer of any library."""
    for name in ("get_vocab_size", "n_vocab", "n_words"):
        size = getattr(source, name, None)
        if size is not None:
            return range(size() if callable(size) else size)
    raise TypeError(type(source))
