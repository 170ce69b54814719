"""Tokenizers of several model families: the text is the same with stopscan as with vLLM alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import FinishReason
from vllm_harness import run

from stopscan.vllm import install, uninstall
from stopscan.vllm._engine import Engine

pytestmark = pytest.mark.vllm

# The tokens: the single bytes of "é" and "日", a byte that is a whole character, spaces, and words with and without a
# space before them.
BYTES = ["<0xC3>", "<0xA9>", "<0xE6>", "<0x97>", "<0xA5>", "<0x61>"]
WORDS = ["▁", "▁▁", "▁a", "a", "b", "▁ab", "é", "."]
PIECES = {token: place for place, token in enumerate(["<unk>", *BYTES, *WORDS])}
SPACES = decoders.Replace("▁", " ")
# The bytes of `BYTES` in a vocabulary like GPT-2's, which writes each byte as a letter. No token has the id 5.
SPELLED = {"Ã": 0, "©": 1, "æ": 2, "Ĺ": 3, "¥": 4, "a": 6, "Ġa": 7, "b": 8, "Ġ": 9}
FAMILIES = {
    "llama": (
        models.BPE(PIECES, [], unk_token="<unk>", byte_fallback=True),
        decoders.Sequence([SPACES, decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
    ),
    "gemma": (
        models.BPE(PIECES, [], unk_token="<unk>", byte_fallback=True),
        decoders.Sequence([SPACES, decoders.ByteFallback(), decoders.Fuse()]),
    ),
    "t5": (models.BPE(PIECES, [], unk_token="<unk>"), decoders.Metaspace()),
    "bert": (models.WordPiece({"[UNK]": 0, "a": 1, "##a": 2, "b": 3, "##b": 4, ".": 5}), decoders.WordPiece()),
    "gpt2": (models.BPE(SPELLED, []), decoders.ByteLevel()),
}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    model, decoder = FAMILIES[request.param]
    tokenizer = Tokenizer(model)
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens(["<s>"])
    directory: Path = tmp_path_factory.mktemp(request.param)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(directory)
    return request.param, get_tokenizer(str(directory))


def test_only_bytes_alone_are_decoded_here(family: tuple[str, Any]) -> None:
    name, tokenizer = family
    assert (Engine(tokenizer).vocabulary is not None) == (name == "gpt2")


@settings(max_examples=60)
@given(
    numbers=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3), min_size=1, max_size=6),
    prompt=st.lists(st.integers(0, 30), max_size=3),
    stops=st.lists(st.text("abé日. ", min_size=1, max_size=3), max_size=3),
    skip_special=st.booleans(),
)
def test_same_text_as_vllm(
    family: tuple[str, Any], numbers: list[list[int]], prompt: list[int], stops: list[str], skip_special: bool
) -> None:
    name, tokenizer = family
    # stopscan decodes gpt2 itself, and emits U+FFFD as soon as a character is surely broken. vLLM waits for more text.
    broken = "\ufffd" if name == "gpt2" else ""
    steps = [[number % (len(tokenizer) + 2) for number in step] for step in numbers]
    params = SamplingParams(stop=stops, skip_special_tokens=skip_special, output_kind=RequestOutputKind.DELTA)
    before = [number % len(tokenizer) for number in prompt]
    by_vllm = run(tokenizer, steps, params, finish=FinishReason.LENGTH, prompt=before)
    install()
    ours = run(tokenizer, steps, params, finish=FinishReason.LENGTH, prompt=before)
    uninstall()
    assert ours.text.rstrip(broken) == by_vllm.text.rstrip(broken)
    assert (ours.stop_reason, ours.token_ids) == (by_vllm.stop_reason, by_vllm.token_ids)
