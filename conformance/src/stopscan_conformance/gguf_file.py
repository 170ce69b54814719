"""Writes the kit's checkpoint as GGUF, for llama.cpp. Needs the package gguf.

The checkpoint has several tokens with the same text, but llama.cpp refuses a vocabulary in which two strings are equal.
So the file has a vocabulary in RWKV's form, in which strings have escape sequences. Tokens with the same text are
escaped in different ways.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import gguf
import numpy as np

from stopscan_conformance.reciter import CHAT_TEMPLATE, MAX_TOKENS, Reciter

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
}  # fmt: skip
OF_A_LAYER = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
PRINTABLE = [chr(code) for code in range(0x21, 0x7F)]


def spellings(tokens: list[bytes]) -> list[str]:
    """Returns the tokens as escaped strings that all differ. If several tokens have the same text, the last of them is
    escaped in the usual way, so that llama.cpp finds this token when it encodes the text."""
    seen: Counter[bytes] = Counter()
    escaped = []
    for token in reversed(tokens):
        variant, suffix = divmod(seen[token], len(PRINTABLE) + 1)
        copy = f"\\x{PRINTABLE[suffix - 1]}" if suffix else ""
        escaped.append(digits(token[0], variant) + "".join(map(digits, token[1:])) + copy)
        seen[token] += 1
    return escaped[::-1]


def digits(byte: int, variant: int = 0) -> str:
    """Returns one of nine spellings of a byte, such as `\\x41`, that llama.cpp reads as the same byte.

    A byte is written as two hex digits: it is 16 times the first digit plus the second. llama.cpp takes any character
    before "a" as a digit, and subtracts "0" from it. So a digit may be above 15. This allows two changes. If
    the first digit becomes smaller by 1, the second becomes larger by 16. The first may also become larger by 16,
    because llama.cpp uses only its low 4 bits.
    """
    carried, more = divmod(variant, 3)
    first = (byte // 16 - carried) % 16 + 16 * more
    return f"\\x{chr(ord('0') + first)}{chr(ord('0') + byte % 16 + 16 * carried)}"


def named(name: str) -> str:
    """Returns llama.cpp's name of a tensor."""
    layer = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name)
    return f"blk.{layer[1]}.{OF_A_LAYER[layer[2]]}" if layer else NAMES[name]


def write_gguf(reciter: Reciter, path: Path, *, layers: int = 1) -> None:
    """Writes the checkpoint as the GGUF file `path`."""
    weights = {
        name: np.frombuffer(data, "<f4").reshape(shape) for name, (shape, data) in reciter.weights(layers).items()
    }
    size = len(weights["lm_head.weight"])
    unused = [f"<unused {index}>".encode() for index in range(size - len(reciter.tokens))]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(MAX_TOKENS)
    writer.add_embedding_length(weights["model.embed_tokens.weight"].shape[1])
    writer.add_block_count(layers)
    writer.add_feed_forward_length(64)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_key_length(64)
    writer.add_value_length(64)
    writer.add_rope_dimension_count(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(size)
    writer.add_tokenizer_model("rwkv")
    writer.add_token_list(spellings([*reciter.tokens, *unused]))
    # llama.cpp ends an answer only at a token of the type CONTROL.
    types = [gguf.TokenType.NORMAL] * size
    types[reciter.eos_token_id] = gguf.TokenType.CONTROL
    writer.add_token_types(types)
    writer.add_eos_token_id(reciter.eos_token_id)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, array in weights.items():
        writer.add_tensor(f"{named(name.removesuffix('.weight'))}.weight", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
