"""A program that `test_no_memory.py` runs: calls that need much memory, while only a few megabytes are left."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

from stopscan import Repeat, StopScanner, StopSet
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter, SegmentSet, keep, split
from stopscan.tokens import TokenScanner, TokenSegmenter

ROOM = int(sys.argv[1]) << 20
LONG = 6_000_000


def limited(call: Callable[[], object]) -> object:
    """What `call` returns, or `None` if there was no memory for it."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
    try:
        result = call()
    except MemoryError:
        result = None
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return result


def check(name: str, done: bool) -> None:
    print(name, "done" if done else "no memory")


STOPS = [f"<stop number {number:06}>" for number in range(100_000)]
WIDE, PLAIN = "字" * (LONG // 3), "a " * (LONG // 2)
SETS: dict[str, Callable[[], object]] = {
    "one long stop": lambda: StopSet("ab" * (7_000_000 // 2)),
    "one long stop that is not ASCII": lambda: StopSet(WIDE[:2_000_000]),
    "many stops": lambda: StopSet(STOPS),
    "many words as patterns": lambda: StopSet(patterns=STOPS[:50_000]),
    "a long stop and a pattern": lambda: StopSet("ab" * 2_000_000, patterns=[r"<[^>]{1,200}>"]),
    "a large pattern": lambda: StopSet(patterns=["[a-z ]{900}!"]),
    "markers": lambda: SegmentSet({"a": {"<" * 2_000_000: "b"}, "b": {}}, stop=["x" * 2_000_000]),
    "a vocabulary": lambda: Vocabulary(STOPS),
}
for name, make in SETS.items():
    check(name, limited(make) is not None)

HELD = StopSet("a" * 3_000_000 + "b")
STREAMS: dict[str, tuple[StopScanner | Segmenter, list[str], str]] = {
    "a long delta": (StopScanner("END"), ["The E"], PLAIN),
    "a long delta that is not ASCII": (StopScanner("END"), ["The E"], WIDE),
    "a long delta that is held": (StopScanner(HELD), ["a" * 1_000_000], "a" * 1_999_000),
    "a delta behind long held text": (StopScanner(HELD), ["a" * 2_000_000], "c"),
    "what follows a stop": (StopScanner("END"), ["The E"], "ND" + PLAIN),
    "a match": (StopScanner(StopSet(patterns=["[a-z ]{900}!"])), ["a"], PLAIN[:400_000]),
    "a loop": (StopScanner(StopSet(repeat=Repeat(3, max_period=65_536, min_length=200_000))), ["x"], "ab" * 90_000),
    "segments": (Segmenter({"a": {"<": "b"}, "b": {">": "a"}}), ["a<b"], PLAIN + "<" + PLAIN + ">" + PLAIN),
    "markers in a row": (Segmenter({"a": {"<x>": "b"}, "b": {"<x>": "a"}}), ["a<x"], "><x>" * 500_000),
    "many segments": (Segmenter({"a": {"<x>": "b"}, "b": {"<x>": "a"}}), ["a<x"], ">t<x" * 300_000),
    "many kept markers": (Segmenter({"a": {"<x>": keep("a")}}), ["a<x"], "><x" * 300_000),
}
for name, (stream, before, delta) in STREAMS.items():
    for text in before:
        stream.feed(text)
    state = (stream.held, stream.match, stream.unused)
    expected = stream.copy().feed(delta)
    got = limited(lambda stream=stream, delta=delta: stream.feed(delta))
    if got is None:
        assert (stream.held, stream.match, stream.unused) == state, name
        assert stream.feed(delta) == expected, name
    else:
        assert got == expected, name
    check(name, got is not None)
    for what in ("copy", "snapshot", "flush"):
        result = limited(lambda stream=stream, what=what: getattr(stream, what)())
        check(f"{name}: {what}", result is not None)
        stream.reset() if what == "flush" else None
        assert stream.held is not None

MANY = ["<x>t" * 300_000]
for unlimited in (list(split(MANY, {"a": {"<x>": "b"}, "b": {"<x>": "a"}})),):
    stream = split(MANY, {"a": {"<x>": "b"}, "b": {"<x>": "a"}})
    got = limited(lambda stream=stream: next(stream))
    assert got == ("b", "t", 1) or (got is None and stream.held == "")
    assert list(stream) == (unlimited[1:] if got else [])
    check("segments of a source", got is not None)

vocabulary = Vocabulary(["a ", "E", "ND"])
scanner = TokenScanner(vocabulary, "END")
tokens = [1, *[0] * 2_000_000]
got = limited(lambda: scanner.feed_many(tokens))
assert got == "E" + "a " * 2_000_000 or (got is None and scanner.tokens_seen == 0)
check("many tokens", got is not None)
assert scanner.feed(0) == "a "

segmenter = TokenSegmenter(Vocabulary(["t", "<x>"]), {"a": {"<x>": "b"}, "b": {"<x>": "a"}})
got = limited(lambda: segmenter.feed_many([1, 0] * 300_000))
assert segmenter.tokens_seen in ((600_000,) if got else (0, 600_000))
check("many tokens and segments", got is not None)
assert segmenter.feed(0) in ([("a", "t", 0)], [("a", "t", 300_000)])
