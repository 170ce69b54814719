"""Times a scan of token ids, decoding alone, and vLLM's own stops. Measures how long it takes to read a vocabulary, and
how much memory the vocabulary takes.

It also draws docs/tokens.svg.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from time import process_time
from typing import Any

import rivals
from measure import EMPTY, Case, exhaust, feeding, net, own
from memory import measured
from report import Limits, Table, markdown
from tokenizers.decoders import DecodeStream
from workload import REALISTIC, cjk, code, numbered, prose, tokenizer, vocabularies

from stopscan import StopSet
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

IN_A_ROW = 40_000  # ids of one text: their strings do not fit in a core's cache
COUNTS = [1, 4, 16, 64, 256, 1000]
BARE = "`DecodeStream.step`"
ROLES = ["\n\nHuman:", "### Instruction", "<|im_end|>", "</s>"]
THINKING = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}


@cache
def ids(language: str) -> list[int]:
    """Token ids of English prose and code or, for "cjk", of Chinese and Japanese, where some tokens are parts of
    characters."""
    text = cjk() if language == "cjk" else prose()[:200_000] + code()[:200_000]
    found: list[int] = tokenizer().encode(text).ids[:IN_A_ROW]
    return found


def scanner(name: str, stop: Sequence[str]) -> Case:
    """Returns a case that feeds a scanner as servers make it: with an EOS and a limit of tokens."""
    stops, vocabulary = StopSet(stop), Vocabulary(tokenizer())

    def make() -> TokenScanner:
        return TokenScanner(vocabulary, stops, eos_token_ids=[0], max_tokens=2 * IN_A_ROW)

    def check(token_ids: list[int]) -> None:
        checked = make()
        assert "".join(map(checked.feed, token_ids)) + checked.flush() == tokenizer().decode(token_ids)

    case = feeding(name, make)
    return Case(name, case.prepare, case.run, check)


def segmenter(name: str, stop: Sequence[str]) -> Case:
    segments, vocabulary = SegmentSet(THINKING, stop=stop), Vocabulary(tokenizer())
    return feeding(name, lambda: TokenSegmenter(vocabulary, segments, eos_token_ids=[0], max_tokens=2 * IN_A_ROW))


def decoded(token_ids: Sequence[int]) -> Iterator[str]:
    step = DecodeStream(skip_special_tokens=True).step
    for token_id in token_ids:
        yield step(tokenizer(), token_id) or ""


def decode_each(subject: tuple[Any, Any, Sequence[int]]) -> None:
    step, vocabulary, token_ids = subject
    for token_id in token_ids:
        step(vocabulary, token_id)


def vllm(name: str, stop: list[str]) -> Case:
    """vLLM's way: decode, `check_stop_strings`, and slice the text. Leaves out the calls between vLLM's classes."""
    return Case(name, lambda token_ids: rivals.vllm(decoded(token_ids), stop), own(exhaust))


def report(limits: Limits) -> Iterator[str]:
    ours = [scanner(f"`feed`, {count:,} stops", numbered(count)) for count in (0, *COUNTS)]
    ours += [scanner("`feed`, 4 realistic stops", ROLES), scanner("`feed`, 4 stops that begin often", REALISTIC)]
    ours += [segmenter("`TokenSegmenter.feed`, 4 stops", numbered(4))]
    bare = Case(
        BARE, lambda token_ids: (DecodeStream(skip_special_tokens=True).step, tokenizer(), token_ids), own(decode_each)
    )
    rows: Table = [("case", "ns per token", "times an empty method")]
    for language in ("english", "cjk"):
        times = net([*ours, bare], [ids(language)], 25)
        yield f"## {language}, {IN_A_ROW:,} ids in a row, without the loop\n\n" + markdown([*rows, *times.rows()])
        if language == "english":
            worst = max(times.ratio(f"`feed`, {count:,} stops") for count in (0, *COUNTS))
            limits.most("`TokenScanner.feed`, 0 to 1,000 stops that never begin / an empty Python method", 1.4, worst)
            ratio = times.ratio("`feed`, 4 realistic stops")
            limits.most("`TokenScanner.feed`, 4 realistic stops / an empty Python method", 1.8, ratio)
            chart(times.times)
    yield vocabularies_table(limits)


def chart(english: dict[str, float]) -> None:
    import charts

    theirs = net([vllm(f"{count}", numbered(count)) for count in COUNTS], [ids("english")[:2_000]], 3).times
    curves = {
        "DecodeStream.step alone": dict.fromkeys(COUNTS, english[BARE]),
        "DecodeStream and vLLM's way": {count: theirs[f"{count}"] for count in COUNTS},
        "stopscan, TokenScanner.feed": {count: english[f"`feed`, {count:,} stops"] for count in COUNTS},
        "an empty Python method": dict.fromkeys(COUNTS, english[EMPTY]),
    }
    charts.time_over_stops(curves, "Time per token, from its id to safe text", "tokens.svg")


def vocabularies_table(limits: Limits) -> str:
    rows: Table = [("vocabulary", "ids", "read in", "memory", "for 150,000 ids")]
    for name, make in vocabularies().items():
        source, start = make(), process_time()
        assert Vocabulary(source).native
        seconds, size = process_time() - start, len(size_of(source))
        memory, scale = measured("vocabulary", name)[1], 150_000 / size
        figures = f"{seconds * scale:.2f} s, {memory * scale / 1e6:.0f} MB"
        rows = [*rows, (name, f"{size:,}", f"{seconds:.2f} s", f"{memory / 1e6:.1f} MB", figures)]
        limits.most(f"`Vocabulary` of {name}, for 150,000 ids", 0.3, seconds * scale, " s")
        limits.most("its memory, for 150,000 ids", 24, memory * scale / 1e6, " MB")
    return "## Vocabularies\n\n" + markdown(rows)


def size_of(source: Any) -> range:
    """Returns the range of the ids of a tokenizer of any library."""
    for name in ("get_vocab_size", "n_vocab", "n_words"):
        size = getattr(source, name, None)
        if size is not None:
            return range(size() if callable(size) else size)
    raise TypeError(type(source))
