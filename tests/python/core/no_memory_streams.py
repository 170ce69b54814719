"""If memory runs out, a call raises a `MemoryError`, and the stream stays usable: the delta was read whole or not at
all. First, each allocation of Python fails in turn. Then those of Rust fail, in a process that gets no more memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from failing import failing

from stopscan import Repeat, StopScanner, StopSet, truncate
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter, SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter

ROLE = r"\n(User|Human) ?\d*:"
MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
SEGMENTS = SegmentSet(MARKERS, stop=["END"])

LOOPING = SegmentSet(MARKERS, stop=["END"], repeat=Repeat(3, min_length=32))
NUMBERS = " ".join(str(number * number) for number in range(1_500))

# A scanner or segmenter, the deltas that it has read, and the delta that is read while an allocation fails.
Fed = tuple[Callable[[], "StopScanner | Segmenter"], list[str], str]
FED: dict[str, Fed] = {
    "held text goes on": (lambda: StopScanner(["END", "é🦀!"]), ["The E"], "astern EN"),
    "text that is not ASCII": (lambda: StopScanner(["END", "é🦀!"]), ["é"], "é🦀 or é🦀"),
    "a stop fires": (lambda: StopScanner(["END"]), ["The E"], "ND, and more"),
    "a long text": (lambda: StopScanner(["END"]), ["é"], "字" * 3_000 + "EN"),
    "a match begins": (lambda: StopScanner(StopSet(patterns=[ROLE])), ["plain"], " text\nUser"),
    "a match goes on": (lambda: StopScanner(StopSet(patterns=[ROLE])), ["plain\nUs", "er"], " 12"),
    "a match ends": (lambda: StopScanner(StopSet(patterns=[ROLE])), ["plain\nUs", "er"], "name"),
    "a pattern fires": (lambda: StopScanner(StopSet(patterns=[ROLE])), ["plain\nUs"], "er 2: and"),
    "a match in view": (lambda: StopScanner(StopSet(patterns=[ROLE]), include_stop=True), ["a\nUs"], "er 2: and"),
    "a loop": (lambda: StopScanner(StopSet("END", repeat=Repeat(3, min_length=32))), ["- " * 10, "E"], "- " * 40),
    "long held text goes on": (lambda: StopScanner("a" * 6_000 + "b"), ["a" * 5_000], "aEND"),
    "a long history": (lambda: StopScanner(StopSet("END", repeat=Repeat())), [NUMBERS, "E"], "astern " * 20),
    "a long history ends": (lambda: StopScanner(StopSet("END", repeat=Repeat())), [NUMBERS, "E"], "- " * 200),
    "a history at an edge": (lambda: Segmenter(LOOPING), [NUMBERS, "<thi"], f"nk>b</think>{NUMBERS[:600]}<thi"),
    "a segment": (lambda: Segmenter(SEGMENTS), [], "plain text"),
    "segments": (lambda: Segmenter(SEGMENTS), ["a<thi"], "nk>b</think>c<thi"),
    "a segment's stop": (lambda: Segmenter(SEGMENTS), ["a<thi"], "nk>bEND and more"),
}

VOCABULARY = Vocabulary(["The E", "astern", " EN", "ND", b"\xe4\xbd", b"\xa0", "<think>", "</think>"], special={6, 7})


def state(stream: StopScanner | Segmenter) -> tuple[object, ...]:
    return stream.held, stream.match, stream.unused, stream.region, stream.snapshot()


@pytest.mark.parametrize("name", FED)
@pytest.mark.parametrize("end", ["feed", "flush", "copy", "snapshot", "restore"])
def test_a_stream_goes_on(name: str, end: str) -> None:
    make, read, delta = FED[name]
    stream = make()
    for text in read:
        stream.feed(text)
    kept = stream.snapshot()
    calls: dict[str, Callable[[StopScanner | Segmenter], object]] = {
        "feed": lambda stream: stream.feed(delta),
        "flush": lambda stream: stream.flush(),
        "copy": lambda stream: stream.copy().snapshot(),
        "snapshot": lambda stream: stream.snapshot(),
        "restore": lambda stream: stream.restore(kept),
    }
    call = calls[end]
    expected, before = call(stream.copy()), state(stream)
    after, failed = stream.copy(), 0
    call(after)
    for trial, outcome in failing(stream.copy, call):
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, MemoryError)
            assert state(trial) in (before, state(after))
            failed += 1
        else:
            assert outcome == expected
            assert state(trial) == state(after)
    assert failed > 0 or expected in ("", "E", None)


def ids(text: str) -> list[int]:
    return [int(number) for number in text.split()]


@pytest.mark.parametrize("made", [TokenScanner, TokenSegmenter])
@pytest.mark.parametrize("read", ["", "0", "0 2", "0 4", "6 0"])
@pytest.mark.parametrize("following", ["1", "2", "3", "4 5", "7", "1 6 1 7 2 3 1"])
@pytest.mark.parametrize("many", [False, True])
def test_a_stream_of_tokens_goes_on(
    made: type[TokenScanner] | type[TokenSegmenter], read: str, following: str, many: bool
) -> None:
    stream = made(VOCABULARY, SEGMENTS if made is TokenSegmenter else "END")
    stream.feed_many(ids(read))
    new = ids(following) if many else ids(following)[:1]

    def call(stream: TokenScanner | TokenSegmenter) -> object:
        return stream.feed_many(new) if many else stream.feed(new[0])

    expected = call(stream.copy())
    after = stream.copy()
    call(after)
    states = [(one.snapshot(), one.tokens_seen, one.tokens_kept) for one in (stream, after)]
    for trial, outcome in failing(stream.copy, call):
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, MemoryError)
            assert (trial.snapshot(), trial.tokens_seen, trial.tokens_kept) in states
        else:
            assert outcome == expected


TEXT = "字" * 300 + "The END"


@pytest.mark.parametrize(
    "call",
    [
        lambda: StopSet(["END", "字"], visible=["."], patterns=[ROLE], protect=[("<think>", "</think>")]).stop,
        lambda: StopSet("END", regions=MARKERS, stop_in=["answer"]).stop_in,
        lambda: SegmentSet(MARKERS, stop=["END"], patterns=[ROLE]).stop_in,
        lambda: StopSet("END").find(TEXT),
        lambda: StopSet("END").truncate(TEXT),
        lambda: truncate(TEXT, "END"),
        lambda: StopScanner("END").held,
        lambda: Segmenter(MARKERS).feed("a<think>b"),
        lambda: TokenScanner(VOCABULARY, "END", stop_token_ids=[1]).feed_many([0, 2, 3]),
    ],
    ids=["StopSet", "regions", "SegmentSet", "find", "truncate", "truncate()", "StopScanner", "Segmenter", "tokens"],
)
def test_a_call_raises_and_leaves_nothing(call: Callable[[], object]) -> None:
    expected = call()
    outcomes = [outcome for _, outcome in failing(lambda: None, lambda _: call())]
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert errors
    assert all(isinstance(error, MemoryError) for error in errors)
    assert all(outcome == expected for outcome in outcomes if not isinstance(outcome, BaseException))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="a process learns its size from /proc")
@pytest.mark.parametrize("megabytes", [1, 10, 30])
def test_a_process_without_memory_goes_on(megabytes: int) -> None:
    """With a few megabytes left, calls must raise a `MemoryError` and leave the scanner usable. Once, one `feed`
    panicked and left the scanner locked, and another `feed` ended the process."""
    script = Path(__file__).with_name("without_memory.py")
    environment = os.environ | {"RUST_BACKTRACE": "1"}
    command = [sys.executable, str(script), str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no memory" in done.stdout
