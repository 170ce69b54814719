"""``RowScanner`` alone, without mlx-lm's generation loop. A program with another generation loop would use it in this
way."""

from __future__ import annotations

import pickle
from copy import copy, deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import load, with_tool_calls
from recital import recite
from transformers import ByT5Tokenizer

from stopscan import StopMatch
from stopscan.finish import Finish
from stopscan.mlx_lm import RowScanner, RowSegmenter
from stopscan.tokens import TokenScanner, TokenSegmenter
from stopscan_conformance.reciter import SCRIPTS, Reciter


@pytest.mark.parametrize("name", ["count", "straddle", "held", "emoji", "broken", "spaces"])
def test_feed_gives_the_text_that_is_safe_by_then(mlx: tuple[Any, Any], reciter: Reciter, name: str) -> None:
    row = RowScanner(mlx[1], ["hello world", "STOP", "🛑", "END"])
    texts = []
    for token_id in [*reciter.token_ids(name), reciter.eos_token_id]:
        texts.append(row.feed(token_id))
        if row.finish:
            break
    expected = recite(SCRIPTS[name], ["hello world", "STOP", "🛑", "END"])
    assert texts == expected.texts
    assert row.finish.matched_stop == expected.matched
    assert row.tokens_seen == len(texts)


@pytest.mark.parametrize("reason", ["length", "abort"])
def test_flush_gives_the_held_text(mlx: tuple[Any, Any], reciter: Reciter, reason: Any) -> None:
    row = RowScanner(mlx[1], "STOP")
    assert "".join(map(row.feed, reciter.token_ids("held"))) == "Please do not "
    assert row.flush(reason) == "STO"
    assert row.finish == Finish(reason)
    assert row.feed(reciter.token_id("held", "O")) == row.flush() == ""
    assert row.finish == Finish(reason)


@pytest.mark.parametrize("unknown", [1, 2])
@pytest.mark.parametrize("place", range(8))
def test_ids_that_the_tokenizer_does_not_have_are_counted(
    mlx: tuple[Any, Any], reciter: Reciter, place: int, unknown: int
) -> None:
    model, tokenizer = mlx
    ids = reciter.token_ids("count")[:7]  # the stop begins in the fifth token, and completes with the last
    ids[place:place] = [model.args.vocab_size - 1] * unknown
    row = RowScanner(tokenizer, "hello world")
    assert "".join(map(row.feed, ids)) == "1, 2, 3 "
    assert row.finish.match == StopMatch("hello world", 8)
    assert row.tokens_seen == 7 + (unknown if place < 7 else 0)
    assert row.tokens_kept == 5 + (unknown if place < 5 else 0)


@pytest.mark.parametrize("place", range(7))
def test_unknown_ids_count_for_max_tokens(mlx: tuple[Any, Any], reciter: Reciter, place: int) -> None:
    model, tokenizer = mlx
    ids = reciter.token_ids("held")
    ids.insert(place, model.args.vocab_size - 1)
    row = RowScanner(tokenizer, "STOP", max_tokens=6)
    texts = [*map(row.feed, ids)]
    assert "".join(texts) == ("Please do not ST" if place < 6 else "Please do not STO")
    assert texts[6:] == [""]
    assert (row.finish, row.tokens_seen) == (Finish("length"), 6)


@pytest.mark.parametrize("place", range(4))
def test_unknown_ids_count_for_min_tokens(mlx: tuple[Any, Any], reciter: Reciter, place: int) -> None:
    model, tokenizer = mlx
    ids = reciter.token_ids("count")
    ids.insert(place, model.args.vocab_size - 1)
    row = RowScanner(tokenizer, ["1", "hello world"], min_tokens=5)
    assert row.feed_many(ids) == "1, 2, 3 "
    assert row.match == StopMatch("hello world", 8)


def test_copies_of_a_row_go_on_by_themselves(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowScanner(mlx[1], "hello world").matcher()
    ids = reciter.token_ids("count")
    assert row.feed_many(ids[:5]) == "1, 2, 3 "
    assert row.held == "hel"
    for other in (row.copy(), copy(row), deepcopy(row), pickle.loads(pickle.dumps(row.copy()))):
        assert other.matcher().feed_many(ids[5:]) == ""
        assert other.match == StopMatch("hello world", 8)
        assert (row.held, row.match, row.tokens_seen) == ("hel", None, 5)
    row.reset()
    assert row.matcher().feed_many(ids[:5]) == "1, 2, 3 "


@pytest.mark.parametrize("min_tokens", [0, 6])
@pytest.mark.parametrize("place", range(8))
def test_a_row_goes_on_from_its_snapshot(mlx: tuple[Any, Any], reciter: Reciter, place: int, min_tokens: int) -> None:
    model, tokenizer = mlx
    unknown = model.args.vocab_size - 1  # an id that the tokenizer does not have
    ids = [unknown, *reciter.token_ids("count")[:7]]
    options = {"min_tokens": min_tokens, "max_tokens": 50}
    row, other = (RowScanner(tokenizer, ["hello world", "1"], **options) for _ in range(2))
    other.feed_many(ids[::-1])
    text_so_far, going_on = "", SimpleNamespace(finish_reason=None)
    for token_id in ids[:place]:
        row.advance(token_id)
        with pytest.raises(ValueError, match="1 responses of this row were not passed"):
            row.snapshot()  # refused: `text` has not returned the token's text yet, so a snapshot would lose it
        text_so_far += row.text(going_on)
    other.restore(pickle.loads(pickle.dumps(row.snapshot())))
    assert (other.held, other.tokens_seen, other.finish) == (row.held, row.tokens_seen, row.finish)
    for one in (row, other):
        for token_id in ids[place:]:
            one.advance(token_id)
        rest = "".join(one.text(going_on) for _ in ids[place:])
        assert text_so_far + rest == ("1, 2, 3 " if min_tokens else "")
        assert one.match == (StopMatch("hello world", 8) if min_tokens else StopMatch("1", 0))


def test_wrong_snapshot_of_a_row_is_refused(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowScanner(mlx[1], "hello world", max_tokens=50)
    row.feed_many(reciter.token_ids("count")[:5])
    snapshot = row.snapshot()
    assert len(snapshot) < 256
    others = [RowScanner(mlx[1], "hello world"), RowScanner(mlx[1], "hello", max_tokens=50)]
    for wrong in (b"", b"1234", snapshot[:-1], snapshot[:9] + b"x" + snapshot[10:], *(o.snapshot() for o in others)):
        with pytest.raises(ValueError, match=r"the snapshot (is|has version|was made)"):
            row.restore(wrong)
        assert (row.held, row.tokens_seen) == ("hel", 5)


def test_eos_ids_and_special_tokens_can_be_chosen(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    ids = reciter.token_ids("harmony")
    row = RowScanner(mlx[1], "it", skip_special_tokens=True)
    assert row.feed_many(ids) == "analysisIs "
    row = RowScanner(mlx[1], "it", eos_token_ids=ids[2])
    assert row.feed_many(ids) == "<|channel|>analysis"
    assert row.finish == Finish("eos")


def test_a_row_has_the_names_of_a_token_scanner(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    rows = {TokenScanner: RowScanner(mlx[1], stop="END"), TokenSegmenter: RowSegmenter(mlx[1], {"answer": {}})}
    for scanner, row in rows.items():
        assert {name for name in dir(scanner) if not name.startswith("_")} <= {*dir(row)}
        row.feed_many(reciter.token_ids("count"))
        assert (row.tokens_in, row.region) == ({"answer": row.tokens_seen}, "answer")
        assert type(row).__name__ in repr(row)


def test_a_response_is_asked_for_once(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowScanner(mlx[1], "END")
    response = SimpleNamespace(finish_reason=None)
    row.advance(reciter.token_ids("count")[0])
    assert row.text(response) == "1"
    with pytest.raises(ValueError, match="without a new response"):
        row.text(response)


@pytest.mark.parametrize("wrong", [-1, 2**32, 2**40])
def test_what_is_no_token_id_is_refused(mlx: tuple[Any, Any], wrong: int) -> None:
    with pytest.raises(ValueError, match=f"token id {wrong} is not in the vocabulary"):
        RowScanner(mlx[1], "END").feed(wrong)


def test_an_early_eos_is_counted_once(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowScanner(mlx[1], "STOP", min_tokens=50)
    ids = [*reciter.token_ids("held"), reciter.eos_token_id]
    assert "".join(map(row.feed, ids)) == reciter.text("held")
    assert [row.feed(token_id) for token_id in ids] == [""] * len(ids)
    assert (row.finish, row.tokens_seen, row.tokens_kept) == (Finish("eos"), 7, 6)


@pytest.mark.parametrize("min_tokens", [0, 2, 7])
def test_eos_text_is_a_stop_only_whole(mlx: tuple[Any, Any], reciter: Reciter, min_tokens: int) -> None:
    ids = [*reciter.token_ids("split"), reciter.eos_token_id]
    row = RowScanner(mlx[1], "f it<|eos|>", min_tokens=min_tokens)
    assert "".join(map(row.feed, ids)) == "This is the END of it"
    assert row.finish == Finish("eos")
    row = RowScanner(mlx[1], "<|eos|>", min_tokens=min_tokens)
    assert "".join(map(row.feed, ids)) == "This is the END of it"
    assert row.finish.matched_stop == "<|eos|>"


def test_special_tokens_are_text(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowScanner(mlx[1], "<|end|>")
    assert "".join(map(row.feed, reciter.token_ids("harmony"))) == "<|channel|>analysis<|message|>Is it END?"


def test_regions_of_both_kinds_and_markers_of_ones_own(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    tokenizer = with_tool_calls(mlx[1], " 5", "6")
    try:
        row = RowScanner(tokenizer, ["END", "or"], protect=["reasoning", "tool_call", " E", "he"])
        assert "".join(map(row.feed, reciter.token_ids("think"))) == reciter.text("think")
    finally:
        with_tool_calls(tokenizer, None, None)


def test_reasoning_in_answers_of_several_parts(tmp_path: Path) -> None:
    muse_spark = pytest.importorskip("mlx_lm.chat_templates.muse_spark", reason="mlx-lm has those from 0.32.2 on")
    script = ["to=", "self<|message|>", "Is it EN", "D?", "<|eom|>", "to=user<|message|>", "It is EN", "D."]
    reciter = Reciter({"parts": script}, added_tokens=())
    _, tokenizer = load(reciter.write(tmp_path))
    parts = {"header": [("to=self", "reasoning")], "reasoning": [("<|eom|>", "normal"), ("<|eot|>", "header")]}
    tokenizer._response_format = {"transitions": parts}  # two different markers may end the reasoning
    row = RowScanner(tokenizer, "END", protect="reasoning")
    assert row.feed_many(reciter.token_ids("parts")) == "".join(script[:-2]) + "It is "
    tokenizer._response_format = deepcopy(muse_spark.RESPONSE_FORMAT)
    # A new marker "Is it" leads from the reasoning to the reasoning again. So the reasoning must go on after it.
    tokenizer._response_format["transitions"]["reasoning"].insert(0, ("Is it", "reasoning"))
    for prompt, shown in (("", 0), ("to=self<|message|>", 2)):
        row = RowScanner(tokenizer, "END", protect="reasoning", prompt=prompt)
        assert "".join(map(row.feed, reciter.token_ids("parts")[shown:])) == "".join(script[shown:-2]) + "It is "


def test_a_call_in_the_reasoning_ends_it(mlx: tuple[Any, Any]) -> None:
    """A tool call in the reasoning must end the reasoning. Before a fix, only ``</think>`` ended it, so no stop fired
    in the answer after a tool call."""
    tokenizer = with_tool_calls(mlx[1], "<tool_call>", "</tool_call>")
    try:
        row = RowScanner(tokenizer, "END", protect=["reasoning", "tool_call"])
    finally:
        with_tool_calls(tokenizer, None, None)
    text = "<think>hm END<tool_call>END</tool_call>done END more"
    assert row.feed_many(tokenizer.encode(text)) == "<think>hm END<tool_call>END</tool_call>done "
    assert row.match == StopMatch("END", 44)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"stop_token_ids": [-1]}, ValueError, "stop_token_ids: -1"),
        ({"stop_token_ids": [2**70]}, ValueError, "stop_token_ids"),
        ({"stop_token_ids": "5"}, TypeError, "stop_token_ids: expected token ids, got str"),
        ({"eos_token_ids": 5.0}, TypeError, "eos_token_ids: expected int, got float"),
        ({"max_tokens": [5]}, TypeError, "max_tokens: expected int, got list"),
        ({"stop_ids": 5}, TypeError, "stop_ids"),
        ({"protect": "thoughts"}, ValueError, "'thoughts' is not a region"),
        ({"protect": "tool_call"}, ValueError, "no markers for 'tool_call'"),
        ({"protect": 5}, ValueError, "protect must be a list of names of regions or pairs of markers, not 5"),
        ({"start_protected": True}, ValueError, "start_protected"),
    ],
)
def test_bad_options(mlx: tuple[Any, Any], options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RowScanner(mlx[1], "END", **options)


def test_a_tokenizer_of_an_unknown_kind_is_scanned() -> None:
    """``RowScanner`` must work with ByT5's tokenizer, in which each id is a byte plus 3. Before a fix, it raised a
    TypeError for such a tokenizer."""
    row = RowScanner(ByT5Tokenizer(), "END")
    assert row.feed_many([byte + 3 for byte in b"\xc3\xa4 END"]) == "\u00e4 "
    assert row.match is not None
