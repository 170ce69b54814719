"""Users choose stops, so a set must either be refused, or compile in bounded memory and scan in linear time."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from stopscan import StopMatch, StopScanner, StopSet

LIMIT = 8_000_000  # the documented limit of a set: all its stops and markers together, in bytes
ON_WINDOWS = sys.platform == "win32"

# Stops that a hostile request may send. Each value is a Python expression. A new process evaluates it, so that the
# memory can be measured. These sets take the most memory. tests/rust/hostile counts the bytes of other sets exactly.
SETS = {
    "2,000 nested suffixes": "[''.join(map(chr, range(0x4E00 + n, 0x4DFF, -1))) for n in range(2_000)]",
    "one stop at the limit": "['a' * 7_999_999 + 'b']",
    "every character": "[chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000]",
}
# On Linux, the `ru_maxrss` of a new process is at least that of its parent, so `VmHWM` is read instead.
PEAK = textwrap.dedent("""
    import sys

    def peak() -> int:
        if sys.platform == "linux":
            return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
""")
MEASURED = PEAK + textwrap.dedent("""
    import random
    from stopscan import StopMatch, StopScanner, StopSet

    random.seed(0)
    stops = {stops}
    compiled = StopSet(stops)
    assert len(compiled) == len(set(stops))
    scanner = StopScanner(compiled)
    assert scanner.feed("\\n" * 1_000) == "\\n" * 1_000 or "\\n" in stops
    first = compiled.find(stops[-1])
    assert first is not None and first.sequence in stops
    assert stops[-1][first.offset : first.end] == first.sequence
    print(peak())
""")


@pytest.mark.skipif(ON_WINDOWS, reason="the peak is read with the resource module")
@pytest.mark.parametrize("stops", SETS.values(), ids=SETS)
def test_peak_memory(stops: str) -> None:
    code = MEASURED.format(stops=stops)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 512 << 20


def test_a_hundred_thousand_stops() -> None:
    stops = StopSet([f"{number:020}" for number in range(100_000)])
    assert len(stops) == 100_000
    assert stops.find("0" * 30) == StopMatch("0" * 20, 0)
    assert stops.find("9" * 100 + f"{99_999:020}") == StopMatch(f"{99_999:020}", 100)
    scanner = StopScanner(stops)
    assert (scanner.feed("x" + "0" * 19), scanner.held) == ("x", "0" * 19)
    assert (scanner.feed("x"), scanner.held) == ("0" * 19 + "x", "")


def test_three_thousand_nested_stops() -> None:
    """Every stop begins with the shortest stop, which fires first. So no other stop can fire, and nothing is held."""
    scanner = StopScanner(["a" * length for length in range(1, 3_001)])
    assert (scanner.feed("xyz"), scanner.held) == ("xyz", "")
    assert (scanner.feed("baaa"), scanner.match, scanner.unused) == ("b", StopMatch("a", 4), "aa")


def test_two_thousand_nested_suffixes() -> None:
    """The 2,000 stops are all endings of one string, so they complete at the same character. The longest stop that is
    in the text fires."""
    longest = "".join(chr(0x4E00 + number) for number in range(2_000))
    stops = StopSet([longest[start:] for start in range(2_000)])
    assert stops.find(longest) == StopMatch(longest, 0)
    assert stops.find("x" + longest[700:]) == StopMatch(longest[700:], 1)
    scanner = StopScanner(stops)
    assert (scanner.feed(longest[5:-1]), scanner.held) == ("", longest[5:-1])
    assert scanner.feed("x") == longest[5:-1] + "x"


@pytest.mark.parametrize(
    "build",
    [
        lambda: StopSet("a" * (LIMIT + 1)),
        lambda: StopSet("é" * (LIMIT // 2) + "a"),
        lambda: StopSet(["a" * LIMIT, "b"]),
        lambda: StopSet("a" * LIMIT, visible="b"),
        lambda: StopSet("a" * (LIMIT - 1), protect=[("<", ">")]),
        lambda: StopScanner("a" * (LIMIT + 1)),
    ],
    ids=["one stop", "bytes count", "two stops", "hidden and visible", "stop and markers", "StopScanner"],
)
def test_over_the_limit(build: object) -> None:
    with pytest.raises(ValueError, match=f"{LIMIT}"):
        build()  # type: ignore[operator]


def test_at_the_limit() -> None:
    stops = StopSet("a" * (LIMIT - 2), protect=[("<", ">")])
    assert stops.find("<>" + "a" * LIMIT) == StopMatch("a" * (LIMIT - 2), 2)


def test_a_million_characters_held_one_by_one() -> None:
    """This would take hours if each `feed` copied the held text."""
    stop = "a" * 1_000_000 + "b"
    scanner = StopScanner(stop)
    assert {scanner.feed("a") for _ in range(1_000_000)} == {""}
    assert scanner.held == "a" * 1_000_000
    assert [scanner.feed("a") for _ in range(1_000_000)] == ["a"] * 1_000_000
    assert scanner.held == "a" * 1_000_000
    assert (scanner.feed("b"), scanner.held) == ("", "")
    assert scanner.match == StopMatch(stop, 1_000_000)


def test_a_million_characters_held_and_given_up() -> None:
    scanner = StopScanner("a" * 1_000_000 + "b")
    for _ in range(3):
        assert {scanner.feed("a") for _ in range(999_999)} == {""}
        assert scanner.feed("x") == "a" * 999_999 + "x"
    assert (scanner.held, scanner.match) == ("", None)


def test_a_stop_that_falls_back_at_every_character() -> None:
    """A Fibonacci word is the worst case of a Knuth-Morris-Pratt search: a mismatch takes the most fallback steps."""
    one, two = "a", "ab"
    while len(two) < 100_000:
        one, two = two, two + one
    text = (two[:-2] + "c") * 3
    scanner = StopScanner(two)
    assert "".join(map(scanner.feed, text)) + scanner.flush() == text
    assert scanner.match is None


@pytest.mark.skipif(ON_WINDOWS, reason="the peak is read with the resource module")
def test_sliding_held_text_takes_constant_memory() -> None:
    code = PEAK + textwrap.dedent("""
        from stopscan import StopScanner

        scanner = StopScanner("a" * 1_000_000 + "b")
        scanner.feed("a" * 1_000_000)
        before = peak()
        for _ in range(10_000_000):
            scanner.feed("a")
        print(peak() - before)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 4 << 20
