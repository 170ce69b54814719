"""Compares ``Stops`` with a stopping criterion that decodes the whole answer at every step.

The models generate with beams and by sampling. Some are encoder-decoder models.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    StoppingCriteria,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from stopscan.transformers import Stops

# One thread is enough. The steps are too small to divide, and CI's machine runs other programs at the same time.
torch.set_num_threads(1)

TEXT = "\n".join(line for line in (Path(__file__).parents[3] / "README.md").read_text().splitlines() if line.isascii())
STOPS = st.lists(st.sampled_from(["the", " s", "to", "top", "\n", ". ", "e", " of", "stop", "xyz", "``"]), min_size=1)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=["<s>", "<eos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<eos>", bos_token="<s>")


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    """A small Llama, trained on the README so briefly that its samples only resemble text."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=256, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    ids = torch.tensor(tokenizer(TEXT).input_ids)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        starts = torch.randint(len(ids) - 48, (16,)).tolist()
        batch = torch.stack([ids[start : start + 48] for start in starts])
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 5
    return model.eval()


def by_the_book(tokenizer: Any, ids: list[int], stop: list[str]) -> Reference:
    """Feeds the text of ``ids`` up to the EOS to a reference (a simple program that finds stops). Returns the
    reference."""
    ids = ids[: ids.index(tokenizer.eos_token_id)] if tokenizer.eos_token_id in ids else ids
    reference = Reference(stop)
    reference.feed(tokenizer.decode(ids, skip_special_tokens=True))
    return reference


class ByTheBook(StoppingCriteria):
    """A criterion that decodes each whole row at each step."""

    def __init__(self, tokenizer: Any, stop: list[str], prompt_length: int) -> None:
        self.tokenizer, self.stop, self.prompt_length = tokenizer, stop, prompt_length

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        rows = input_ids[:, self.prompt_length :].tolist()
        return torch.tensor([bool(by_the_book(self.tokenizer, row, self.stop).match) for row in rows])


@settings(max_examples=15)
@given(stop=STOPS, seed=st.integers(0, 99), rows=st.integers(1, 4))
def test_samples_end_where_the_reference_ends_them(
    tokenizer: Any, model: Any, stop: list[str], seed: int, rows: int
) -> None:
    inputs = {"input_ids": torch.zeros((rows, 1), dtype=torch.long), "attention_mask": torch.ones((rows, 1))}
    options = {"do_sample": True, "max_new_tokens": 24, "top_k": 0}
    torch.manual_seed(seed)
    whole = model.generate(**inputs, **options)[:, 1:].tolist()
    decode = partial(tokenizer.decode, skip_special_tokens=True)
    stops = Stops(tokenizer, stop)
    torch.manual_seed(seed)
    sequences = model.generate(**inputs, **options, stopping_criteria=[stops], streamer=stops)
    for row, text, finish, cut in zip(whole, stops.texts, stops.finishes, stops.trim(sequences), strict=True):
        reference = by_the_book(tokenizer, row, stop)
        if reference.match:
            assert text == reference.text[: reference.match.offset]
            assert (finish.matched_stop, finish.offset) == (reference.match.sequence, reference.match.offset)
            # `trim` keeps all tokens that the text needs, and no other.
            kept = [token_id for token_id in cut[1:].tolist() if token_id != tokenizer.eos_token_id]
            assert decode(kept).startswith(text)
            assert not text or not decode(kept[:-1]).startswith(text)
        else:
            # Half a character at the end is U+FFFD in both texts.
            assert text == reference.text
            assert finish.reason == ("eos" if tokenizer.eos_token_id in row else "length")


@settings(max_examples=15)
@given(stop=STOPS, beams=st.integers(2, 4), sample=st.booleans(), seed=st.integers(0, 99), rows=st.integers(1, 3))
def test_the_state_follows_the_beam(
    tokenizer: Any, model: Any, stop: list[str], beams: int, sample: bool, seed: int, rows: int
) -> None:
    prompts = tokenizer(["The ", "stop ", "and "][:rows], return_tensors="pt", padding=True, padding_side="left")
    options = {"num_beams": beams, "num_return_sequences": beams, "do_sample": sample, "max_new_tokens": 12}
    length = prompts.input_ids.shape[1]
    torch.manual_seed(seed)
    expected = model.generate(**prompts, **options, stopping_criteria=[ByTheBook(tokenizer, stop, length)])
    stops = Stops(tokenizer, stop)
    torch.manual_seed(seed)
    sequences = model.generate(**prompts, **options, stopping_criteria=[stops])
    assert torch.equal(sequences, expected)
    stops.trim(sequences)
    references = [by_the_book(tokenizer, row[length:].tolist(), stop) for row in sequences]
    assert [finish.matched_stop for finish in stops.finishes] == [
        one.match.sequence if one.match else None for one in references
    ]
    assert stops.texts == [one.text[: one.match.offset] if one.match else one.text for one in references]


def test_beams_that_are_not_chosen_yet_have_no_text(tokenizer: Any, model: Any) -> None:
    stops = Stops(tokenizer, "the")
    prompts = tokenizer("The ", return_tensors="pt")
    options = {"return_dict_in_generate": True, "output_scores": True}
    output = model.generate(**prompts, num_beams=3, max_new_tokens=12, stopping_criteria=[stops], **options)
    with pytest.raises(RuntimeError, match="trim"):
        _ = stops.texts
    cut = stops.trim(output)
    assert len(stops.texts) == 1
    assert cut.beam_indices.shape[1] == cut.sequences.shape[1] - prompts.input_ids.shape[1]
    scores = model.compute_transition_scores(cut.sequences, cut.scores, cut.beam_indices)
    assert scores.shape == cut.beam_indices.shape


def test_a_beam_search_of_one_token(tokenizer: Any, model: Any) -> None:
    stops = Stops(tokenizer, "the")
    prompts = tokenizer("The ", return_tensors="pt")
    sequences = model.generate(**prompts, num_beams=3, max_new_tokens=1, stopping_criteria=[stops])
    assert torch.equal(stops.trim(sequences), sequences)
    assert stops.texts == tokenizer.batch_decode(sequences[:, -1:])


def test_one_beam_of_several(tokenizer: Any, model: Any) -> None:
    stops = Stops(tokenizer, "xyz")
    prompts = tokenizer("The ", return_tensors="pt")
    options = {"num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 4}
    sequences = model.generate(**prompts, **options, stopping_criteria=[stops])
    stops.trim(sequences)
    texts, finishes = stops.texts, stops.finishes
    stops.trim(sequences[1:2])
    assert (stops.texts, stops.finishes) == (texts[1:2], finishes[1:2])


def test_beams_refuse_a_streamer_as_transformers_does(tokenizer: Any, model: Any) -> None:
    stops = Stops(tokenizer, "the")
    with pytest.raises(ValueError, match="streamer"):
        model.generate(**tokenizer("The ", return_tensors="pt"), num_beams=2, stopping_criteria=[stops], streamer=stops)


@pytest.fixture(scope="module")
def translator(tokenizer: Any) -> Any:
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64,
        bos_token_id=0, eos_token_id=1, pad_token_id=1, decoder_start_token_id=0, forced_eos_token_id=None,
    )  # fmt: skip
    return BartForConditionalGeneration(config).eval()


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "criterion"])
@pytest.mark.parametrize("beams", [1, 3])
def test_encoder_decoder_models(tokenizer: Any, translator: Any, streamed: bool, beams: int) -> None:
    inputs = tokenizer(["The stop", "and the text"], return_tensors="pt", padding=True)
    options = {"do_sample": True, "top_k": 0, "num_beams": beams, "max_new_tokens": 30}
    stop, found = ["e", "t", "a", "o", "s", "i"], 0
    for seed in range(3):
        torch.manual_seed(seed)
        whole = translator.generate(**inputs, **options, stopping_criteria=[ByTheBook(tokenizer, stop, 1)])
        stops = Stops(tokenizer, stop)
        torch.manual_seed(seed)
        streamer = stops if streamed and beams == 1 else None
        sequences = translator.generate(**inputs, **options, stopping_criteria=[stops], streamer=streamer)
        assert torch.equal(sequences, whole)
        stops.trim(sequences)
        for row, text, finish in zip(sequences, stops.texts, stops.finishes, strict=True):
            reference = by_the_book(tokenizer, row[1:].tolist(), stop)
            assert text == (reference.text[: reference.match.offset] if reference.match else reference.text)
            assert (finish.match is None) == (reference.match is None)
            found += reference.match is not None
    assert found


@pytest.fixture(scope="module")
def whisper(tokenizer: Any) -> Any:
    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=len(tokenizer), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=20,
        max_target_positions=64, num_mel_bins=8, bos_token_id=0, eos_token_id=1, pad_token_id=1,
        decoder_start_token_id=0, begin_suppress_tokens=None, suppress_tokens=None, tie_word_embeddings=False,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).eval()
    model.generation_config.suppress_tokens = [0]  # like a real Whisper, it never generates its prompt token
    return model


@pytest.mark.parametrize("beams", [1, 3])
def test_whisper_returns_sequences_without_the_prompt(tokenizer: Any, whisper: Any, beams: int) -> None:
    """``trim`` keeps exactly the tokens of the answer's text, although Whisper returns sequences without the prompt.

    Before a fix, ``trim`` kept one token too many, and with beams it cut off the first token of the text.
    """
    # Whisper samples only with one beam.
    options = {"num_beams": beams, "max_new_tokens": 30, "pad_token_id": 1, "temperature": None if beams > 1 else 1.0}
    ends = set()
    for seed in range(6):
        for stop, bias in ((["e", "t", "a"], 0.0), (["###"], 0.0), (["###"], 4.0 if beams == 1 else 0.4)):
            torch.manual_seed(seed)
            features, stops = 9 * torch.randn(2, 8, 40), Stops(tokenizer, stop)
            sequences = whisper.generate(
                features, **options, sequence_bias={(tokenizer.eos_token_id,): bias}, stopping_criteria=[stops]
            )
            cut = stops.trim(sequences).tolist()
            for whole, row, text, finish in zip(sequences.tolist(), cut, stops.texts, stops.finishes, strict=True):
                reference = by_the_book(tokenizer, whole, stop)
                match, kept = reference.match, [token_id for token_id in row if token_id != 1]
                assert text == (reference.text[: match.offset] if match else reference.text)
                assert finish.matched_stop == (match.sequence if match else None)
                assert tokenizer.decode(kept, skip_special_tokens=True).startswith(text)
                assert not match or not text or not tokenizer.decode(kept[:-1]).startswith(text)
                if not match:
                    assert finish.reason == ("length" if len(kept) == 30 else "eos")
                ends.add(finish.reason)
    assert ends == {"stop_sequence", "length", "eos"}
