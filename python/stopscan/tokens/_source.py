"""What a vocabulary is read from: the tokenizers of all families, seen alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

# By id: text, bytes that may be a part of a character, one byte of a run, or no token.
Token: TypeAlias = "str | bytes | int | None"


@dataclass
class Tables:
    """The tokens of a native vocabulary, and how their bytes become text: the arguments of the native class."""

    # Or the bytes of a ``tokenizer.json``, which say all of this.
    tokens: list[Token] | bytes
    special: set[int] = field(default_factory=set)
    # What tokens are at the start of a stream, where that is not what `strip_first_space` says.
    firsts: dict[int, str] = field(default_factory=dict)
    strays: Literal["parts", "runs", "bytes"] = "parts"
    strip_first_space: bool = False
    special_ends_character: bool = False


class Habits(NamedTuple):
    """What `decode` of an object that carries a tokenizer does beside the tokenizer's own."""

    cleans_up: bool = False
    # It makes another text, by rules of its own.
    differs: bool = False


class Source(Protocol):
    """A tokenizer, as far as decoding needs it."""

    habits: Habits

    @property
    def carrier(self) -> Any:
        """The object that the vocabulary was asked for."""

    @property
    def key(self) -> Any:
        """The object that a vocabulary is kept for."""

    @property
    def fingerprint(self) -> Hashable:
        """What changes when the tokenizer is changed."""

    @property
    def special(self) -> Mapping[int, str]:
        """The tokens that are left out where special tokens are skipped, and their text."""

    @property
    def skips(self) -> Sequence[bool]:
        """The values of ``skip_special_tokens`` that its own ``decode`` has."""

    def learn_habits(self) -> Habits: ...

    def tables(self) -> Tables | None:
        """The tokens, unless it is known already that the text of a stream is not made from the bytes of single ids."""

    def contains(self, token_id: int, /) -> bool: ...

    def decoder(self) -> Callable[..., str]:
        """What makes text of token ids and ``skip_special_tokens``, but for a clean-up afterwards."""
