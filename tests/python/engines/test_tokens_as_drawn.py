"""Streams of token ids that an engine may sample. Some ids are unknown to the tokenizer and have no text. The results
are compared with those of a reference, a simple program."""

from __future__ import annotations

import pickle
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers", reason="the extra stopscan[tokenizers] is not installed")
from hypothesis import given
from hypothesis import strategies as st
from recital import recite
from tokenizers import Tokenizer

from stopscan import StopSet
from stopscan.engines import Checkpoint, StopOptions
from stopscan.engines.rows import split
from stopscan.finish import Finish
from stopscan.segments import SegmentSet
from stopscan_conformance.reciter import SCRIPTS, Reciter

UNKNOWN = 65_000  # the model has this id and higher ones, but the tokenizer does not
STOPS = ["hello world", "4,", "2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, reciter: Reciter) -> Checkpoint:
    path: Path = reciter.write(tmp_path_factory.mktemp("checkpoint"))
    return Checkpoint(Tokenizer.from_file(str(path / "tokenizer.json")))


def tokens_of(model: Checkpoint, stop: Any = STOPS, **options: Any) -> Any:
    given, engine = split(StopSet(stop), {"eos_token_ids": [1], **options})
    return model.scanner(given, **engine)


unknown_at = st.lists(st.integers(0, 9), max_size=4)


@given(unknown_at, st.integers(0, 12), st.integers(0, 14), st.sampled_from([STOPS, ["hello world"], ["3 h", "1"]]))
def test_id_without_token_is_a_textless_piece(
    model: Checkpoint, reciter: Reciter, places: list[int], min_tokens: int, limit: int, stop: list[str]
) -> None:
    ids, pieces = reciter.token_ids("count"), list(SCRIPTS["count"])
    for place in places:
        ids.insert(place, UNKNOWN + place)
        pieces.insert(place, "")
    max_tokens = min_tokens + limit + 1
    tokens = tokens_of(model, stop, max_tokens=max_tokens, min_tokens=min_tokens)
    texts = []
    for token_id in ids:
        texts.append(tokens.feed(token_id))
        if tokens.finish is not None:
            break
    else:
        texts.append(tokens.flush())
    expected = recite(pieces, stop, min_tokens=min_tokens, max_tokens=max_tokens)
    assert texts == expected.texts
    assert tokens.finish.matched_stop == expected.matched
    assert (tokens.match and tokens.match.sequence) == expected.matched
    assert (tokens.finish.reason == "length") == (expected.finish_reason == "length")
    assert tokens.tokens_seen == min(len(texts), len(ids))


@given(unknown_at, st.integers(0, 12), st.integers(0, 14))
def test_copies_and_runs_equal_single_tokens(
    model: Checkpoint, reciter: Reciter, places: list[int], min_tokens: int, cut: int
) -> None:
    ids = reciter.token_ids("count")
    for place in places:
        ids.insert(place, UNKNOWN)
    one, run = (tokens_of(model, min_tokens=min_tokens) for _ in range(2))
    before = "".join(map(one.feed, ids[:cut]))
    assert run.feed_many(ids[:cut]) == before
    others = [one.copy(), copy(one), deepcopy(one), pickle.loads(pickle.dumps(one))]
    rest = "".join(map(one.feed, ids[cut:]))
    for other in [run, *others]:
        assert other.feed_many(ids[cut:]) == rest
        assert (other.finish, other.held, other.tokens_seen) == (one.finish, one.held, one.tokens_seen)
        assert other.tokens_kept == one.tokens_kept
        other.reset()
        assert "".join(map(other.feed, ids)) == before + rest


@pytest.mark.parametrize(("min_tokens", "seen"), [(0, 3), (2, 3), (9, 3)])
def test_an_eos_ends_the_stream_at_any_time(model: Checkpoint, reciter: Reciter, min_tokens: int, seen: int) -> None:
    first, second = reciter.token_ids("count")[:2]
    tokens = tokens_of(model, min_tokens=min_tokens, eos_token_ids=UNKNOWN)
    assert tokens.feed_many([first, second, UNKNOWN, first]) == "1, "
    assert (tokens.finish, tokens.tokens_seen) == (Finish("eos"), seen)


def test_unknown_stop_id_is_ignored_before_min_tokens(model: Checkpoint) -> None:
    tokens = tokens_of(model, min_tokens=2, stop_token_ids=UNKNOWN)
    assert [tokens.feed(UNKNOWN), tokens.feed(UNKNOWN), tokens.finish] == ["", "", None]
    assert tokens.feed(UNKNOWN) == ""
    assert tokens.finish == Finish("stop_token", UNKNOWN)


@pytest.mark.parametrize("min_tokens", [0, 5])
@pytest.mark.parametrize("wrong", [-1, 2**32, 2**40, 2**70])
def test_what_is_no_id_is_refused_and_changes_nothing(
    model: Checkpoint, reciter: Reciter, wrong: int, min_tokens: int
) -> None:
    tokens = tokens_of(model, min_tokens=min_tokens)
    with pytest.raises(ValueError, match=f"token id {wrong} is not in the vocabulary"):
        tokens.feed(wrong)
    with pytest.raises(ValueError, match=f"token id {wrong} is not in the vocabulary"):
        tokens.feed_many([*reciter.token_ids("count")[:1], wrong])
    with pytest.raises(TypeError, match="str"):
        tokens.feed("5")
    assert tokens.tokens_seen == 0


def test_segments_are_joined(model: Checkpoint, reciter: Reciter) -> None:
    segments = SegmentSet({"answer": {"<x>": "call"}, "call": {}})
    tokens = model.segmenter(StopOptions(segments, min_tokens=3))
    ids = reciter.token_ids("count")
    assert [segment[:2] for segment in tokens.feed_many([UNKNOWN, *ids[:6], UNKNOWN])] == [
        ("answer", "1, 2, 3 hello wor")
    ]
    assert tokens.feed_many([UNKNOWN]) == []
    assert tokens.tokens_seen == 9
