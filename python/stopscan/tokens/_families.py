"""Finds the ``Source`` class for a tokenizer. Only the package from which the tokenizer comes is imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from stopscan.tokens._source import Source


def source_of(carrier: Any) -> Source:
    """Returns the ``Source`` of a tokenizer. ``carrier`` is the tokenizer, or an object that has the tokenizer in an
    attribute."""
    for tokenizer in _carried(carrier):
        names = {f"{base.__module__}.{base.__qualname__}" for base in type(tokenizer).__mro__}
        if "tokenizers.Tokenizer" in names:
            from stopscan.tokens._huggingface import HuggingFace

            return HuggingFace(tokenizer, carrier)
        if "tiktoken.core.Encoding" in names:
            from stopscan.tokens._tiktoken import Tiktoken

            return Tiktoken(tokenizer, carrier)
        if "mistral_common.tokens.tokenizers.tekken.Tekkenizer" in names:
            from stopscan.tokens._mistral import Tekken

            return Tekken(tokenizer)
        if "mistral_common.tokens.tokenizers.sentencepiece.SentencePieceTokenizer" in names:
            from stopscan.tokens._mistral import SentencePiece

            return SentencePiece(tokenizer)
    if _decodes(carrier):
        from stopscan.tokens._other import Other

        return Other(carrier)
    raise TypeError(f"tokenizer: expected an object with a method decode, got {type(carrier).__name__}")


def _decodes(carrier: Any) -> bool:
    """Returns whether ``carrier`` has a method ``decode`` that makes text of a list of token ids."""
    with suppress(Exception):  # each library has its own error for arguments that it does not take
        return isinstance(carrier.decode([]), str)
    return False


def _carried(carrier: Any) -> Iterator[Any]:
    """Yields the objects that may be the tokenizer: first ``carrier`` and the attributes in which transformers, mlx-lm,
    mistral-common and vLLM keep a tokenizer, and then all other attributes. The code of a checkpoint may use any
    attribute. For example, Kimi's code uses ``model``."""
    yield getattr(carrier, "backend_tokenizer", None)
    owners = carrier, getattr(carrier, "tokenizer", None)
    for owner in owners:
        yield owner
        yield getattr(getattr(owner, "instruct_tokenizer", None), "tokenizer", None)
    for owner in owners:
        yield from [*getattr(owner, "__dict__", {}).values()]
