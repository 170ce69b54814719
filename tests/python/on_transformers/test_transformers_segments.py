"""``Stops`` and ``RowSegmenter`` with a ``SegmentSet``, which separates reasoning from answers during generation."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

import torch
from transformers import ContinuousBatchingConfig, TextIteratorStreamer
from transformers_harness import Engine, Pieces

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.segments import FORMATS, Segment, SegmentSet, split
from stopscan.transformers import Stops
from stopscan.transformers.continuous import RowSegmenter
from stopscan_conformance.reciter import SCRIPTS, Reciter

THINK = SegmentSet(FORMATS["think"], stop="END", stop_in=["answer"])
NAMES = ["think", "unclosed", "split", "count"]
ANSWER = [("reasoning", "Is it END?", 1), ("answer", "It is 5 or 6 ", 2)]


def told_apart(name: str) -> list[Segment]:
    """The segments that `split` finds in a script."""
    return joined(split((str(piece) for piece in SCRIPTS[name]), THINK))


def joined(segments: Iterable[Segment]) -> list[Segment]:
    runs = groupby(segments, lambda one: (one[0], one[2]))
    return [(region, "".join(text for _, text, _ in run), part) for (region, part), run in runs]


@pytest.mark.parametrize("streamed", [True, False])
def test_rows_are_told_apart(engine: Engine, reciter: Reciter, streamed: bool) -> None:
    stops = Stops(engine.tokenizer, THINK)
    engine.generate([reciter.prompt(name) for name in NAMES], stops, streamed=streamed)
    assert stops.segments == [told_apart(name) for name in NAMES]
    assert stops.segments[0] == ANSWER
    assert stops.texts == ["".join(text for _, text, _ in row) for row in stops.segments]
    assert [finish.matched_stop for finish in stops.finishes] == ["END", None, "END", None]


def test_a_row_is_cut_after_its_last_segment(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, THINK)
    (row,) = stops.trim(engine.generate(reciter.prompt("think"), stops))
    kept = row.tolist()[1:]
    assert kept == reciter.token_ids("think")[: len(kept)]
    assert engine.tokenizer.decode(kept) == "<think>Is it END?</think>It is 5 or 6 "


def test_an_iterator_gets_segments(engine: Engine, reciter: Reciter) -> None:
    streamer = TextIteratorStreamer(engine.tokenizer, timeout=60)
    stops = Stops(engine.tokenizer, THINK, streamer=streamer)
    engine.generate(reciter.prompt("think"), stops)
    thought, answer = ["Is", " it", " ", "E", "ND", "?"], ["It", " is", " 5", " or", " 6", " ", ""]
    assert [*streamer] == [*(("reasoning", text, 1) for text in thought), *(("answer", text, 2) for text in answer)]


def test_the_last_segment_ends_the_stream(engine: Engine, reciter: Reciter) -> None:
    pieces = Pieces()
    stops = Stops(engine.tokenizer, THINK, streamer=pieces)
    engine.generate(reciter.prompt("think"), stops, max_new_tokens=15)
    # The limit ends the row while "E" may still become the stop.
    assert (pieces.texts[-2:], pieces.ends) == ([("answer", " ", 2), ("answer", "E", 2)], 1)
    assert stops.finishes == [Finish("length")]


def test_last_segment_of_a_token_ends_the_stream(tmp_path: Path) -> None:
    reciter = Reciter({"thought": ["Is it 5", "?</think>It is END", " now"]})
    engine = Engine.load(reciter.write(tmp_path))
    pieces = Pieces()
    stops = Stops(engine.tokenizer, THINK, region="reasoning", streamer=pieces)
    engine.generate(reciter.prompt("thought"), stops)
    assert pieces.texts == [("reasoning", "Is it 5", 0), ("reasoning", "?", 0), ("answer", "It is ", 1)]
    assert pieces.ends == 1


def test_options_hold_for_segments(engine: Engine, reciter: Reciter) -> None:
    def segments_with(**options: Any) -> list[Segment]:
        stops = Stops(engine.tokenizer, THINK, **options)
        engine.generate(reciter.prompt("think"), stops)
        return stops.segments[0]

    assert segments_with(include_stop=True) == [*ANSWER[:1], ("answer", "It is 5 or 6 END", 2)]
    assert segments_with(min_tokens=50) == [*ANSWER[:1], ("answer", "It is 5 or 6 END here", 2)]
    assert segments_with(stop_token_ids=reciter.token_id("think", " or")) == [*ANSWER[:1], ("answer", "It is 5", 2)]


def test_a_row_that_is_over_gets_no_segment_more(engine: Engine, reciter: Reciter) -> None:
    pieces = Pieces()
    stops = Stops(engine.tokenizer, THINK, streamer=pieces)
    ids = torch.tensor([[1, *reciter.token_ids("think"), reciter.eos_token_id]])
    stops.put(ids[:, :1])
    for length in (5, 17, 19):
        stops(ids[:, :length])
    assert joined(pieces.texts) == ANSWER


def test_stream_closed_at_once_ends_with_a_segment(engine: Engine) -> None:
    pieces = Pieces()
    stops = Stops(engine.tokenizer, THINK, region="reasoning", streamer=pieces)
    stops.close()
    assert (pieces.texts, pieces.ends) == ([("reasoning", "", 0)], 1)


def test_closed_row_keeps_held_text_in_its_region(engine: Engine, reciter: Reciter) -> None:
    class Reader(Pieces):
        def on_finalized_text(self, text: Any, stream_end: bool = False) -> None:
            super().on_finalized_text(text, stream_end)
            if text == ("answer", " ", 2) and not stream_end:
                stops.close()

    stops = Stops(engine.tokenizer, THINK, streamer=Reader())
    with engine.counted() as steps:
        engine.generate(reciter.prompt("think"), stops)
    assert stops.segments == [ANSWER]
    assert (stops.finishes, len(steps)) == ([Finish("abort")], 14)


def test_beams_are_told_apart(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, THINK)
    sequences = engine.generate(reciter.prompt("think"), stops, streamed=False, num_beams=3)
    stops.trim(sequences)
    assert stops.segments == [ANSWER]


def test_the_region_that_the_answer_begins_in(tmp_path: Path) -> None:
    reciter = Reciter({"thought": ["Is it ", "END", "?", "</think>", "The ", "END", " now"]})
    engine = Engine.load(reciter.write(tmp_path))
    prompt = reciter.prompt("thought")

    def segments_with(markers: Any, **options: Any) -> list[Segment]:
        stops = Stops(engine.tokenizer, SegmentSet(markers, stop="END", stop_in=["answer"]), **options)
        engine.generate(prompt, stops)
        return stops.segments[0]

    inside = [("reasoning", "Is it END?", 0), ("answer", "The ", 1)]
    assert segments_with(FORMATS["think"]) == [("answer", "Is it ", 0)]
    assert segments_with(FORMATS["think"], region="reasoning") == inside
    # The last token of the prompt, [thought], makes the model write its script. Here this token is also an opening
    # marker of the reasoning.
    opened = {"answer": {"<think>": "reasoning", prompt: "reasoning"}, "reasoning": {"</think>": "answer"}}
    assert segments_with(opened) == inside
    assert segments_with(opened, region="answer") == [("answer", "Is it ", 0)]


def test_markers_are_no_stops(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, FORMATS["think"])
    engine.generate(reciter.prompt("think"), stops)
    assert stops.segments == [[("reasoning", "Is it END?", 1), ("answer", "It is 5 or 6 END here", 2)]]


def test_segments_need_a_segment_set(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, "END")
    engine.generate(reciter.prompt("split"), stops)
    with pytest.raises(RuntimeError, match="segments needs a SegmentSet"):
        _ = stops.segments


@pytest.mark.parametrize(
    ("stop", "options", "named"),
    [
        ("END", {"region": "answer"}, "region needs a SegmentSet"),
        (StopSet("END"), {"region": "answer"}, "region needs a SegmentSet"),
        (THINK, {"protect": [("<a>", "</a>")]}, "a SegmentSet takes no protect"),
        (THINK, {"start_protected": False}, "a SegmentSet takes no protect"),
        (THINK, {"region": "thoughts"}, "thoughts"),
    ],
)
def test_what_does_not_fit_raises_before_the_generation(
    engine: Engine, stop: Any, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        Stops(engine.tokenizer, stop, **options)


@pytest.mark.parametrize("streaming", [True, False])
def test_continuous_batching_is_told_apart(engine: Engine, reciter: Reciter, streaming: bool) -> None:
    config = ContinuousBatchingConfig(num_blocks=64, block_size=32, max_batch_tokens=128)
    with engine.model.continuous_batching_context_manager(
        continuous_batching_config=config, block=True, timeout=10
    ) as manager:
        for name in NAMES:
            ids = engine.tokenizer(reciter.prompt(name)).input_ids
            row = RowSegmenter(engine.tokenizer, THINK, prompt_token_ids=ids)
            request = manager.add_request(ids, eos_token_id=row, max_new_tokens=50, streaming=streaming)
            segments_with: list[Segment] = []
            for output in manager.request_id_iter(request):
                segments_with += row.segments(output)
                if output.is_finished():
                    break
            assert joined(segments_with) == told_apart(name)


def test_the_options_of_a_request(engine: Engine, reciter: Reciter) -> None:
    def segments_with(*ids: int, **options: Any) -> list[Segment]:
        row = RowSegmenter(engine.tokenizer, THINK, **options)
        assert any(token_id in row for token_id in (*ids, reciter.eos_token_id))
        return row.flush()

    answer, ids = reciter.token_ids("split"), reciter.token_ids("think")
    assert segments_with(*answer, region="reasoning") == [("reasoning", reciter.text("split"), 0)]
    assert segments_with(*answer, prompt_token_ids=ids[:1]) == [("reasoning", reciter.text("split"), 0)]
    assert segments_with(*ids, include_stop=True) == [*ANSWER[:1], ("answer", "It is 5 or 6 END", 2)]


def test_a_cancelled_request_gives_its_held_segments(engine: Engine, reciter: Reciter) -> None:
    row = RowSegmenter(engine.tokenizer, THINK, region="answer")
    for token_id in reciter.token_ids("think")[:-2]:
        assert token_id not in row
    assert row.flush() == [*ANSWER[:1], ("answer", "It is 5 or 6 E", 2)]
    assert row.flush() == []
    assert row.finish == Finish("abort")
