"""The interface through which a vocabulary is read from a tokenizer of any supported library."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

# A token is a `str` (its text), `bytes` (its bytes, which may be only a part of a character), an `int` (the value of
# its only byte), or `None` (no token has the id).
Token: TypeAlias = "str | bytes | int | None"


@dataclass
class Tables:
    """The arguments of ``_stopscan.Vocabulary``, which decodes tokens without their tokenizer."""

    # A list with the token of each id, or the content of a `tokenizer.json` as bytes. With a `tokenizer.json`, the
    # other fields are not used.
    tokens: list[Token] | bytes
    special: set[int] = field(default_factory=set)
    # Some tokens have a different text at the start of a stream. `firsts` has this text for each of their ids. A token
    # that only loses its first space there is not in `firsts`: `strip_first_space` is true instead.
    firsts: dict[int, str] = field(default_factory=dict)
    # How bytes that are not valid UTF-8 are decoded: see `Strays` in the Rust crate.
    strays: Literal["parts", "runs", "bytes"] = "parts"
    strip_first_space: bool = False
    special_ends_character: bool = False


class CarrierDecode(NamedTuple):
    """Says how ``decode`` of the carrier differs from ``decode`` of the tokenizer. The carrier is the object that has
    the tokenizer. If both fields are false, the two methods give the same text."""

    # The carrier's `decode` gives the tokenizer's text, with spaces cleaned up.
    cleans_up: bool = False
    # The carrier's `decode` gives another text than the tokenizer's `decode`, and the rule is not known.
    differs: bool = False


class Source(Protocol):
    """What a vocabulary needs to know about a tokenizer. Each supported library has a class with these methods.

    The carrier is the object that the user passed: the tokenizer, or an object that has the tokenizer.
    """

    carrier_decode: CarrierDecode

    @property
    def carrier(self) -> Any:
        """The object from which the vocabulary was made: the tokenizer, or an object that has it."""

    @property
    def key(self) -> Any:
        """The tokenizer. It is the key under which the vocabulary is cached."""

    @property
    def fingerprint(self) -> Hashable:
        """A value that changes when the tokenizer is changed."""

    @property
    def special(self) -> Mapping[int, str]:
        """The text of each token that ``skip_special_tokens`` leaves out, by id."""

    @property
    def skips(self) -> Sequence[bool]:
        """The values of ``skip_special_tokens`` with which ``decoder`` can be called."""

    def compare_carrier(self) -> CarrierDecode:
        """Compares ``decode`` of the carrier with that of the tokenizer, on samples."""

    def tables(self) -> Tables | None:
        """Returns the arguments of a native vocabulary, or ``None`` if the text of a stream is not simply the joined
        bytes of its tokens."""

    def contains(self, token_id: int, /) -> bool: ...

    def decoder(self) -> Callable[..., str]:
        """Returns a function that takes token ids and ``skip_special_tokens``, and returns their text. It does not
        clean up spaces: the caller does."""
