"""Single cases of a `TokenSegmenter`: what it counts, how its streams end, and which arguments it refuses."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from tokenizers import Tokenizer, models
from vocabularies import staged
from whole import ended, stopped

from stopscan import StopMatch
from stopscan.finish import Finish
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenSegmenter, Vocabulary

THINKING = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}


def test_token_may_span_two_regions_and_marker() -> None:
    tokenizer, ids = staged("Is it 5", "?</think>It", " is", " 6", "<th", "ink>", "x")
    segmenter = TokenSegmenter(tokenizer, THINKING, region="reasoning")
    outputs = [segmenter.feed(token_id) for token_id in ids]
    assert outputs[:3] == [
        [("reasoning", "Is it 5", 0)],
        [("reasoning", "?", 0), ("answer", "It", 1)],
        [("answer", " is", 1)],
    ]
    assert outputs[3:] == [[("answer", " 6", 1)], [], [], [("reasoning", "x", 2)]]
    # A token counts in the region of its last character, so "?</think>It" counts in the answer. The token "ink>"
    # completes a marker, so it counts in no region.
    assert segmenter.tokens_in == {"answer": 4, "reasoning": 2}
    assert (segmenter.tokens_seen, segmenter.tokens_kept) == (7, 7)


def test_half_characters_count_with_following_text() -> None:
    tokenizer, ids = staged(b"\xf0\x9f", b"\x9a\x80", "<pad>", "<think>", "a", b"\xc3", special=["<pad>", "<think>"])
    segmenter = TokenSegmenter(tokenizer, THINKING)
    half, rest, pad, think, a, begun = ids
    assert segmenter.feed_many([half, rest, pad, think, pad, a, begun]) == [("answer", "🚀", 0), ("reasoning", "a", 1)]
    assert segmenter.tokens_in == {"answer": 3, "reasoning": 2}  # the first <pad> counts in the answer
    assert segmenter.flush() == [("reasoning", "\ufffd", 1)]
    assert segmenter.tokens_in == {"answer": 3, "reasoning": 3}


def test_held_tokens_count_when_given_out() -> None:
    tokenizer, ids = staged("a", "</", "th", "!", "E", "ND")
    segmenter = TokenSegmenter(tokenizer, SegmentSet(THINKING, stop=["END"]), region="reasoning")
    counts = []
    for token_id in ids:
        segmenter.feed(token_id)
        counts.append(segmenter.tokens_in["reasoning"])
    assert counts == [1, 1, 1, 4, 4, 4]  # the tokens of a hidden stop count in no region
    assert segmenter.finish == stopped(6)
    assert (segmenter.tokens_seen, segmenter.tokens_kept) == (6, 4)


def test_a_marker_of_several_tokens_some_of_them_special() -> None:
    names = ["<|channel|>", "<|message|>"]
    markers = {"answer": {"<|channel|>analysis<|message|>": "reasoning"}, "reasoning": {}}
    tokenizer, ids = staged(names[0], "analysis", names[1], "Hm", special=names)
    segmenter = TokenSegmenter(tokenizer, markers, skip_special_tokens=False)
    assert segmenter.feed_many(ids) == [("reasoning", "Hm", 1)]
    # The third token completes the marker, so it counts in no region.
    assert segmenter.tokens_in == {"answer": 2, "reasoning": 1}


def test_every_end_is_reported_as_by_the_scanner() -> None:
    tokenizer, (a, end) = staged("a", "</s>", special=["</s>"])
    ends: list[tuple[dict[str, Any], Finish]] = [
        ({"eos_token_ids": end}, Finish("eos")),
        ({"stop_token_ids": end}, ended(end)),
        ({"max_tokens": 2}, Finish("length")),
    ]
    for options, finish in ends:
        segmenter = TokenSegmenter(tokenizer, THINKING, **options)
        assert (segmenter.feed_many([a, end, a]), segmenter.finish) == ([("answer", "a", 0)], finish)
        assert (segmenter.feed(a), segmenter.flush("abort"), segmenter.finish) == ([], [], finish)
    segmenter = TokenSegmenter(tokenizer, THINKING)
    assert segmenter.feed(a) == [("answer", "a", 0)]
    assert (segmenter.flush("abort"), segmenter.finish) == ([], Finish("abort"))


def test_the_match_counts_markers() -> None:
    tokenizer, ids = staged("5</think>", "6 END")
    segmenter = TokenSegmenter(tokenizer, SegmentSet(THINKING, stop=["END"]), region="reasoning")
    assert segmenter.feed_many(ids) == [("reasoning", "5", 0), ("answer", "6 ", 1)]
    assert segmenter.match == StopMatch("END", 11)


def test_patterns_end_a_stream() -> None:
    tokenizer, ids = staged("5</think>", "6 us", "er 7:", " 8")
    segments = SegmentSet(THINKING, patterns=[r"user ?\d:"])
    segmenter = TokenSegmenter(tokenizer, segments, region="reasoning")
    assert segmenter.feed_many(ids) == [("reasoning", "5", 0), ("answer", "6 ", 1)]
    assert segmenter.finish == stopped(11, "user 7:")


def test_a_tokenizer_that_decodes_itself() -> None:
    """This tokenizer has no decoder. Its `decode` joins tokens by spaces, so single ids do not give the text."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "think": 1, "b": 2, "END": 3}, unk_token="a"))
    assert not Vocabulary(tokenizer).native
    segments = SegmentSet({"answer": {"think": "reasoning"}, "reasoning": {}}, stop=["END"])
    segmenter = TokenSegmenter(tokenizer, segments)
    outputs = [segmenter.feed(token_id) for token_id in [0, 0, 1, 2]]
    assert outputs == [[("answer", "a", 0)], [("answer", " a", 0)], [("answer", " ", 0)], [("reasoning", " b", 1)]]
    assert segmenter.tokens_in == {"answer": 2, "reasoning": 1}
    other = copy.copy(segmenter)
    assert (
        pickle.loads(pickle.dumps(segmenter)).feed(3) == other.feed(3) == segmenter.feed(3) == [("reasoning", " ", 1)]
    )
    assert segmenter.finish == other.finish == stopped(12)


def test_what_is_refused() -> None:
    tokenizer, (a,) = staged("a")
    for options, error, message in [
        ({"region": "nowhere"}, ValueError, "nowhere"),
        ({"max_tokens": 2.5}, TypeError, "max_tokens"),
        ({"eos_token_ids": "2"}, TypeError, "eos_token_ids"),
        ({"prompt_token_ids": [7]}, ValueError, "prompt_token_ids"),
    ]:
        with pytest.raises(error, match=message):
            TokenSegmenter(tokenizer, THINKING, **options)
    segmenter = TokenSegmenter(tokenizer, THINKING)
    for token_id in (7, -1, 2**40):
        with pytest.raises(ValueError, match=str(token_id)):
            segmenter.feed(token_id)
    with pytest.raises(ValueError, match="7"):
        segmenter.feed_many([a, 7])
    with pytest.raises(TypeError, match="token_id"):
        segmenter.feed("a")  # type: ignore[arg-type]
    assert (segmenter.tokens_seen, segmenter.held) == (0, "")


def test_a_state_of_another_set_is_refused() -> None:
    tokenizer, ids = staged("a", "</")
    segmenter = TokenSegmenter(tokenizer, THINKING, region="reasoning")
    segmenter.feed_many(ids)
    state = segmenter.__reduce__()[2]
    for markers in ({"answer": {}}, {"answer": {}, "reasoning": {}}, {**THINKING, "tool": {}}):
        with pytest.raises(ValueError, match="another set"):
            TokenSegmenter(tokenizer, markers).__setstate__(state)
