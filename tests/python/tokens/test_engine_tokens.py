"""Token ids as engines draw them, beside the reference: an id without a token is a piece without text."""

from __future__ import annotations

import pickle
from copy import copy, deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recital import recite
from tokenizers import Tokenizer

from stopscan import StopSet
from stopscan._engine.tokens import EngineTokens
from stopscan.finish import Finish
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary
from stopscan_conformance.reciter import SCRIPTS, Reciter

UNKNOWN = 65_000  # ids that the model has, and the tokenizer has not
STOPS = ["hello world", "4,", "2"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory, reciter: Reciter) -> Vocabulary:
    path: Path = reciter.write(tmp_path_factory.mktemp("checkpoint"))
    return Vocabulary(Tokenizer.from_file(str(path / "tokenizer.json")))


def tokens_of(vocabulary: Vocabulary, stop: Any = STOPS, max_tokens: int | None = None, **options: Any) -> Any:
    make = partial(TokenScanner, vocabulary, StopSet(stop))
    return EngineTokens(make, max_tokens, options, model_eos_ids=[1])


unknown_at = st.lists(st.integers(0, 9), max_size=4)


@given(unknown_at, st.integers(0, 12), st.integers(0, 14), st.sampled_from([STOPS, ["hello world"], ["3 h", "1"]]))
def test_an_id_without_a_token_is_a_piece_without_text(
    vocabulary: Vocabulary, reciter: Reciter, places: list[int], min_tokens: int, limit: int, stop: list[str]
) -> None:
    ids, pieces = reciter.token_ids("count"), list(SCRIPTS["count"])
    for place in places:
        ids.insert(place, UNKNOWN + place)
        pieces.insert(place, "")
    max_tokens = min_tokens + limit + 1
    tokens = tokens_of(vocabulary, stop, max_tokens, min_tokens=min_tokens)
    texts = []
    for token_id in ids:
        texts.append(tokens.feed(token_id))
        if tokens.finish is not None:
            break
    else:
        texts.append(tokens.close())
    expected = recite(pieces, stop, min_tokens=min_tokens, max_tokens=max_tokens)
    assert texts == expected.texts
    assert tokens.finish.matched_stop == expected.matched
    assert (tokens.match and tokens.match.sequence) == expected.matched
    assert (tokens.finish.reason == "length") == (expected.finish_reason == "length")
    assert tokens.tokens_seen == min(len(texts), len(ids))


@given(unknown_at, st.integers(0, 12), st.integers(0, 14))
def test_copies_and_runs_go_on_as_the_tokens_do_one_by_one(
    vocabulary: Vocabulary, reciter: Reciter, places: list[int], min_tokens: int, cut: int
) -> None:
    ids = reciter.token_ids("count")
    for place in places:
        ids.insert(place, UNKNOWN)
    one, run = (tokens_of(vocabulary, min_tokens=min_tokens) for _ in range(2))
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
def test_an_eos_ends_the_stream_at_any_time(
    vocabulary: Vocabulary, reciter: Reciter, min_tokens: int, seen: int
) -> None:
    first, second = reciter.token_ids("count")[:2]
    tokens = tokens_of(vocabulary, min_tokens=min_tokens, eos_token_ids=UNKNOWN)
    assert tokens.feed_many([first, second, UNKNOWN, first]) == "1, "
    assert (tokens.finish, tokens.tokens_seen) == (Finish("eos"), seen)


def test_an_unknown_id_that_stops_does_not_count_before_min_tokens(vocabulary: Vocabulary) -> None:
    tokens = tokens_of(vocabulary, min_tokens=2, stop_token_ids=UNKNOWN)
    assert [tokens.feed(UNKNOWN), tokens.feed(UNKNOWN), tokens.finish] == ["", "", None]
    assert tokens.feed(UNKNOWN) == ""
    assert tokens.finish == Finish("stop_token", UNKNOWN)


@pytest.mark.parametrize("min_tokens", [0, 5])
@pytest.mark.parametrize("wrong", [-1, 2**31, 2**40, 2**70])
def test_what_is_no_id_is_refused_and_changes_nothing(
    vocabulary: Vocabulary, reciter: Reciter, wrong: int, min_tokens: int
) -> None:
    tokens = tokens_of(vocabulary, min_tokens=min_tokens)
    with pytest.raises(ValueError, match=f"token_id: {wrong} is no token id"):
        tokens.feed(wrong)
    with pytest.raises(ValueError, match=f"{wrong} is no token id"):
        tokens.feed_many([*reciter.token_ids("count"), wrong])
    with pytest.raises(TypeError, match="str"):
        tokens.feed("5")
    assert tokens.tokens_seen == 0


@pytest.mark.parametrize("name", ["stop_token_ids", "eos_token_ids", "min_tokens"])
def test_a_bad_option_is_named(vocabulary: Vocabulary, name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: expected int, got str"):
        tokens_of(vocabulary, **{name: "5"})
    with pytest.raises(TypeError, match="threshold"):
        tokens_of(vocabulary, threshold=5)


def test_segments_are_joined(vocabulary: Vocabulary, reciter: Reciter) -> None:
    make = partial(TokenSegmenter, vocabulary, SegmentSet({"answer": {"<x>": "call"}, "call": {}}))
    tokens: Any = EngineTokens(make, None, {"min_tokens": 3}, model_eos_ids=())
    ids = reciter.token_ids("count")
    assert tokens.feed_many([UNKNOWN, *ids[:6], UNKNOWN]) == [("answer", "1, 2, 3 hello wor", 0)]
    assert tokens.feed_many([UNKNOWN]) == []
    assert tokens.tokens_seen == 9
