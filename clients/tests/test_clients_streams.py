"""Tests the iterators that `scan_events` and `ascan_events` return: closing, errors, threads, refused arguments."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import wire
from events import text_of
from sources import AsyncSource, Source, chunks, texts

import stopscan
from stopscan_clients import AsyncEventStream, EventStream, ascan_events, scan_events


def test_a_stop_closes_the_source_once() -> None:
    source = Source(*chunks("one E", "ND", "more"))
    stream = scan_events(source, "END")
    assert texts(stream) == ["one ", "", None]
    assert source.closed == 1
    stream.close()
    assert source.closed == 1
    assert len(list(source)) == 1


def test_an_iterable_is_closed_with_its_iterator() -> None:
    class Response:
        closed = 0

        def __iter__(self) -> Iterator[Any]:
            try:
                yield from chunks("END", "more")
            finally:
                self.closed += 1

        def close(self) -> None:
            self.closed += 10

    response = Response()
    list(scan_events(response, "END"))
    assert response.closed == 11


def test_an_error_of_close_comes_after_the_events() -> None:
    source = Source(*chunks("one END"), failures=1)
    stream = scan_events(source, "END")
    assert texts([next(stream), next(stream)]) == ["one ", None]
    with pytest.raises(OSError, match="cannot be closed"):
        next(stream)
    assert list(stream) == []
    stream.close()
    assert source.closed == 1


def test_a_close_that_fails_changes_nothing() -> None:
    source = Source(*chunks("one", "two"), failures=2)
    stream = scan_events(source, "END")
    next(stream)
    with pytest.raises(OSError, match="cannot be closed"):
        stream.close()
    assert texts([next(stream)]) == ["two"]
    with pytest.raises(OSError, match="cannot be closed"), stream:
        pass
    stream.close()
    assert (source.closed, list(stream)) == (1, [])


def test_closing_leaves_the_held_text() -> None:
    with scan_events(Source(*chunks("one EN", "D")), "END") as stream:
        assert texts([next(stream)]) == ["one "]
    assert (list(stream), stream.held, stream.matches) == ([], {0: "EN"}, {})


def test_an_error_of_the_source_leaves_held_text() -> None:
    source = Source(*chunks("one EN"), ConnectionError("lost"))
    stream = scan_events(source, "END")
    assert texts([next(stream)]) == ["one "]
    with pytest.raises(ConnectionError):
        next(stream)
    assert stream.held == {0: "EN"}
    assert texts(stream) == ["EN"], "with the next step: the source has ended"
    assert stream.held == {}
    with pytest.raises(ConnectionError):
        next(scan_events(Source(ConnectionError("lost")), "END"))


@pytest.mark.parametrize("api", sorted(wire.WIRES))
def test_an_error_of_a_drained_source_comes_last(api: str) -> None:
    events = wire.WIRES[api](["one END", "more"])
    last = next(number for number, event in enumerate(events) if "more" in str(event))
    stream = scan_events(Source(*events[: last + 1], ConnectionError("lost")), "END", drain=True)
    whole = [*scan_events(events[: last + 1], "END")]
    came = [event for _, event in zip(whole, stream, strict=False)]
    assert came == whole
    with pytest.raises(ConnectionError):
        next(stream)
    assert list(stream) == []


def test_a_visible_stop_ends_the_stream_at_once() -> None:
    for api, make in wire.WIRES.items():
        events = make(["one END", "more"])
        source = Source(*events)
        out = list(scan_events(source, "END", include_stop=True))
        assert "more" not in repr(out)
        assert "more" in repr(list(source)), api
        # In the three APIs named here, the event with the stop comes out unchanged. In other APIs, a changed copy may
        # come out.
        if api in ("anthropic", "bedrock", "responses"):
            at = next(number for number, event in enumerate(events) if "one END" in repr(event))
            assert out[at] is events[at]


def test_an_interruption_comes_at_once() -> None:
    """With ``drain``, most errors are raised only after the stop's closing events, but ``KeyboardInterrupt`` must be
    raised at once."""
    source = Source(*chunks("one END"), KeyboardInterrupt(), *chunks("more"))
    stream = scan_events(source, "END", drain=True)
    assert texts([next(stream)]) == ["one "]
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert texts(stream) == [None]


def test_an_interruption_while_closing_leaves_the_events() -> None:
    source = Source(*chunks("one END"), failures=1, failure=KeyboardInterrupt())
    with scan_events(source, "END") as stream:
        with pytest.raises(KeyboardInterrupt):
            next(stream)
        assert texts(stream) == ["one ", None]
    assert source.closed == 1


def test_a_source_that_has_failed_is_read_no_more() -> None:
    source = Source(*chunks("one END"), ConnectionError("lost"), *chunks("more"))
    stream = scan_events(source, "END", drain=True)
    assert texts([next(stream), next(stream)]) == ["one ", None]
    with pytest.raises(ConnectionError):
        next(stream)
    assert list(stream) == []
    assert texts(source) == ["more"]


def test_a_refused_close_can_be_repeated() -> None:
    reached, go_on = threading.Event(), threading.Event()

    def source() -> Iterator[Any]:
        yield from chunks("one")
        reached.set()
        go_on.wait(10)
        yield from chunks("two", "three")

    stream = scan_events(source(), "END")
    got: list[Any] = []
    reader = threading.Thread(target=lambda: got.extend([next(stream), next(stream)]))
    reader.start()
    assert reached.wait(10)
    for refused in (stream.close, stream.__next__):
        with pytest.raises(RuntimeError, match="in use"):
            refused()
    go_on.set()
    reader.join(10)
    assert texts(got) == ["one", "two"]
    stream.close()
    assert list(stream) == []


def test_a_source_that_closes_its_own_stream_is_refused() -> None:
    def source() -> Iterator[Any]:
        yield from chunks("one")
        stream.close()

    stream = scan_events(source(), "END")
    next(stream)
    with pytest.raises(RuntimeError, match="in use"):
        next(stream)


def test_many_threads_take_each_event_once() -> None:
    stream = scan_events(chunks(*map(str, range(2000))), "never")
    taken: list[str | None] = []

    def take() -> None:
        while True:
            try:
                taken.extend(texts([next(stream)]))
            except RuntimeError:
                continue
            except StopIteration:
                return

    readers = [threading.Thread(target=take) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    assert sorted(map(int, filter(None, taken))) == list(range(2000))


def test_without_stops_every_event_is_the_very_object() -> None:
    for stop in (None, (), []):
        for api, make in wire.WIRES.items():
            events = make(["one", "two"])
            assert [id(event) for event in scan_events(events, stop)] == [id(event) for event in events], api


def test_neutral_events_pass_before_the_api_is_known() -> None:
    azure = {"id": "", "object": "", "choices": [], "prompt_filter_results": [{}]}
    alive = [{"type": "ping"}, {"type": "keepalive"}, azure, {"usage": {}}, {"done": False}]
    errors = [{"type": "error", "error": {}}, {"error": {"message": "slow"}}]
    *out, _, _ = scan_events([*errors, *chunks("one END")], "END")
    assert [id(event) for event in out] == [id(event) for event in errors]
    *out, cut, last = scan_events([*alive, *chunks("one END")], "END")
    assert [id(event) for event in out] == [id(event) for event in alive]
    assert texts([cut, last]) == ["one ", None]
    alive += [{"choices": None}]
    *out, cut, _ = scan_events([*chunks("one EN"), *alive, *chunks("D two")], "END")
    assert [id(event) for event in out[1:]] == [id(event) for event in alive]
    assert texts([out[0], cut]) == ["one ", ""]


def test_a_stream_may_begin_with_any_of_its_events() -> None:
    """A reader that resumes a stream after a lost connection does not get its first events again."""
    for api, make in wire.WIRES.items():
        events = make(["one"])
        for at in range(len(events)):
            if "metadata" not in events[at]:  # Bedrock's last event, after which no text can come
                assert list(scan_events(events[at:], "END")) == events[at:], api
    block = [{"contentBlockStart": {"contentBlockIndex": 0, "start": {}}}]
    assert list(scan_events(block, "END")) == block


def test_a_stop_set_brings_its_visible_stops_and_regions() -> None:
    stops = stopscan.StopSet("END", visible=["."], protect=[("<think>", "</think>")])
    stream = scan_events(chunks("<think>END.</think>", "one E", "at. two"), stops)
    assert texts(stream) == ["<think>END.</think>", "one ", "Eat.", None]
    assert stream.matches[0].sequence == "."


@pytest.mark.parametrize("api", wire.WIRES)
def test_a_lone_surrogate_costs_no_text(api: str) -> None:
    """JSON can escape a lone surrogate, so clients can read one. UTF-8 cannot encode it: it becomes U+FFFD."""
    events = wire.WIRES[api](["one EN", "\ud83d", "D E", "ND two"])
    stream = scan_events(events, "END")
    assert "".join(text_of(api, event) or "" for event in stream) == "one EN\ufffdD "
    assert stream.matches[0].offset == 9


def test_it_is_an_iterator_and_says_so() -> None:
    assert isinstance(scan_events([], "END"), EventStream)
    assert iter(stream := scan_events([], "END")) is stream
    assert isinstance(ascan_events(AsyncSource(), "END"), AsyncEventStream)
    assert list(scan_events([], "END")) == []


def test_a_stream_that_is_dropped_leaves_nothing() -> None:
    def source() -> Iterator[Any]:
        try:
            yield from chunks("one", "two")
        finally:
            closed.append(True)

    closed: list[bool] = []
    gc.disable()
    try:
        stream = scan_events(source(), "END")
        next(stream)
        del stream
        assert closed == [True], "without the garbage collector"
    finally:
        gc.enable()


def test_after_close_only_the_events_that_were_ready_come() -> None:
    events = [*chunks("one E"), {"error": {"message": "no"}}, *chunks("two")]
    stream = scan_events(Source(*events), "END")
    assert texts([next(stream)]) == ["one "]
    assert texts([next(stream)]) == ["E"]  # the error waits behind it
    stream.close()
    assert [*stream] == [events[1]]
