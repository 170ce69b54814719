"""``RowSegmenter`` alone, without mlx-lm's generation loop. A program with another generation loop would use it in this
way."""

from __future__ import annotations

from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from stopscan.finish import Finish
from stopscan.mlx_lm import RowSegmenter
from stopscan.segments import FORMATS, Segment, SegmentSet, split
from stopscan_conformance.reciter import SCRIPTS, Reciter

THINK = SegmentSet(FORMATS["think"], stop="END", stop_in=["answer"])
NAMES = ["think", "unclosed", "split", "count"]
ANSWER = [("reasoning", "Is it END?"), ("answer", "It is 5 or 6 ")]


def joined(segments: Any) -> list[tuple[str, str]]:
    return [(region, "".join(one[1] for one in run)) for region, run in groupby(segments, lambda one: one[0])]


def told_apart(name: str) -> list[tuple[str, str]]:
    return joined(split((str(piece) for piece in SCRIPTS[name]), THINK))


@pytest.mark.parametrize("name", NAMES)
def test_feed_gives_the_segments_that_are_safe_by_then(mlx: tuple[Any, Any], reciter: Reciter, name: str) -> None:
    row = RowSegmenter(mlx[1], THINK)
    received: list[Segment] = []
    for token_id in [*reciter.token_ids(name), reciter.eos_token_id]:
        received += row.feed(token_id)
        if row.finish:
            break
    assert joined(received) == told_apart(name)
    assert row.region == received[-1][0]
    if name == "think":
        assert row.finish == Finish("stop_sequence", "END", reciter.text("think").rindex("END"))
        # The tokens of the two markers and of the stop are not counted here. The reasoning is between the markers. The
        # answer is between the closing marker and the stop.
        assert row.tokens_in == {"reasoning": 6, "answer": 6}
        assert (row.tokens_seen, row.tokens_kept) == (16, 14)


def test_flush_gives_the_held_segment(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowSegmenter(mlx[1], THINK)
    received = [segment for token_id in reciter.token_ids("think")[:15] for segment in row.feed(token_id)]
    assert joined(received) == ANSWER
    assert joined(row.flush("abort")) == [("answer", "E")]
    assert (row.flush(), row.feed(reciter.eos_token_id), row.finish) == ([], [], Finish("abort"))


@pytest.mark.parametrize("place", range(3))
def test_ids_that_the_tokenizer_does_not_have_are_counted(mlx: tuple[Any, Any], reciter: Reciter, place: int) -> None:
    model, tokenizer = mlx
    ids = reciter.token_ids("think")[:4]
    ids.insert(place, model.args.vocab_size - 1)
    row = RowSegmenter(tokenizer, THINK, max_tokens=4)
    assert joined(segment for token_id in ids for segment in row.feed(token_id)) == [("reasoning", "Is it")]
    assert (row.finish, row.tokens_seen) == (Finish("length"), 4)


def test_an_early_eos_ends_the_row(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowSegmenter(mlx[1], THINK, min_tokens=50)
    received = [segment for token_id in reciter.token_ids("think")[:16] for segment in row.feed(token_id)]
    assert joined(received) == [("reasoning", "Is it END?"), ("answer", "It is 5 or 6 END")]
    assert row.feed(reciter.eos_token_id) == []
    assert (row.finish, row.tokens_seen) == (Finish("eos"), 17)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "answer"),
        ({"prompt": "<|assistant|><think>\n"}, "reasoning"),
        ({"prompt": "What is <think>?"}, "answer"),
        ({"prompt": "<think>", "region": "answer"}, "answer"),
        ({"region": "reasoning"}, "reasoning"),
    ],
)
def test_the_region_that_the_answer_begins_in(mlx: tuple[Any, Any], options: dict[str, Any], expected: str) -> None:
    assert RowSegmenter(mlx[1], THINK, **options).region == expected


@pytest.mark.parametrize(
    ("name", "options", "end"),
    [
        ("think", {"include_stop": True}, "It is 5 or 6 END"),
        ("think", {"stop_token_ids": [" or"]}, "It is 5"),
        ("think", {"max_tokens": 10}, "It is"),
        ("harmony", {}, "It is 5 or 6 "),
    ],
)
def test_options(mlx: tuple[Any, Any], reciter: Reciter, name: str, options: dict[str, Any], end: str) -> None:
    if "stop_token_ids" in options:
        options = {"stop_token_ids": [reciter.token_id(name, piece) for piece in options["stop_token_ids"]]}
    markers = {"answer": {"<think>": "reasoning", "analysis<|message|>": "reasoning"}}
    markers["reasoning"] = dict.fromkeys(["</think>", "<|end|><|start|>assistant<|channel|>final<|message|>"], "answer")
    row = RowSegmenter(mlx[1], SegmentSet(markers, stop="END", stop_in=["answer"]), **options)
    received = joined(segment for token_id in reciter.token_ids(name) for segment in row.feed(token_id))
    assert received[-2:] == [("reasoning", "Is it END?"), ("answer", end)]
    assert received[:-2] == ([("answer", "<|channel|>")] if name == "harmony" else [])


def test_markers_are_enough(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowSegmenter(mlx[1], FORMATS["think"])
    received = joined(segment for token_id in reciter.token_ids("think") for segment in row.feed(token_id))
    assert received == [("reasoning", "Is it END?"), ("answer", "It is 5 or 6 END here")]


def test_an_unknown_region_is_refused(mlx: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match="thoughts"):
        RowSegmenter(mlx[1], THINK, region="thoughts")


def test_a_row_segmenter_is_for_one_row(mlx: tuple[Any, Any]) -> None:
    row = RowSegmenter(mlx[1], THINK)
    assert row.matcher() is row
    with pytest.raises(ValueError, match="this RowSegmenter already serves a row"):
        row.matcher()


@pytest.mark.parametrize("place", range(16))
def test_a_segmenter_goes_on_from_its_snapshot(mlx: tuple[Any, Any], reciter: Reciter, place: int) -> None:
    ids = reciter.token_ids("think")[:16]
    row, other = RowSegmenter(mlx[1], THINK), RowSegmenter(mlx[1], THINK)
    received, going_on = row.feed_many(ids[:place]), SimpleNamespace(finish_reason=None)
    other.restore(row.snapshot())
    for token_id in ids[place:]:
        other.advance(token_id)
        received += other.segments(going_on)
    assert joined(received) == ANSWER
    assert all(type(segment) is tuple for segment in received)
    assert (other.tokens_in, other.tokens_seen) == ({"reasoning": 6, "answer": 6}, 16)
