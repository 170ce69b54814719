"""Batches: when a row (the answer to one prompt) stops, the other rows go on."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

import mlx.core as mx
import mlx_lm
from mlx_harness import Steps
from mlx_lm.generate import BatchGenerator
from recital import recite

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm import RowScanner, RowSegmenter, batch_generate, stream_generate
from stopscan.segments import FORMATS, SegmentSet
from stopscan_conformance.reciter import SCRIPTS, Reciter

STOPS = ["END", "hello world", "6", "fgh", "XYZ", "STOP", "###", "ab", "aab", "ha!", "\n\nTwo", "<|end_of_document|>"]
NAMES = [*SCRIPTS]


def prompts(mlx: tuple[Any, Any], reciter: Reciter, names: Any) -> list[list[int]]:
    return [mlx[1].encode(reciter.prompt(name)) for name in names]


@pytest.mark.parametrize("include_stop", [False, True])
def test_rows_give_what_the_single_loop_gives(mlx: tuple[Any, Any], reciter: Reciter, include_stop: bool) -> None:
    model, tokenizer = mlx
    rows = [(name, stop) for name in NAMES for stop in (STOPS, "END", ["never"])]
    batch = batch_generate(
        model,
        tokenizer,
        prompts(mlx, reciter, [name for name, _ in rows]),
        stop=[[stop] if isinstance(stop, str) else stop for _, stop in rows],
        include_stop=include_stop,
        completion_batch_size=len(rows) // 2,
    )
    for (name, stop), text, finish in zip(rows, batch.texts, batch.finishes, strict=True):
        options = {"stop": stop, "include_stop": include_stop}
        single = list(stream_generate(model, tokenizer, reciter.prompt(name), **options))
        assert text == "".join(response.text for response in single), (name, stop)
        assert finish == single[-1].finish, (name, stop)
        assert text == recite(SCRIPTS[name], stop if isinstance(stop, list) else [stop], include_stop=include_stop).text


def test_a_row_that_stops_leaves_before_the_next_step(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = Steps(mlx[0]), mlx[1]
    batch = batch_generate(
        model,
        tokenizer,
        prompts(mlx, reciter, ["count", "split", "alphabet"]),
        stop=[["hello world"], ["END"], ["d"]],
        return_token_ids=True,
    )
    assert batch.texts == ["1, 2, 3 ", "This is the ", "abc"]
    # The rows end after 7, 6 and 4 tokens. mlx-lm begins the next step before it looks at a token, so each row takes
    # one step more than it has tokens.
    assert model.shapes == [(3, 1)] * 5 + [(2, 1)] * 2 + [(1, 1)]


def test_an_eos_ends_a_row_in_as_many_steps(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    ours, by_mlx_lm = Steps(mlx[0]), Steps(mlx[0])
    ids = prompts(mlx, reciter, ["count", "split", "held", "empty"])
    batch_generate(ours, mlx[1], ids, stop="never")
    mlx_lm.batch_generate(by_mlx_lm, mlx[1], ids)
    assert ours.shapes == by_mlx_lm.shapes


def test_a_loop_of_ones_own(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    scripts = [("count", ["hello world"]), ("emoji", ["now"]), ("held", ["STOP"]), ("late", ["<|end_of_document|>"])]
    late = ("split", ["END"])
    generator = BatchGenerator(model, max_tokens=16)
    rows: dict[int, tuple[RowScanner, list[str]]] = {}

    def insert(name: str, stop: list[str]) -> None:
        row = RowScanner(tokenizer, stop)
        (uid,) = generator.insert(prompts(mlx, reciter, [name]), stop_sequences=[row])
        rows[uid] = (row, [])

    for name, stop in scripts:
        insert(name, stop)
    reasons = {}
    while responses := generator.next_generated():
        for response in responses:
            row, texts = rows[response.uid]
            texts.append(row.text(response))
            assert (row.finish is None) == (response.finish_reason is None)
            if row.finish is not None:
                reasons[response.uid] = response.finish_reason
                assert response.prompt_cache is not None
        if len(rows) == len(scripts):
            insert(*late)  # while the other rows go on
    generator.close()
    for uid, (name, stop) in enumerate([*scripts, late]):
        expected = recite(SCRIPTS[name], stop, max_tokens=16)
        row, texts = rows[uid]
        assert texts == expected.texts
        assert (row.finish.matched_stop, reasons[uid]) == (expected.matched, expected.finish_reason)


def test_length_in_a_loop_gives_the_held_text(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    for limits in ({}, {"max_tokens": 5}):  # in the second run, the row also has mlx-lm's limit
        row = RowScanner(tokenizer, "STOP", **limits)
        generator = BatchGenerator(model)
        generator.insert(prompts(mlx, reciter, ["held"]), max_tokens=[5], stop_sequences=[row])
        responses = [response for step in iter(generator.next_generated, []) for response in step]
        generator.close()
        assert [row.text(response) for response in responses] == ["Please", " do", " not", " ", "ST"]
        assert (row.finish, responses[-1].finish_reason) == (Finish("length"), "length")


def test_without_stops_the_batch_is_mlx_lms(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    ids = prompts(mlx, reciter, NAMES)
    scripts = {"return_token_ids": True, "return_logprobs": True, "return_prompt_caches": True, "max_tokens": 12}
    ours, by_mlx_lm = (
        batch_generate(model, tokenizer, ids, **scripts),
        mlx_lm.batch_generate(model, tokenizer, ids, **scripts),
    )
    assert ours.texts == by_mlx_lm.texts
    assert ours.token_ids == by_mlx_lm.token_ids
    assert ours.logprobs == by_mlx_lm.logprobs
    assert [[part.offset for part in cache] for cache in ours.caches] == [
        [part.offset for part in cache] for cache in by_mlx_lm.caches
    ]
    assert ours.stats.generation_tokens == by_mlx_lm.stats.generation_tokens
    lengths = [len(SCRIPTS[name]) for name in NAMES]
    assert ours.finishes == [Finish("length" if length >= 12 else "eos") for length in lengths]


def test_token_ids_and_logprobs_end_where_the_text_ends(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    names = ["count", "inside", "alphabet", "held", "count"]
    batch = batch_generate(
        model,
        tokenizer,
        prompts(mlx, reciter, names),
        max_tokens=[50, 50, 3, 50, 50],
        stop=[["hello world"], ["END"], ["z"], ["STOP"], []],
        stop_token_ids=[reciter.token_id("count", "5")],
        return_token_ids=True,
        return_logprobs=True,
    )
    assert batch.texts == ["1, 2, 3 ", "The path W", "abc", "Please do not STO", "1, 2, 3 hello world 4, "]
    kept = [5, 3, 3, 6, 8]
    assert batch.token_ids == [reciter.token_ids(name)[:count] for name, count in zip(names, kept, strict=True)]
    assert [len(logprobs) for logprobs in batch.logprobs] == kept
    assert [finish.reason for finish in batch.finishes] == [
        "stop_sequence", "stop_sequence", "length", "eos", "stop_token",
    ]  # fmt: skip
    assert batch.caches is None


@pytest.mark.parametrize(
    ("stop", "texts"),
    [
        ("END", ["This is the ", "1, 2, 3 hello world 4, 5, 6, 7, 8"]),
        (["END", "6"], ["This is the ", "1, 2, 3 hello world 4, 5, "]),
        ((["END"], ["6"]), ["This is the ", "1, 2, 3 hello world 4, 5, "]),
        ([["END"], ["6"]], ["This is the ", "1, 2, 3 hello world 4, 5, "]),
        ([["6"], "2"], ["This is the END of it", "1, "]),
        ([None, StopSet("4")], ["This is the END of it", "1, 2, 3 hello world "]),
        (StopSet(visible=["END"]), ["This is the END", "1, 2, 3 hello world 4, 5, 6, 7, 8"]),
        (None, ["This is the END of it", "1, 2, 3 hello world 4, 5, 6, 7, 8"]),
    ],
)
def test_stops_for_all_rows_or_for_each(mlx: tuple[Any, Any], reciter: Reciter, stop: Any, texts: list[str]) -> None:
    assert batch_generate(*mlx, prompts(mlx, reciter, ["split", "count"]), stop=stop).texts == texts


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"stop": iter(["END", "6"])}, ["This is the ", "1, 2, 3 hello world 4, 5, "]),
        ({"stop": (stop for stop in ["END", "6"])}, ["This is the ", "1, 2, 3 hello world 4, 5, "]),
        ({"stop": {"END": 1, "6": 2}.keys()}, ["This is the ", "1, 2, 3 hello world 4, 5, "]),
        ({"stop": iter([["END"], ["6"]])}, ["This is the ", "1, 2, 3 hello world 4, 5, "]),
        ({"patterns": iter(["E.D", r"w\w+"])}, ["This is the ", "1, 2, 3 hello "]),
        ({"stop": iter(["END"]), "patterns": (each for each in ["6"])}, ["This is the ", "1, 2, 3 hello world 4, 5, "]),
        ({"stop": ["END", "hello"], "protect": iter([("This", "it")])}, ["This is the END of it", "1, 2, 3 "]),
    ],
)
def test_what_can_be_read_once_holds_for_all_rows(
    mlx: tuple[Any, Any], reciter: Reciter, options: Any, texts: list[str]
) -> None:
    """An option may be an iterator, and must hold for all rows. Before a fix, the first row read the iterator to its
    end, and the other rows silently had no stop."""
    assert batch_generate(*mlx, prompts(mlx, reciter, ["split", "count"]), **options).texts == texts


def test_one_shot_stop_token_ids_hold_for_all_rows(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    five = reciter.token_id("count", "5")
    batch = batch_generate(*mlx, prompts(mlx, reciter, ["count", "count"]), stop_token_ids=iter([five]))
    assert batch.texts == ["1, 2, 3 hello world 4, "] * 2


def test_options_hold_for_all_rows(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    def texts(**options: Any) -> list[str]:
        return batch_generate(*mlx, prompts(mlx, reciter, ["split", "think"]), stop="END", **options).texts

    assert texts(min_tokens=9) == ["This is the END of it", "<think>Is it END?</think>It is 5 or 6 "]
    opened = [("<thought>", "</think>")]
    assert texts(protect=opened) == ["This is the ", "<think>Is it "]
    assert texts(protect=opened, start_protected=True) == [
        "This is the END of it", "<think>Is it END?</think>It is 5 or 6 "
    ]  # fmt: skip


def test_other_options_are_mlx_lms(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    """``sampler`` is an option of mlx-lm. This sampler draws ids that are not in the tokenizer: they have no text, but
    count as tokens."""
    beyond, five = mlx[0].args.vocab_size - 1, reciter.token_id("count", "5")

    def drawn(*ids: int, **options: Any) -> Any:
        left = [*ids, *ids[-1:] * 5]
        sampler = lambda logprobs: mx.full(logprobs.shape[:-1], left.pop(0))  # noqa: E731
        return batch_generate(*mlx, prompts(mlx, reciter, ["count"]), sampler=sampler, return_token_ids=True, **options)

    batch = drawn(five, beyond, beyond, max_tokens=3)
    assert (batch.texts, batch.finishes, batch.token_ids) == (["5"], [Finish("length")], [[five, beyond, beyond]])
    batch = drawn(five, beyond, reciter.eos_token_id)
    assert (batch.texts, batch.finishes, batch.token_ids) == (["5"], [Finish("eos")], [[five, beyond]])
    batch = drawn(five, beyond, five, stop="55")
    assert (batch.texts, batch.token_ids) == ([""], [[]])


def test_caches_of_prompts_are_used_and_returned(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    ids, offsets = prompts(mlx, reciter, ["count", "split"]), []
    for batch, options in ((batch_generate, {"stop": "never"}), (mlx_lm.batch_generate, {})):
        first = batch(*mlx, ids, max_tokens=3, return_prompt_caches=True, **options)
        again = batch(*mlx, ids, first.caches, max_tokens=5, return_prompt_caches=True, **options)
        offsets.append([[cache[0].offset for cache in caches] for caches in (first.caches, again.caches)])
    assert offsets[0] == offsets[1]
    assert offsets[0][1][0] > offsets[0][0][0] > 0
    alone = batch_generate(*mlx, ids, stop="END")
    assert (alone.caches, alone.token_ids, alone.logprobs) == (None, None, None)


def test_protected_reasoning_by_row(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    ids = prompts(mlx, reciter, ["think", "split", "split"])
    # The first prompt ends with the opening marker, as with many chat templates. So the answer begins in the reasoning.
    ids[0].append(mlx[1].think_start_id)
    # The second prompt has the opening marker in the user's own text, before other text. There it opens no region.
    ids[1] = [mlx[1].think_start_id, *ids[1]]
    texts = batch_generate(*mlx, ids, stop="END", protect="reasoning").texts
    assert texts == ["Is it END?</think>It is 5 or 6 ", "This is the ", "This is the "]
    assert batch_generate(*mlx, ids, stop="END").texts == ["Is it ", "This is the ", "This is the "]


def test_min_tokens_by_row(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    batch = batch_generate(*mlx, prompts(mlx, reciter, ["straddle", "held"]), stop=["XYZ", "END", "STO"], min_tokens=5)
    assert batch.texts == ["AbcXYZW EN", "Please do not "]


def test_bad_options_raise_before_any_step(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = Steps(mlx[0]), mlx[1]
    ids = prompts(mlx, reciter, ["count", "split"])
    for options, message in (
        ({"stop": [["a"], [""]]}, "stop 0 is empty"),
        ({"stop": [["a"], ["b"], ["c"]]}, "stop has 3 entries for 2 prompts"),
        ({"stop": "a", "max_tokens": [5]}, "max_tokens has 1 entries for 2 prompts"),
        ({"stop": "a", "min_tokens": 4, "max_tokens": [5, 3]}, "min_tokens 4"),
    ):
        with pytest.raises(ValueError, match=message):
            batch_generate(model, tokenizer, ids, **options)
    assert len(model) == 0


@pytest.mark.parametrize("max_tokens", [100, 15])
def test_rows_of_a_batch_are_told_apart(mlx: tuple[Any, Any], reciter: Reciter, max_tokens: int) -> None:
    model, tokenizer = mlx
    names = ["think", "unclosed", "split"]
    segments = SegmentSet(FORMATS["think"], stop="END", stop_in=["answer"])
    prompts = [tokenizer.encode(reciter.prompt(name)) for name in names]
    rows = [RowSegmenter(tokenizer, segments, prompt=prompt) for prompt in prompts]
    received: dict[RowSegmenter, dict[str, str]] = {row: {} for row in rows}
    with closing(BatchGenerator(model)) as generator:
        uids = generator.insert(prompts, [max_tokens] * len(prompts), stop_sequences=rows)
        row_of = dict(zip(uids, rows, strict=True))
        while responses := generator.next_generated():
            for response in responses:
                row = row_of[response.uid]
                for region, text, *_ in row.segments(response):
                    received[row][region] = received[row].get(region, "") + text
    answer = "It is 5 or 6 E" if max_tokens == 15 else "It is 5 or 6 "  # the limit ends the row after the E of END
    assert [received[row] for row in rows] == [
        {"reasoning": "Is it END?", "answer": answer},
        {"reasoning": "Still END thinking"},
        {"answer": "This is the "},
    ]


def test_a_scanner_is_for_one_row(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    row = RowScanner(mlx[1], "END")
    generator = BatchGenerator(mlx[0])
    generator.insert(prompts(mlx, reciter, ["count", "split"]), stop_sequences=[row, row])
    with pytest.raises(ValueError, match="already serves a row"):
        generator.next_generated()
    generator.close()


def test_no_prompts(mlx: tuple[Any, Any]) -> None:
    batch = batch_generate(*mlx, [], stop="END")
    assert (batch.texts, batch.finishes) == ([], [])
