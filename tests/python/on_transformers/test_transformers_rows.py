"""Feeds tokens to the rows of ``Stops``, step by step, and tests what ``trim`` cuts off."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

import torch
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast, ProcessorMixin
from transformers.generation import utils
from transformers_harness import Engine, Pieces

from stopscan.finish import Finish
from stopscan.transformers import Stops
from stopscan_conformance.reciter import SCRIPTS, Reciter


def take(stops: Stops, prompts: Sequence[Sequence[int]], *steps: Sequence[Sequence[int]]) -> Any:
    """Appends the steps to the rows, and calls ``stops`` after each. A step has a list of new tokens for each row.
    Returns the rows."""
    sequences = torch.tensor(prompts)
    stops.put(sequences)
    for step in steps:
        sequences = torch.cat([sequences, torch.tensor(step)], dim=1)
        stops(sequences)
    return sequences


@pytest.mark.parametrize("place", range(8))
def test_unknown_ids_have_no_text(engine: Engine, reciter: Reciter, place: int) -> None:
    ids = reciter.token_ids("count")[:7]  # the stop begins in the fifth token, and completes with the last
    ids.insert(place, engine.model.config.vocab_size - 1)
    prompt = engine.tokenizer(reciter.prompt("count")).input_ids
    stops = Stops(engine.tokenizer, "hello world")
    sequences = take(stops, [prompt], *([[token_id]] for token_id in ids))
    assert (stops.texts, stops.finishes) == (["1, 2, 3 "], [Finish("stop_sequence", "hello world", 8)])
    assert stops.tokens_seen == [7 + (place < 7)]
    assert stops.trim(sequences)[0, len(prompt) :].tolist() == ids[: 5 + (place < 5)]


@pytest.mark.parametrize("min_tokens", [0, 50])
def test_ids_that_the_tokenizer_does_not_have_are_counted(engine: Engine, reciter: Reciter, min_tokens: int) -> None:
    """``trim`` keeps all tokens of a row up to the EOS, also those without text, and removes the tokens after it."""
    unknown = engine.model.config.vocab_size - 1
    ids = [unknown, *reciter.token_ids("split"), unknown, unknown, reciter.eos_token_id]
    stops = Stops(engine.tokenizer, "never", min_tokens=min_tokens)
    sequence = take(stops, [[1]], [[*ids, reciter.eos_token_id, 1]])
    assert (stops.texts, stops.finishes) == ([reciter.text("split")], [Finish("eos")])
    assert stops.trim(sequence)[0, 1:].tolist() == ids


def test_a_row_that_is_over_takes_nothing_more(engine: Engine, reciter: Reciter) -> None:
    """Tokens after the end are ignored, also if a step has several tokens and other rows go on."""
    count, late = reciter.token_ids("count"), reciter.token_ids("late")
    pieces = [Pieces(), Pieces()]
    stops = Stops(engine.tokenizer, "hello world", streamer=pieces)
    take(stops, [[1], [1]], [count[:8], late[:8]], [count[8:10], late[8:10]], [count[10:11], late[10:11]])
    assert ["".join(one.texts) for one in pieces] == stops.texts == ["1, 2, 3 ", "".join(SCRIPTS["late"][:11])]
    assert stops.tokens_seen == [7, 11]


@pytest.mark.parametrize(("pad", "eos", "filler"), [("<think>", "<|eos|>", "<think>"), (None, "<|eos|>", "<|eos|>")])
def test_trimmed_rows_are_filled_as_generate_fills_them(
    engine: Engine, reciter: Reciter, pad: str | None, eos: str, filler: str
) -> None:
    tokenizer = deepcopy(engine.tokenizer)
    tokenizer.pad_token, tokenizer.eos_token = pad, eos
    stops = Stops(tokenizer, "hello world")
    sequences = take(stops, [[1], [1]], [reciter.token_ids("count")[:9], reciter.token_ids("late")[:9]])
    cut = stops.trim(sequences)
    assert cut[0].tolist() == [1, *reciter.token_ids("count")[:5], *[tokenizer.convert_tokens_to_ids(filler)] * 4]
    assert cut[1].tolist() == [1, *reciter.token_ids("late")[:9]]


def test_a_tokenizer_without_an_eos(engine: Engine, reciter: Reciter) -> None:
    tokenizer = deepcopy(engine.tokenizer)
    tokenizer.pad_token = tokenizer.eos_token = None
    stops = Stops(tokenizer, "hello world")
    cut = stops.trim(take(stops, [[1], [1]], [reciter.token_ids("count")[:7], reciter.token_ids("late")[:7]]))
    assert stops.texts == ["1, 2, 3 ", "".join(SCRIPTS["late"][:7])]
    assert cut[0, 6:].tolist() == [0, 0]


def test_a_processor_carries_its_tokenizer(engine: Engine, reciter: Reciter) -> None:
    processor = ProcessorMixin.__new__(ProcessorMixin)
    processor.tokenizer = engine.tokenizer
    stops = Stops(processor, "hello world")
    engine.generate(reciter.prompt("count"), stops)
    assert stops.texts == ["1, 2, 3 "]


def test_the_first_word_of_an_answer_keeps_its_space() -> None:
    """SentencePiece's decoders drop the space at the start of a text. The answer follows the prompt, so it must keep
    its space."""
    words = ["\N{LOWER ONE EIGHTH BLOCK}" + word for word in ("What", "now", "the", "END")]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token=words[0]))
    tokenizer.decoder = decoders.Metaspace()
    stops = Stops(PreTrainedTokenizerFast(tokenizer_object=tokenizer), "END")
    take(stops, [[0, 1]], [[2]], [[1]], [[3]])
    assert stops.texts == [" the now "]


def test_steps_that_are_undone_leave_no_trace(
    engine: Engine, reciter: Reciter, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On Apple's GPUs, generate learns only after the next step that the stopping criteria ended a row. It then undoes
    # this step. The test imitates this on a CPU.
    if not hasattr(utils, "DeferredStopCheck"):
        pytest.skip("this transformers decides at once")
    prompts = [reciter.prompt(name) for name in ("count", "split")]
    at_once = Stops(engine.tokenizer, ["hello world", "END"])
    expected = engine.generate(prompts, at_once)
    monkeypatch.setattr(utils.DeferredStopCheck, "is_supported", staticmethod(lambda *args, **options: True))
    monkeypatch.setattr(torch, "Event", lambda **options: Mock())  # a CPU needs no event
    for streamed in (True, False):
        late = Stops(engine.tokenizer, ["hello world", "END"])
        with engine.counted() as steps:
            sequences = engine.generate(prompts, late, streamed=streamed)
        assert len(steps) == expected.shape[1] - 1 + 1
        assert torch.equal(sequences, expected)
        assert (late.texts, late.finishes) == (at_once.texts, at_once.finishes)
        assert torch.equal(late.trim(sequences), at_once.trim(expected))


def test_the_generation_may_return_everything(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, ["rown fox"])
    output = engine.generate(
        reciter.prompt("late"), stops, return_dict_in_generate=True, output_scores=True, output_logits=True,
        output_hidden_states=True,
    )  # fmt: skip
    assert stops.texts == ["The quick b"]
    cut = stops.trim(output)
    assert type(cut) is type(output)
    assert cut.sequences[0, 1:].tolist() == reciter.token_ids("late")[:3]
    assert len(cut.scores) == len(cut.logits) == len(cut.hidden_states) == 3
    assert len(output.scores) == 4
    assert cut.past_key_values is output.past_key_values
    scores = engine.model.compute_transition_scores(cut.sequences, cut.scores)
    assert scores.shape == (1, 3)


@pytest.mark.parametrize(
    "kind",
    [
        utils.GenerateDecoderOnlyOutput, utils.GenerateEncoderDecoderOutput,
        utils.GenerateBeamDecoderOnlyOutput, utils.GenerateBeamEncoderDecoderOutput,
    ],
)  # fmt: skip
def test_entries_of_each_step_are_cut(engine: Engine, reciter: Reciter, kind: Any) -> None:
    stops = Stops(engine.tokenizer, ["hello world", "over"])
    sequences = take(stops, [[1], [1]], [reciter.token_ids(name)[:7] for name in ("count", "late")])
    others = {
        "past_key_values": Mock(),
        "cache": Mock(),
        "sequences_scores": torch.zeros(2),
        "encoder_attentions": (1,),
    }
    others |= {"encoder_hidden_states": (1, 2), "sequences": sequences, "beam_indices": torch.arange(14).view(2, 7)}
    names = {field.name for field in fields(kind)}
    steps = dict.fromkeys(names - others.keys(), tuple(range(7)))
    cut = dict(stops.trim(kind(**steps, **{name: value for name, value in others.items() if name in names})))
    assert steps
    assert {name: cut.pop(name) for name in steps} == dict.fromkeys(steps, tuple(range(6)))
    count, late = (row.tolist() for row in sequences)
    assert cut.pop("sequences").tolist() == [[*count[:6], engine.tokenizer.eos_token_id], late[:7]]
    if "beam_indices" in names:
        assert cut.pop("beam_indices").tolist() == [[0, 1, 2, 3, 4, -1], [7, 8, 9, 10, 11, 12]]
    assert all(value is others[name] for name, value in cut.items())
