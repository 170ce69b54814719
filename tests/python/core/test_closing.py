"""Closing and errors in mid-stream, for `scan` and `split`: nothing is lost and nothing leaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from delta_sources import MARKERS, Source, texts

from stopscan import scan
from stopscan.segments import split


@pytest.mark.parametrize("make", [scan, split], ids=["scan", "split"])
def test_a_stream_is_a_context_manager(make: Callable[..., Any]) -> None:
    source = Source("one", "two")
    with make(source, "END" if make is scan else MARKERS) as stream:
        assert texts([next(stream)]) == "one"
    assert source.closed == 1
    assert list(stream) == []
    stream.close()
    assert source.closed == 1


@pytest.mark.parametrize("make", [scan, split], ids=["scan", "split"])
def test_a_close_that_fails_changes_nothing(make: Callable[..., Any]) -> None:
    source = Source("one", "two", failures=1)
    stream = make(source, "END" if make is scan else MARKERS)
    next(stream)
    with pytest.raises(OSError, match="cannot close"):
        stream.close()
    assert texts([next(stream)]) == "two"
    stream.close()
    assert source.closed == 1
    assert list(stream) == []


@pytest.mark.parametrize("make", [scan, split], ids=["scan", "split"])
def test_close_while_another_thread_is_in_next(make: Callable[..., Any]) -> None:
    """A `close` during `next` must raise an error. Before a fix, it silently ended the stream, lost text and left the
    source open."""
    entered, leave = threading.Event(), threading.Event()

    def deltas() -> Iterator[str]:
        try:
            entered.set()
            leave.wait(10)
            yield "one"
            yield "two"
        finally:
            closed.set()

    closed = threading.Event()
    stream = make(deltas(), "END" if make is scan else MARKERS)
    items: list[Any] = []
    reader = threading.Thread(target=lambda: items.append(next(stream)))
    reader.start()
    assert entered.wait(10)
    for call in (stream.close, lambda: next(stream)):
        with pytest.raises(RuntimeError, match="the stream is in use by another thread"):
            call()
    leave.set()
    reader.join()
    items.append(next(stream))
    assert texts(items) == "onetwo"
    assert not closed.is_set()
    stream.close()
    assert closed.is_set()


@pytest.mark.parametrize("make", [scan, split], ids=["scan", "split"])
def test_an_error_of_the_source_comes_through(make: Callable[..., Any]) -> None:
    def deltas() -> Iterator[str]:
        yield "text <th"
        raise OSError("connection lost")

    stream = make(deltas(), "<think>" if make is scan else MARKERS)
    assert texts([next(stream)]) == "text "
    with pytest.raises(OSError, match="connection lost"):
        next(stream)
    assert stream.held == "<th"
    assert texts(list(stream)) == "<th"  # the source has ended, so the held text comes out


def test_segments_that_are_ready_survive_a_close() -> None:
    stream = split(["one|two|three", "four"], {"a": {"|": "b"}, "b": {"|": "a"}})
    assert next(stream) == ("a", "one", 0)
    stream.close()
    assert list(stream) == [("b", "two", 1), ("a", "three", 2)]


@pytest.mark.parametrize("failures", [1, 2])
def test_error_of_closing_follows_the_text(failures: int) -> None:
    source = Source("textEND", failures=failures)
    stream = scan(source, "END")
    assert next(stream) == "text"
    with pytest.raises(OSError, match="cannot close"):
        next(stream)
    assert list(stream) == []
    for _ in range(failures - 1):
        with pytest.raises(OSError, match="cannot close"):
            stream.close()
    stream.close()
    assert source.closed == 1


def test_a_close_that_is_none_was_called() -> None:
    class Deltas:
        close = None

        def __iter__(self) -> Iterator[str]:
            return iter(["one END"])

    assert list(scan(Deltas(), "END")) == ["one "]
