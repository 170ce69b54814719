"""Which family a tokenizer is of. No package is imported but the one that it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stopscan.tokens._source import Source


def source_of(carrier: Any) -> Source:
    """The tokenizer that an object is or carries."""
    for tokenizer in _carried(carrier):
        names = {f"{base.__module__}.{base.__qualname__}" for base in type(tokenizer).__mro__}
        if "tokenizers.Tokenizer" in names:
            from stopscan.tokens._huggingface import HuggingFace

            return HuggingFace(tokenizer, carrier)
        if "tiktoken.core.Encoding" in names:
            from stopscan.tokens._tiktoken import Tiktoken

            return Tiktoken(tokenizer)
        if "mistral_common.tokens.tokenizers.tekken.Tekkenizer" in names:
            from stopscan.tokens._mistral import Tekken

            return Tekken(tokenizer)
        if "mistral_common.tokens.tokenizers.sentencepiece.SentencePieceTokenizer" in names:
            from stopscan.tokens._mistral import SentencePiece

            return SentencePiece(tokenizer)
    raise TypeError(
        "tokenizer: expected a tokenizers.Tokenizer or what carries one, a tiktoken.Encoding, or a tokenizer of "
        f"mistral-common, got {type(carrier).__name__}"
    )


def _carried(carrier: Any) -> Iterator[Any]:
    """The object itself, and what transformers, mlx-lm, mistral-common and vLLM have in such attributes."""
    yield getattr(carrier, "backend_tokenizer", None)
    for owner in (carrier, getattr(carrier, "tokenizer", None)):
        yield owner
        yield getattr(getattr(owner, "instruct_tokenizer", None), "tokenizer", None)
