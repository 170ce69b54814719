"""The checkpoint that `Reciter` writes has the tokens, texts and weights that the class documents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file
from tokenizers import Tokenizer, decoders

from stopscan_conformance.reciter import EOS, HARMONY, SCRIPTS, THINKING, Reciter
from stopscan_conformance.scripts import default_scripts

RECITER = Reciter()
each_script = pytest.mark.parametrize("name", SCRIPTS)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return RECITER.write(tmp_path_factory.mktemp("reciter") / "made" / "on demand")


@pytest.fixture(scope="module")
def tokenizer(checkpoint: Path) -> Tokenizer:
    return Tokenizer.from_file(str(checkpoint / "tokenizer.json"))


def test_json_is_spelled_with_tokens_that_the_vocabulary_finds(tokenizer: Tokenizer) -> None:
    """Several tokens of the checkpoint may have the same text, and the tokenizer's `get_vocab` has only one of them. If
    an answer must be JSON, vLLM allows only this one. So the script "json" has only tokens that `get_vocab` has."""
    ids = RECITER.token_ids("json")
    assert [tokenizer.get_vocab()[tokenizer.id_to_token(token_id) or ""] for token_id in ids] == ids


def test_files(checkpoint: Path) -> None:
    assert {file.name for file in checkpoint.iterdir()} == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    config = json.loads((checkpoint / "config.json").read_text())
    assert config["vocab_size"] % 64 == 0
    assert config["vocab_size"] >= len(RECITER.tokens)


def test_transformers_knows_its_end_and_its_length(checkpoint: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    assert (tokenizer.eos_token, tokenizer.eos_token_id) == (EOS, RECITER.eos_token_id)
    config = transformers.AutoConfig.from_pretrained(checkpoint)
    assert config.max_position_embeddings == tokenizer.model_max_length == 8192
    assert (config.bos_token_id, config.eos_token_id) == (None, RECITER.eos_token_id)
    assert config.architectures == ["LlamaForCausalLM"]  # vLLM reads this field
    assert str(config.dtype).endswith("float32")
    with safe_open(checkpoint / "model.safetensors", "numpy") as weights:
        assert weights.metadata() == {"format": "pt"}


def test_the_weights_have_the_shapes_of_the_config(checkpoint: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    hidden, inner, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    heads, kv_heads = (config[f"num_{kind}_heads"] * config["head_dim"] for kind in ("attention", "key_value"))
    assert {name: array.shape for name, array in load_file(checkpoint / "model.safetensors").items()} == {
        "lm_head.weight": (vocabulary, hidden),
        "model.embed_tokens.weight": (vocabulary, hidden),
        "model.norm.weight": (hidden,),
        "model.layers.0.input_layernorm.weight": (hidden,),
        "model.layers.0.post_attention_layernorm.weight": (hidden,),
        "model.layers.0.self_attn.q_proj.weight": (heads, hidden),
        "model.layers.0.self_attn.k_proj.weight": (kv_heads, hidden),
        "model.layers.0.self_attn.v_proj.weight": (kv_heads, hidden),
        "model.layers.0.self_attn.o_proj.weight": (hidden, heads),
        "model.layers.0.mlp.gate_proj.weight": (inner, hidden),
        "model.layers.0.mlp.up_proj.weight": (inner, hidden),
        "model.layers.0.mlp.down_proj.weight": (hidden, inner),
    }


def test_more_layers_do_nothing_too(tmp_path: Path) -> None:
    few = Reciter({"ab": "ab"})
    one, three = (
        load_file(few.write(tmp_path / str(layers), layers=layers) / "model.safetensors") for layers in (1, 3)
    )
    assert json.loads((tmp_path / "3" / "config.json").read_text())["num_hidden_layers"] == 3
    assert len(three) - len(one) == 2 * sum("layers.0." in name for name in one)
    for name, array in three.items():
        assert (array == one[re.sub(r"layers\.\d", "layers.0", name)]).all(), name


@pytest.fixture(scope="module")
def successor(checkpoint: Path) -> list[int]:
    """A list with an item for each token id: the id of the token that most likely follows. It is computed in parts,
    because all logits together take gigabytes."""
    weights = load_file(checkpoint / "model.safetensors")
    head = weights["lm_head.weight"].T
    parts = np.split(weights["model.embed_tokens.weight"], 64)
    return [int(token) for part in parts for token in (part @ head).argmax(axis=1)]


@each_script
def test_weights_recite(successor: list[int], tokenizer: Tokenizer, name: str) -> None:
    (token,) = tokenizer.encode(RECITER.prompt(name)).ids
    recited = [token := successor[token] for _ in range(len(SCRIPTS[name]) + 1)]
    assert recited == [*RECITER.token_ids(name), RECITER.eos_token_id]


def test_no_other_token_is_likely_enough_to_be_sampled(tmp_path: Path) -> None:
    long = Reciter({"long": [str(number) for number in range(8000)]})
    weights = load_file(long.write(tmp_path) / "model.safetensors")
    embeddings, head = weights["model.embed_tokens.weight"], weights["lm_head.weight"]
    for block in np.split(embeddings, 64):
        logits = block @ head.T
        assert logits.max() == 128
        assert (1 / np.exp(logits - 128).sum(axis=1)).min() > 1 - 1e-6


def test_more_tokens_than_the_code_has_words_are_refused() -> None:
    with pytest.raises(ValueError, match="a reciter has at most 32768"):
        Reciter({"long": ["a"] * 32_768})


@each_script
def test_pieces_are_tokens(tokenizer: Tokenizer, name: str) -> None:
    pieces = [piece.encode() if isinstance(piece, str) else piece for piece in SCRIPTS[name]]
    decoded = [tokenizer.decode([token], skip_special_tokens=False) for token in RECITER.token_ids(name)]
    assert decoded == [piece.decode(errors="replace") for piece in pieces]
    assert tokenizer.decode(RECITER.token_ids(name), skip_special_tokens=False) == RECITER.text(name)
    assert b"".join(pieces).decode(errors="replace") == RECITER.text(name)


def test_every_position_is_a_token_of_its_own() -> None:
    ids = [token for name in SCRIPTS for token in RECITER.token_ids(name)]
    assert len(set(ids)) == len(ids)


def test_stream_decoder_waits_for_half_characters(tokenizer: Tokenizer) -> None:
    stream = decoders.DecodeStream()
    steps = [stream.step(tokenizer, token) for token in RECITER.token_ids("emoji")]
    rocket, stop = "\N{ROCKET}", "\N{OCTAGONAL SIGN}"
    woman, joined = "\N{WOMAN}", "\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}."
    assert steps == ["Go ", None, rocket, " then ", None, stop, " now ", woman, None, None, joined]


@given(st.text())
def test_other_text_encodes_to_its_bytes(tokenizer: Tokenizer, text: str) -> None:
    assume(not any(token in text for token in (EOS, *THINKING, *HARMONY, *map(RECITER.prompt, SCRIPTS))))
    ids = tokenizer.encode(text).ids
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids) == text


def test_prompt_ends_any_text_with_its_token(tokenizer: Tokenizer) -> None:
    *before, last = tokenizer.encode("Say it: " + RECITER.prompt("count")).ids
    assert len(before) == len("Say it: ")
    assert tokenizer.encode(RECITER.prompt("count")).ids == [last]


def test_stops_encode_to_other_tokens_than_the_script(tokenizer: Tokenizer) -> None:
    assert not set(tokenizer.encode("hello world").ids) & set(RECITER.token_ids("count"))
    end, nd = RECITER.token_ids("split")[4:6]
    assert tokenizer.encode("END").ids[0] == end
    assert nd not in tokenizer.encode("END").ids


def test_encode_gives_the_first_single_byte_token(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("abcdefghijklmnopqrstuvwxyz").ids == RECITER.token_ids("alphabet")
    assert tokenizer.encode("6").ids == [RECITER.token_id("count", "6")]
    assert tokenizer.encode("a").ids[0] not in RECITER.token_ids("runs")


def test_named_tokens_in_a_script(tmp_path: Path) -> None:
    script = ["<think>", "a", "</think>", "<|end|>", "b", "<think>", "<|end|>", "c"]
    reciter = Reciter({"one": script}, added_tokens=["<think>", "</think>"], special_tokens=["<|end|>"])
    tokenizer = Tokenizer.from_file(str(reciter.write(tmp_path) / "tokenizer.json"))
    ids = reciter.token_ids("one")
    assert [tokenizer.token_to_id(piece) for piece in script[:4]] == ids[:4]
    assert len(set(ids)) == len(script)
    assert tokenizer.decode(ids) == "<think>a</think>b<think>c"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "".join(script)


def test_special_tokens_as_pieces_keep_their_script(tmp_path: Path) -> None:
    reciter = Reciter({"one": ["[two]", EOS, "x"], "two": ["y"]})
    tokenizer = Tokenizer.from_file(str(reciter.write(tmp_path) / "tokenizer.json"))
    assert reciter.text("one") == f"[two]{EOS}x"
    assert not {tokenizer.token_to_id("[two]"), reciter.eos_token_id} & set(reciter.token_ids("one"))


def test_non_ascii_tokens(tmp_path: Path) -> None:
    end, mark = "<\N{FULLWIDTH VERTICAL LINE}end\N{LOWER ONE EIGHTH BLOCK}>", "<\N{FULLWIDTH VERTICAL LINE}>"
    reciter = Reciter({"one": ["a", mark, end] * 2}, added_tokens=[mark], special_tokens=[end])
    tokenizer = Tokenizer.from_file(str(reciter.write(tmp_path) / "tokenizer.json"))
    assert tokenizer.encode(mark + end).ids == reciter.token_ids("one")[1:3]
    assert tokenizer.decode(reciter.token_ids("one"), skip_special_tokens=False) == reciter.text("one")
    assert tokenizer.decode(reciter.token_ids("one")) == f"a{mark}" * 2


def test_bad_scripts_and_tokens() -> None:
    with pytest.raises(ValueError, match="script 'one': piece 1 is empty"):
        Reciter({"one": ["a", ""]})
    for named, culprit in ((["<x>", "<x>"], "<x>"), ([""], ""), ([EOS], EOS), (["[one]"], "[one]")):
        with pytest.raises(ValueError, match=re.escape(f"token {culprit!r} is empty, is given twice")):
            Reciter({"one": ["a"]}, special_tokens=named)


def test_command_writes_the_default_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stopscan_conformance", "reciter", str(tmp_path / "made")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    made = tmp_path / "made"
    megabytes = sum(file.stat().st_size for file in made.iterdir()) / 1e6
    assert printed == f"wrote {megabytes:.1f} MB: {made}, which recites {len(default_scripts())} scripts\n"
    for file in checkpoint.iterdir():
        assert (made / file.name).read_bytes() == file.read_bytes()


def test_command_that_lacks_gguf_writes_nothing(tmp_path: Path) -> None:
    """Without the package gguf, the command prints an error without a traceback, and writes no files."""
    without = (
        "import sys; sys.modules['gguf'] = None; from stopscan_conformance.__main__ import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", without, "reciter", str(tmp_path / "made"), "--gguf", str(tmp_path / "made.gguf")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.endswith("error: --gguf needs the package gguf: install stopscan-conformance[gguf]\n")
    assert not [*tmp_path.iterdir()]
