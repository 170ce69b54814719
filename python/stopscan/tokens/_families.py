"""Finds the ``Source`` class for a tokenizer. Only the package from which the tokenizer comes is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stopscan.tokens._source import Source


def source_of(carrier: Any) -> Source:
    """Returns the ``Source`` of a tokenizer. ``carrier`` is the tokenizer, or has the tokenizer in an attribute."""
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
        "tokenizer: expected a tokenizers.Tokenizer, an object that has one (such as a transformers fast tokenizer), a "
        f"tiktoken.Encoding, or a tokenizer of mistral-common, got {type(carrier).__name__}"
    )


def _carried(carrier: Any) -> Iterator[Any]:
    """Yields ``carrier``, and the attributes where transformers, mlx-lm, mistral-common and vLLM have the tokenizer."""
    yield getattr(carrier, "backend_tokenizer", None)
    for owner in (carrier, getattr(carrier, "tokenizer", None)):
        yield owner
        yield getattr(getattr(owner, "instruct_tokenizer", None), "tokenizer", None)
