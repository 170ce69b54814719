"""A tiny real model checkpoint that recites known texts (scripts), with any token boundaries, in any engine.

The one Llama layer has attention and MLP weights of zero, so it does not change the embedding of the last token. Each
token has a code of 16 signs. The embedding of a token is the code of its successor, and `lm_head` compares it with all
codes: the logit of the successor is 128, and the others are at most 96. So greedy decoding, and sampling at temperature
1, recite a script from its prompt to EOS. The tokenizer is byte-level without merges, so a stop encodes to one token
for each byte. Each piece of a script is a token of its own, even if another token has the same text. So the vocabulary
is of the kind Unigram: it is a list, and only a list can hold equal tokens. mlx-lm from version 0.32.0, vLLM and
transformers load the checkpoint.

`stopscan-conformance reciter DIR` writes the default checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, count, pairwise
from math import prod
from pathlib import Path
from struct import pack
from typing import Any

from stopscan_conformance.scripts import HARMONY, SCRIPTS, THINKING, Script, default_scripts

__all__ = ["EOS", "HARMONY", "SCRIPTS", "THINKING", "Reciter", "Script"]

Tensor = tuple[tuple[int, ...], bytes]  # a shape, and the values as float32, row after row, little-endian

EOS = "<|eos|>"
MAX_TOKENS = 8192
# The prompt is only the text of the last chat message: earlier messages do not count. The content of the message may be
# a string or a list of parts.
CHAT_TEMPLATE = (
    "{% set content = messages[-1]['content'] %}{% if content is string %}{{ content }}"
    "{% else %}{% for part in content %}{{ part['text'] }}{% endfor %}{% endif %}"
)
CODE_BITS = 16  # with more bits, each step of the model is slower; with fewer, there are too few code words
MOST_TOKENS = 32_768  # each token needs its own code word, and `_codes` can make at most this many


class Reciter:
    """A checkpoint that recites scripts. The default scripts are all those of the conformance kit.

    The prompts, texts and token ids of the scripts are known before `write` makes the files.

    The model recites a script if the prompt, or the last chat message, ends with `prompt(name)`. The script ends with
    EOS. Each piece of a script has a token id of its own, even if another piece has the same text. Of equal pieces that
    are a single byte, an added token or a special token, the first has the id that `encode` finds. Added tokens (by
    default thinking markers) are ordinary text. Special tokens (by default Harmony's) are left out of the text if an
    engine skips special tokens.

    >>> reciter = Reciter({"count": ["1", ", ", "2", ", ", "3"]})
    >>> reciter.prompt("count"), reciter.text("count")
    ('[count]', '1, 2, 3')
    """

    def __init__(
        self,
        scripts: Mapping[str, Script] | None = None,
        *,
        added_tokens: Sequence[str] = THINKING,
        special_tokens: Sequence[str] = HARMONY,
    ) -> None:
        scripts = default_scripts() if scripts is None else scripts
        self._scripts = {name: [_encoded(piece) for piece in script] for name, script in scripts.items()}
        for name, script in self._scripts.items():
            if b"" in script:
                raise ValueError(f"script {name!r}: piece {script.index(b'')} is empty")
        self._added = list(added_tokens)
        self._special = [*special_tokens, EOS, *map(self.prompt, scripts)]
        names = [*self._added, *self._special]
        for name in names:
            if not name or names.count(name) > 1:
                raise ValueError(f"token {name!r} is empty, is given twice, or is the EOS or the prompt of a script")
        self._named = {name.encode(): name for name in names}

        pieces = [piece for script in self._scripts.values() for piece in script]
        # If several tokens have the same text, `encode` finds the last of them. It must find single bytes, added tokens
        # and special tokens, so these come after the pieces of the scripts.
        findable = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *self._named])
        self._findable = {token: index for index, token in enumerate(findable, len(pieces))}
        self.tokens = [*pieces, *self._findable]
        if len(self.tokens) > MOST_TOKENS:
            raise ValueError(f"the scripts need {len(self.tokens)} tokens; a reciter has at most {MOST_TOKENS}")
        self.eos_token_id = self._findable[EOS.encode()]
        starts = {self._findable[self.prompt(name).encode()] for name in scripts}
        unused = {token: index for token, index in self._findable.items() if index not in {self.eos_token_id, *starts}}
        ids = (unused.pop(piece, index) for index, piece in enumerate(pieces))
        self._ids = {name: [next(ids) for _ in script] for name, script in self._scripts.items()}

    def prompt(self, name: str, /) -> str:
        """Returns the prompt that starts a script. It is one token."""
        return f"[{name}]"

    def prompt_id(self, name: str, /) -> int:
        """Returns the id of the token that is the prompt of a script."""
        return self._findable[self.prompt(name).encode()]

    def text(self, name: str, /) -> str:
        """Returns the whole text of a script, with U+FFFD for bytes that are not UTF-8."""
        return b"".join(self._scripts[name]).decode(errors="replace")

    def token_ids(self, name: str, /) -> list[int]:
        """Returns the token ids of a script, one for each piece, without the EOS."""
        return list(self._ids[name])

    def token_id(self, name: str, piece: str | bytes, /) -> int:
        """Returns the token id of `piece` in the script `name`, for use as a stop token. If the script has the piece
        several times, returns the id of the first."""
        return self._ids[name][self._scripts[name].index(_encoded(piece))]

    def write(self, directory: str | Path, /, *, layers: int = 1) -> Path:
        """Writes the checkpoint into `directory`, and returns its path. Makes the directory if it is missing. With more
        layers the model gives the same answers, but is slower."""
        path = Path(directory)
        path.mkdir(parents=True, exist_ok=True)
        files = {
            "config.json": {
                "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": self._size,
                "hidden_size": CODE_BITS, "intermediate_size": 64, "num_hidden_layers": layers,
                "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 64,
                "max_position_embeddings": MAX_TOKENS, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
                "hidden_act": "silu", "tie_word_embeddings": False, "dtype": "float32", "bos_token_id": None,
                "eos_token_id": self.eos_token_id,
            },
            "generation_config.json": {"eos_token_id": self.eos_token_id, "do_sample": False},
            "tokenizer_config.json": {
                "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EOS, "clean_up_tokenization_spaces": False,
                "model_max_length": MAX_TOKENS, "chat_template": CHAT_TEMPLATE,
            },
        }  # fmt: skip
        for file, content in files.items():
            (path / file).write_text(json.dumps(content, indent=2))
        (path / "tokenizer.json").write_text(json.dumps(self._tokenizer(), ensure_ascii=False), encoding="utf-8")
        (path / "model.safetensors").write_bytes(b"".join(_safetensors(self.weights(layers))))
        return path

    def _tokenizer(self) -> dict[str, Any]:
        """Returns the content of `tokenizer.json`."""
        spelling = _byte_spelling()
        pieces = len(self.tokens) - len(self._findable)
        vocabulary = [
            (self._named.get(token) or "".join(spelling[byte] for byte in token), 0.0 if index >= pieces else -1e6)
            for index, token in enumerate(self.tokens)
        ]
        plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        byte_level = {"type": "ByteLevel", "trim_offsets": True}
        return {
            "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
            "added_tokens": [
                {"id": self._findable[token.encode()], "content": token, **plain, "special": special}
                for special, tokens in ((False, self._added), (True, self._special))
                for token in tokens
            ],
            "pre_tokenizer": {**byte_level, "add_prefix_space": False, "use_regex": False},
            "decoder": {**byte_level, "add_prefix_space": True, "use_regex": True},
            "model": {"type": "Unigram", "unk_id": None, "vocab": vocabulary, "byte_fallback": False},
        }  # fmt: skip

    def weights(self, layers: int = 1) -> dict[str, Tensor]:
        """Returns the tensors of the checkpoint by name."""
        codes = _codes(self._size)
        successor = [self.eos_token_id] * self._size
        for name, ids in self._ids.items():
            start = self._findable[self.prompt(name).encode()]
            for token, following in pairwise([start, *ids, self.eos_token_id]):
                successor[token] = following
        hidden = CODE_BITS
        into, out = (64, hidden), (hidden, 64)
        shapes = {f"self_attn.{name}_proj": into for name in "qkv"} | {"self_attn.o_proj": out}
        shapes |= {"mlp.gate_proj": into, "mlp.up_proj": into, "mlp.down_proj": out}
        ones: Tensor = ((hidden,), pack(f"<{hidden}f", *[1] * hidden))
        tensors = {"norm": ones}
        for layer in (f"layers.{index}" for index in range(layers)):
            tensors |= {f"{layer}.{name}": (shape, bytes(4 * prod(shape))) for name, shape in shapes.items()}
            tensors |= {f"{layer}.{norm}": ones for norm in ("input_layernorm", "post_attention_layernorm")}
        table = (self._size, hidden)
        tensors["embed_tokens"] = (table, b"".join(_signs(codes[token], 1) for token in successor))
        named = {f"model.{name}.weight": tensor for name, tensor in tensors.items()}
        return {**named, "lm_head.weight": (table, b"".join(_signs(code, 8) for code in codes))}

    @property
    def _size(self) -> int:
        return -len(self.tokens) // 64 * -64


def _safetensors(weights: Mapping[str, Tensor]) -> Iterator[bytes]:
    """Yields the content of a safetensors file: the length of a header, the header as JSON, and the tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (shape, data) in weights.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": (end, end := end + len(data))}
    written = json.dumps(header).encode()
    written += b" " * (-len(written) % 8)
    yield pack("<Q", len(written)) + written
    yield from (data for _, data in weights.values())


def _codes(size: int) -> list[int]:
    """Returns a different code word of 16 bits for each token. Any two code words differ in at least two bits.

    They are words of the Reed-Muller code RM(3, 4). A word of this code has an even count of ones.
    """
    monomials = [
        sum(1 << point for point in range(CODE_BITS) if all(point >> bit & 1 for bit in of))
        for degree in range(4)
        for of in combinations(range(4), degree)
    ]
    codes = [0]
    for index in range(1, size):
        codes.append(codes[index & (index - 1)] ^ monomials[(index & -index).bit_length() - 1])
    return codes


def _signs(code: int, scale: int) -> bytes:
    """Returns 16 floats for a code word: `-scale` for a bit that is 1, and `scale` for a bit that is 0."""
    return pack(f"<{CODE_BITS}f", *(-scale if code >> bit & 1 else scale for bit in range(CODE_BITS)))


def _encoded(piece: str | bytes) -> bytes:
    return piece.encode() if isinstance(piece, str) else piece


def _byte_spelling() -> list[str]:
    """Returns the character for each byte in byte-level vocabularies, such as that of GPT-2. A printable byte has the
    character with the same code as the byte. The other bytes have the characters from U+0100 on, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (chr(code) for code in count(256))
    return [chr(byte) if byte in printable else next(others) for byte in range(256)]


@cache
def default_checkpoint() -> Reciter:
    """Returns the checkpoint whose model recites the scripts of the kit. Each call returns the same object."""
    return Reciter()
