"""What a token costs from its id to safe text, beside the bare decoder and vLLM's way.

    mkdir -p benches/results && python benches/tokens.py > benches/results/tokens.md

It also draws docs/tokens.svg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from time import process_time
from typing import Any

import rivals
from cases import Case, empty_method, exhaust, feed_each, own
from measure import Timing, in_a_row, interleaved
from memory import vocabularies_table
from report import Table, heading, markdown, ratio
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream
from workload import REALISTIC, cjk, code, numbered, prose, scattered, tokenizer

from stopscan import StopSet
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter

TOKENS = 1024  # of one stream: short enough to be timed between two switches of a busy machine
STEP = 4  # tokens of a speculative step
BARE = "DecodeStream.step"
LOOP = "loop over a list"
EMPTY = "empty Python method"
THINKING = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}


@cache
def windows(language: str) -> list[list[int]]:
    """Token ids of English prose and code, or of Chinese and Japanese, where some tokens are half characters."""
    ids = tokenizer().encode(cjk() if language == "cjk" else prose()[:200_000] + code()[:200_000]).ids
    return [ids[start : start + TOKENS] for start in range(0, len(ids) - TOKENS, TOKENS)][:6]


def decode_each(subject: tuple[DecodeStream, Tokenizer, Sequence[int]]) -> None:
    decoder, vocabulary, token_ids = subject
    for token_id in token_ids:
        decoder.step(vocabulary, token_id)


def decoded(token_ids: Sequence[int]) -> Iterator[str]:
    step = DecodeStream(skip_special_tokens=True).step
    for token_id in token_ids:
        yield step(tokenizer(), token_id) or ""


def warm(case: Case) -> Case:
    """The case after a run that is not timed: the others have taken the vocabulary out of the cache."""

    def prepare(token_ids: list[int]) -> Any:
        case.run(case.prepare(token_ids))
        return case.prepare(token_ids)

    return Case(case.name, prepare, case.run, case.check)


def decoding() -> Case:
    def check(token_ids: list[int]) -> None:
        assert "".join(decoded(token_ids)) == tokenizer().decode(token_ids)

    return Case(BARE, lambda ids: (DecodeStream(skip_special_tokens=True), tokenizer(), ids), own(decode_each), check)


def scanner(stop: list[str] | StopSet, limit: int = 10 * TOKENS) -> TokenScanner:
    """As servers make one: with an EOS and a limit."""
    return TokenScanner(tokenizer(), stop, eos_token_ids=[0], max_tokens=limit)


def feeding(name: str, stop: list[str], limit: int = 10 * TOKENS) -> Case:
    stops = StopSet(stop)

    def check(token_ids: list[int]) -> None:
        checked = scanner(stops, limit)
        assert "".join(map(checked.feed, token_ids)) + checked.close() == tokenizer().decode(token_ids)
        assert checked.tokens_kept == len(token_ids)

    return Case(name, lambda ids: (scanner(stops, limit), ids), own(feed_each), check)


def feed_steps(subject: tuple[TokenScanner, list[list[int]]]) -> None:
    feed_many = subject[0].feed_many
    for step in subject[1]:
        feed_many(step)


def feeding_steps(name: str, stop: list[str]) -> Case:
    def steps(ids: list[int]) -> list[list[int]]:
        return [ids[start : start + STEP] for start in range(0, len(ids), STEP)]

    def check(token_ids: list[int]) -> None:
        checked = scanner(stop)
        text = "".join(map(checked.feed_many, steps(token_ids))) + checked.close()
        assert text == tokenizer().decode(token_ids)

    return Case(name, lambda ids: (scanner(stop), steps(ids)), own(feed_steps), check)


def cutting(name: str, stop: list[str]) -> Case:
    """With the markers of a model that thinks, which do not occur."""
    segments = SegmentSet(THINKING, stop=stop)

    def segmenter() -> TokenSegmenter:
        return TokenSegmenter(tokenizer(), segments, eos_token_ids=[0], max_tokens=10 * TOKENS)

    def check(token_ids: list[int]) -> None:
        checked = segmenter()
        outputs = [segment for token_id in token_ids for segment in checked.feed(token_id)] + checked.close()
        assert "".join(text for _, text in outputs) == tokenizer().decode(token_ids)
        assert checked.tokens_in == {"answer": len(token_ids), "reasoning": 0}

    return Case(name, lambda ids: (segmenter(), ids), own(feed_each), check)


def vllm(name: str, stop: list[str]) -> Case:
    """The decoder, `check_stop_strings` and the slice; without the calls between vLLM's classes."""

    def check(token_ids: list[int]) -> None:
        assert "".join(rivals.vllm(decoded(token_ids), stop)) == tokenizer().decode(token_ids)

    return Case(name, lambda ids: rivals.vllm(decoded(ids), stop), own(exhaust), check)


def looping() -> Case:
    return Case(LOOP, list, own(exhaust), lambda ids: None)


def yardstick() -> Case:
    method = empty_method(EMPTY)
    return Case(EMPTY, lambda ids: (method.prepare([])[0], ids), own(feed_each), lambda ids: None)


COUNTS = [0, 1, 4, 16, 64, 256, 1000]


def per_token(language: str) -> dict[str, Timing]:
    """Net of the loop, but for what is a loop itself."""
    cases = [looping(), yardstick(), decoding()]
    cases += [feeding(f"feed, {count:,} stops", numbered(count)) for count in COUNTS]
    cases += [feeding("feed, realistic stops", REALISTIC), feeding("feed, 64 stops of letters", scattered(64))]
    cases += [cutting(f"feed of a TokenSegmenter, {count:,} stops", numbered(count)) for count in (4, 1000)]
    cases += [feeding_steps(f"feed_many of {STEP}, 4 stops", numbered(4))]
    cases += [vllm(f"vLLM's way, {count:,} stops", numbered(count)) for count in COUNTS if count]
    timings = interleaved([*map(warm, cases)], windows(language), passes=5)
    tokens = sum(map(len, windows(language)))
    loop = timings.pop(LOOP)
    return {name: timing.less(loop).per(tokens) for name, timing in timings.items()}


def per_token_table(figures: dict[str, dict[str, Timing]]) -> Table:
    head = ("ns a token, net of the loop", *figures, "of an empty method", "faster than DecodeStream.step")
    english = figures["english"]
    rows = [
        (
            f"`{name}`" if name.startswith(("feed", "Dec")) else name,
            *(f"{timings[name].fastest:,.1f}" for timings in figures.values()),
            f"{ratio(timing, english[EMPTY]):.2f}x",
            f"{ratio(english[BARE], timing):.1f}x",
        )
        for name, timing in english.items()
    ]
    return [head, *rows]


IN_A_ROW = 40_000  # ids of one text: more than a core's cache has of their strings
ROLES = ["\n\nHuman:", "### Instruction", "<|im_end|>", "</s>"]


def in_a_row_table() -> Table:
    ids = tokenizer().encode(prose()[:200_000] + code()[:200_000]).ids[:IN_A_ROW]
    cases = [looping(), yardstick(), decoding()]
    cases += [feeding(f"feed, {count:,} stops that never begin", numbered(count), 2 * IN_A_ROW) for count in COUNTS]
    cases += [feeding("feed, 4 realistic stops", ROLES, 2 * IN_A_ROW)]
    times = in_a_row(cases, ids)
    loop = times.pop(LOOP)
    net = {name: time - loop for name, time in times.items()}
    rows = [(name, f"{t:.1f}", f"{t / net[EMPTY]:.2f}x", f"{net[BARE] / t:.1f}x") for name, t in net.items()]
    return [("ns a token, net of the loop", "english", "of an empty method", "faster than DecodeStream.step"), *rows]


# What a model can be made to repeat, and the lengths at which the old ways still end.
LENGTHS = [1_000, 4_000, 16_000, 64_000]
QUADRATIC = 4_000


def stray() -> int:
    """A token that is a byte of no character."""
    return next(i for i in range(tokenizer().get_vocab_size()) if tokenizer().id_to_token(i) == "ÿ")


def repeated(kind: str, length: int) -> tuple[list[int], list[int]]:
    """A prompt and the tokens of the stream."""
    token_id = {"special tokens": 1, "stray bytes": stray(), "text": 500}[kind.removeprefix("a prompt of ")]
    return ([token_id] * length, [500]) if kind.startswith("a prompt") else ([], [token_id] * length)


class Unlike:
    """The same tokenizer, behind an object that decodes by itself: it is not native."""

    def __init__(self) -> None:
        self.backend_tokenizer = tokenizer()

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return self.backend_tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens).replace("e", "3")


def native(prompt: list[int], token_ids: list[int]) -> None:
    scanner = TokenScanner(tokenizer(), REALISTIC, prompt_token_ids=prompt)
    for token_id in token_ids:
        scanner.feed(token_id)
    scanner.flush()


def not_native(prompt: list[int], token_ids: list[int]) -> None:
    scanner = TokenScanner(UNLIKE, REALISTIC, prompt_token_ids=prompt)
    for token_id in token_ids:
        scanner.feed(token_id)
    scanner.flush()


def decode_stream(prompt: list[int], token_ids: list[int]) -> None:
    decoder = DecodeStream(skip_special_tokens=True)
    for token_id in [*prompt, *token_ids]:
        decoder.step(tokenizer(), token_id)


UNLIKE = Unlike()
WAYS: dict[str, Callable[[list[int], list[int]], None]] = {
    "TokenScanner": native,
    "TokenScanner, not native": not_native,
    BARE: decode_stream,
}


def lengths_table() -> Table:
    rows = []
    for kind in ["text", "special tokens", "stray bytes", "a prompt of text", "a prompt of special tokens"]:
        for name, way in WAYS.items():
            quadratic = way is decode_stream and "text" not in kind
            figures = [
                "-"
                if quadratic and length > QUADRATIC
                else f"{best(way, *repeated(kind, length), passes=1 if quadratic else 3) / length * 1e9:,.0f}"
                for length in LENGTHS
            ]
            rows.append((kind, name, *figures))
    return [("ns a token", "way", *(f"{length:,}" for length in LENGTHS)), *rows]


def best(way: Callable[[list[int], list[int]], None], prompt: list[int], token_ids: list[int], *, passes: int) -> float:
    times = []
    for _ in range(passes):
        start = process_time()
        way(prompt, token_ids)
        times.append(process_time() - start)
    return min(times)


def chart(english: dict[str, Timing]) -> None:
    curves = {
        "DecodeStream.step alone": dict.fromkeys(COUNTS[1:], english[BARE].fastest),
        "DecodeStream and vLLM's way": {count: english[f"vLLM's way, {count:,} stops"].fastest for count in COUNTS[1:]},
        "stopscan, TokenScanner.feed": {count: english[f"feed, {count:,} stops"].fastest for count in COUNTS[1:]},
        "an empty Python method": dict.fromkeys(COUNTS[1:], english[EMPTY].fastest),
    }
    import charts  # here, for other benchmarks take windows and cases from this one, where there is no matplotlib

    charts.time_per_token(curves)


def main() -> None:
    print(heading("Tokens", ["tokenizers", "tiktoken", "mistral-common"]), end="\n\n")
    figures = {language: per_token(language) for language in ("english", "cjk")}
    print("A real byte-level BPE vocabulary of 65,000 tokens; the stops do not occur.", end="\n\n")
    print(markdown(per_token_table(figures)), end="\n\n")
    print(f"{IN_A_ROW:,} ids of one text in a row, so that no window of them is warm:", end="\n\n")
    print(markdown(in_a_row_table()), end="\n\n")
    chart(figures["english"])
    print(markdown(vocabularies_table()), end="\n\n")
    print("What a model or a client can repeat, by how often; with realistic stops. DecodeStream is quadratic there.")
    print("", markdown(lengths_table()), sep="\n")


if __name__ == "__main__":
    main()
