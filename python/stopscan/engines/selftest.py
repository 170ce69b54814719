"""Helps an adapter to test itself. ``Tokenizer`` makes a small tokenizer without a download, and ``source_of`` reads
the source of an engine's module."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import count


class Tokenizer:
    """A byte-level ``tokenizers.Tokenizer`` in the attribute ``backend``. It has a token for each byte, for each text
    in ``words``, and for each text in ``special``.

    >>> tokenizer = Tokenizer(["Hel", "lo"], ["<|eos|>"])
    >>> tokenizer.backend.decode(tokenizer.ids(["Hel", "lo", b"!", "???"]))
    'Hello!???'
    """

    def __init__(self, words: Iterable[str], special: Iterable[str]) -> None:
        from tokenizers import AddedToken, decoders, models, pre_tokenizers
        from tokenizers import Tokenizer as Backend

        vocabulary: dict[str, int] = {}
        for piece in [*(bytes([byte]) for byte in range(256)), *(word.encode() for word in words)]:
            vocabulary.setdefault(_spell(piece), len(vocabulary))
        self.backend: Backend = Backend(models.BPE(vocab=vocabulary, merges=[]))
        self.backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self.backend.decoder = decoders.ByteLevel()
        self.backend.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])

    def ids(self, pieces: Iterable[str | bytes]) -> list[int]:
        """Returns the token ids of these pieces: one for a piece that is a token, else one for each of its bytes."""
        return [token_id for piece in pieces for token_id in self._ids(piece)]

    def _ids(self, piece: str | bytes) -> list[int]:
        raw = piece.encode() if isinstance(piece, str) else piece
        vocabulary = self.backend.get_vocab()
        whole = vocabulary.get(_spell(raw), vocabulary.get(str(piece)))
        return [vocabulary[_spell(bytes([byte]))] for byte in raw] if whole is None else [whole]


def source_of(module: str) -> str:
    """Returns the source of a module, or ``""`` if it cannot be found. Imports the packages that contain the module,
    but not the module."""
    with suppress(ImportError, AttributeError):
        return find_spec(module).loader.get_source(module) or ""  # type: ignore[union-attr]
    return ""


def _spell(piece: bytes) -> str:
    return "".join(map(_alphabet().__getitem__, piece))


@cache
def _alphabet() -> list[str]:
    """Returns GPT-2's printable character for each byte."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = count(256)
    return [chr(byte if byte in shown else next(spare)) for byte in range(256)]
