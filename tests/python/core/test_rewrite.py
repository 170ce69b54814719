"""Rewriters, compared with a brute-force search, and the classes and functions around them."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import pickle
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from delta_sources import ApiStream, AsyncSource, Source
from hypothesis import given
from rewriting import rewritten

import stopscan
from stopscan import Rewriter, RewriteSet, StopScanner, StopSet, arewrite, rewrite, scan

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/rewrite/rewrite.json").read_text(encoding="utf-8"))
NAMES = {"Ada": "<P1>", "Adam": "<P2>", "Ada Lovelace": "<P3>"}

alphabets = st.sampled_from(["ab", "abc", "aé🤦", "ab<>1"])


@st.composite
def rewritings(draw: st.DrawFn) -> tuple[dict[str, str], list[str]]:
    letters = st.text(draw(alphabets), max_size=8)
    keys = draw(st.dictionaries(letters.filter(bool), st.text("Xaé", max_size=3), max_size=6))
    pieces = st.one_of(letters, st.sampled_from([*keys])) if keys else letters
    return keys, draw(st.lists(pieces, max_size=10))


@given(rewritings())
def test_every_step_equals_brute_force(rewriting: tuple[dict[str, str], list[str]]) -> None:
    replacements, deltas = rewriting
    rewriter, read, out = Rewriter(replacements), "", ""
    for delta in deltas:
        idle = not rewriter.held
        safe = rewriter.feed(delta)
        read, out = read + delta, out + safe
        assert (out, rewriter.held) == rewritten(replacements, read, ended=False)
        if idle and not rewriter.held and not any(key in delta for key in replacements):
            assert safe is delta
    assert out + rewriter.flush() == rewritten(replacements, read)[0] == RewriteSet(replacements).rewrite(read)
    assert "".join(rewrite(deltas, replacements)) == rewritten(replacements, read)[0]


@given(rewritings(), st.sampled_from(["", "<", "ba", "aab"]))
def test_stops_are_found_before_rewriting(rewriting: Any, stop: str) -> None:
    replacements, deltas = rewriting
    stops = StopSet([stop] if stop else [])
    scanner, rewriter, out, read = StopScanner(stops), Rewriter(replacements), "", ""
    longest = max(map(len, replacements), default=1)
    for delta in deltas:
        out += rewriter.feed(scanner.feed(delta))
        read += delta
        safe = stops.truncate(read)[0] if scanner.match else read
        _, least = rewritten(replacements, safe, ended=False)
        assert len(rewriter.held) + len(scanner.held) <= max(len(least), len(scanner.held)) + longest - 1
    out += rewriter.feed(scanner.flush()) + rewriter.flush()
    assert out == rewritten(replacements, stops.truncate("".join(deltas))[0])[0]
    assert "".join(rewrite(scan(deltas, stops), replacements)) == out


@pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_vectors(case: dict[str, Any], size: int) -> None:
    rewriter = Rewriter(case["replacements"])
    for step in case["steps"]:
        if step["op"] == "feed":
            text = step["text"]
            out = "".join(rewriter.feed(text[start : start + size]) for start in range(0, len(text), size))
        else:
            out = getattr(rewriter, step["op"])() or ""
        assert (out, rewriter.held) == (step["out"], step["held"])


def test_nothing_changes_nothing() -> None:
    text = "plain text " * 30
    assert RewriteSet(NAMES).rewrite(text) is text
    assert Rewriter(NAMES).feed(text) is text
    shield = "END"
    assert Rewriter({"END": "END", "N": "-"}).feed(shield) is shield
    assert Rewriter({}).feed(shield) is shield


def duplicates() -> dict[str, Callable[[Rewriter], Rewriter]]:
    def restored(rewriter: Rewriter) -> Rewriter:
        other = Rewriter(RewriteSet(rewriter.set.replacements))
        other.restore(rewriter.snapshot())
        return other

    return {
        "copy": Rewriter.copy,
        "copy.copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda rewriter: pickle.loads(pickle.dumps(rewriter)),
        "snapshot": restored,
    }


@pytest.mark.parametrize("duplicate", duplicates().values(), ids=duplicates())
def test_a_copy_goes_on_by_itself(duplicate: Callable[[Rewriter], Rewriter]) -> None:
    rewriter = Rewriter(NAMES)
    assert rewriter.feed("Dear Ada Love") == "Dear "
    other = duplicate(rewriter)
    assert other.set == rewriter.set
    assert other.feed("lace!") == "<P3>!"
    assert rewriter.held == "Ada Love"
    assert rewriter.feed("d") == "<P1> Loved"


def test_sets_are_values() -> None:
    rules, same = RewriteSet(NAMES), RewriteSet(dict(reversed(NAMES.items())))
    assert (rules, hash(rules), len(rules), rules.replacements) == (same, hash(same), 3, NAMES)
    assert rules != RewriteSet({**NAMES, "Ada": "x"})
    assert RewriteSet(rules) is Rewriter(rules).set is copy.deepcopy(rules) is rules
    assert pickle.loads(pickle.dumps(rules)) == rules
    assert repr(RewriteSet({"a": "b"})) == "RewriteSet({'a': 'b'})"
    assert repr(Rewriter({"ab": "c"})) == "<Rewriter held=''>"


@pytest.mark.parametrize(
    ("replacements", "error", "message"),
    [
        ({"a": "b", "": "c"}, ValueError, "key 1 is empty"),
        ({"a": 5}, TypeError, 'replacement of "a": expected str, got int'),
        ({5: "a"}, TypeError, "replacements: key: expected str, got int"),
        ({b"a": "b"}, TypeError, "decode"),
        ({"a": b"b"}, TypeError, "decode"),
        (["a"], TypeError, "replacements: expected a mapping, got list"),
        ("ab", TypeError, "replacements: expected a mapping, got str"),
        (None, TypeError, "replacements: expected a mapping, got NoneType"),
        ({"a": "x" * 8_000_001}, ValueError, "keys and replacements have 8000002 bytes"),
    ],
)
def test_wrong_replacements_are_named(replacements: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RewriteSet(replacements)
    with pytest.raises(error, match=message):
        Rewriter(replacements)


@pytest.mark.parametrize("replacements", [{"\ud800": "a"}, {"a": "\ud800"}])
def test_lone_surrogates_are_refused(replacements: dict[str, str]) -> None:
    with pytest.raises(UnicodeEncodeError):
        RewriteSet(replacements)


@pytest.mark.parametrize("delta", [5, None, b"a", "x\ud800"])
def test_a_wrong_delta_changes_nothing(delta: Any) -> None:
    rewriter = Rewriter(NAMES)
    rewriter.feed("Ad")
    with pytest.raises((TypeError, UnicodeEncodeError)):
        rewriter.feed(delta)
    assert (rewriter.held, rewriter.feed("a!")) == ("Ad", "<P1>!")


def test_a_wrong_snapshot_changes_nothing() -> None:
    rewriter = Rewriter(NAMES)
    rewriter.feed("Ad")
    other = Rewriter({"Ada": "x"})
    other.feed("Ad")
    state = rewriter.snapshot()
    for snapshot in (other.snapshot(), state[:-1], b"", b"\xff" + state[1:], StopScanner("Ada").snapshot()):
        with pytest.raises(ValueError, match="snapshot"):
            rewriter.restore(snapshot)
    with pytest.raises(TypeError):
        rewriter.restore("text")  # type: ignore[arg-type]
    assert rewriter.held == "Ad"


def test_reset_and_flush() -> None:
    rewriter = Rewriter(NAMES)
    rewriter.feed("Ada L")
    rewriter.reset()
    assert (rewriter.held, rewriter.flush()) == ("", "")
    rewriter.feed("Ada L")
    assert (rewriter.flush(), rewriter.flush(), rewriter.feed("Adam")) == ("<P1> L", "", "<P2>")


def test_long_key_takes_constant_memory_and_linear_time() -> None:
    key = "a" * 100_000 + "b"
    rewriter = Rewriter({key: "x", "a": "y"})
    for _ in range(100_000):
        assert rewriter.feed("a") == ""
    assert len(rewriter.held) == 100_000
    assert rewriter.copy().feed("b") == "x"
    assert rewriter.feed("c") == "y" * 100_000 + "c"


def test_only_one_thread_feeds() -> None:
    rewriter = Rewriter({"ab": "c" * 50})
    text, errors = "ab" * 2_000_000, []

    def feed() -> None:
        try:
            for _ in range(5):
                rewriter.feed(text)
        except RuntimeError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=feed) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert rewriter.held == ""  # a reader waits
    assert all("rewriter" in error for error in errors)


def test_streams_give_text_and_close_nothing_before_their_end() -> None:
    source = Source("Dear Ad", "a Love", "", "lace", " and Ada")
    with rewrite(source, NAMES) as stream:
        assert next(stream) == "Dear "
        assert (stream.held, stream.closes) == ("Ad", True)
        assert list(stream) == ["<P3>", " and ", "<P1>"]
    assert source.closed == 1
    assert not hasattr(stream, "match")
    assert repr(stream) == "<RewriteStream held=''>"


def test_a_closed_stream_keeps_its_held_text() -> None:
    source = Source("x Ad", "a")
    stream = rewrite(source, NAMES)
    assert next(stream) == "x "
    stream.close()
    assert (list(stream), stream.held, source.closed) == ([], "Ad", 1)


def test_an_error_of_the_source_comes_through() -> None:
    def failing() -> Iterator[str]:
        yield "x Ad"
        raise OSError("gone")

    stream = rewrite(failing(), NAMES)
    assert next(stream) == "x "
    with pytest.raises(OSError, match="gone"):
        next(stream)
    assert stream.held == "Ad"


@pytest.mark.parametrize("kind", [AsyncSource, ApiStream])
def test_async_streams(kind: type[AsyncSource]) -> None:
    async def main() -> None:
        source = kind("Dear Ad", "a Love", "lace", " Ada")
        async with arewrite(source, NAMES) as stream:
            assert await anext(stream) == "Dear "
            assert (stream.held, stream.closes, repr(stream)) == ("Ad", True, "<AsyncRewriteStream held='Ad'>")
            assert [text async for text in stream] == ["<P3>", " ", "<P1>"]
        assert source.closed == 1
        assert isinstance(stream, stopscan.AsyncRewriteStream)

    asyncio.run(main())


def test_a_cancelled_step_loses_nothing() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def source() -> AsyncIterator[str]:
            yield "Ad"
            await gate.wait()
            yield "am!"

        stream = arewrite(source(), NAMES)
        task = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stream.held == "Ad"

    asyncio.run(main())


def test_error_names_the_function_for_this_source() -> None:
    with pytest.raises(TypeError, match=r"RewriteSet\.rewrite"):
        rewrite("text", NAMES)
    with pytest.raises(TypeError, match="arewrite takes an async iterable"):
        rewrite(AsyncIterable(), NAMES)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="rewrite takes an iterable"):
        arewrite(["text"], NAMES)  # type: ignore[arg-type]


class AsyncIterable:
    def __aiter__(self) -> AsyncIterator[str]:
        raise NotImplementedError


def test_a_stream_in_a_cycle_is_collected() -> None:
    source = Source("a")
    source.stream = rewrite(source, NAMES)  # type: ignore[attr-defined]
    reference = weakref.ref(source)
    del source
    gc.collect()
    assert reference() is None
