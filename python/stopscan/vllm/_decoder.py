"""The text of token ids from a native vocabulary, token for token as vLLM's own fast detokenizer gives it."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from stopscan.tokens import Vocabulary

if TYPE_CHECKING:
    from vllm.tokenizers import TokenizerLike
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer

REPLACEMENT = "\ufffd"


class Pieces(NamedTuple):
    """What each token id has of a text: whole characters, bytes that may be a part of one, or a special token."""

    whole: dict[int, str]
    parts: dict[int, bytes]
    special: dict[int, bytes]

    def bytes_of(self, token_id: int, skip_special_tokens: bool) -> bytes:
        """Its bytes; an id that is no token's has none."""
        if token_id in self.special:
            return b"" if skip_special_tokens else self.special[token_id]
        return self.parts.get(token_id) or self.whole.get(token_id, "").encode()


class Decoder(Protocol):
    """What makes text of the tokens of one stream."""

    @property
    def at_once(self) -> Callable[[int], str | None]:
        """The text of a token that needs no other, ``None`` if it is to be decoded."""

    def decode(self, token_id: int, /) -> str: ...


_known: WeakKeyDictionary[Any, Pieces | None] = WeakKeyDictionary()


def decoder(detokenizer: BaseIncrementalDetokenizer, tokenizer: TokenizerLike, request: EngineCoreRequest) -> Decoder:
    """What decodes the tokens of a request: their pieces, where those give vLLM's own text, or else vLLM."""
    from vllm.v1.engine.detokenizer import FastIncrementalDetokenizer

    params = request.sampling_params
    skip = params.skip_special_tokens
    if type(detokenizer) is FastIncrementalDetokenizer and (skip or params.spaces_between_special_tokens):
        pieces = pieces_of(tokenizer)
        if pieces and _ends_whole(pieces, skip, request.prompt_token_ids or ()):
            return PieceDecoder(pieces, skip)
    return VllmDecoder(detokenizer)


def pieces_of(tokenizer: TokenizerLike) -> Pieces | None:
    """The pieces of a tokenizer, kept as long as it lives; ``None`` unless bytes alone make its text."""
    if tokenizer not in _known:
        _known[tokenizer] = _read(tokenizer)
    return _known[tokenizer]


def _read(tokenizer: TokenizerLike) -> Pieces | None:
    try:
        vocabulary = Vocabulary(tokenizer._tokenizer)
    except (AttributeError, TypeError):
        return None
    if not vocabulary.native:
        return None
    tokens, options = vocabulary._parts()
    if options["strays"] != "parts" or options["firsts"] or options["strip_first_space"]:
        return None
    pieces = Pieces({}, {}, {})
    for token_id, token in enumerate(tokens):
        # Whole characters come as text, parts of them as bytes; an id that is no token's has neither.
        if not isinstance(token, str | bytes):
            continue
        data = token.encode() if isinstance(token, str) else token
        if token_id in options["special"]:
            pieces.special[token_id] = data
        elif isinstance(token, bytes) or token.endswith(REPLACEMENT):
            # Text that ends with U+FFFD waits as half a character does: vLLM cannot tell them apart.
            pieces.parts[token_id] = data
        else:
            pieces.whole[token_id] = token
    return pieces


def _ends_whole(pieces: Pieces, skip_special_tokens: bool, prompt_token_ids: Sequence[int]) -> bool:
    """Whether a prompt ends with a whole character; after half a one, vLLM gives its text out again."""
    for token_id in reversed(prompt_token_ids):
        if pieces.bytes_of(token_id, skip_special_tokens):
            return token_id not in pieces.parts
    return True


class VllmDecoder:
    """vLLM's own way."""

    def __init__(self, detokenizer: BaseIncrementalDetokenizer) -> None:
        self.decode: Callable[[int], str] = detokenizer.decode_next
        self.at_once: Callable[[int], str | None] = self.decode


class PieceDecoder:
    """Text comes with the token that makes its last character whole, as from ``DecodeStream``."""

    def __init__(self, pieces: Pieces, skip_special_tokens: bool) -> None:
        self._pieces = pieces
        self._skip_special_tokens = skip_special_tokens
        self.at_once: Callable[[int], str | None] = pieces.whole.get
        self._utf8 = getincrementaldecoder("utf-8")("replace")
        self._waiting: list[str] = []

    def decode(self, token_id: int) -> str:
        """The text that is whole with this token."""
        piece = self._pieces.bytes_of(token_id, self._skip_special_tokens)
        if not piece:
            return ""
        text = self._utf8.decode(piece)
        self._waiting.append(text)
        half, _ = self._utf8.getstate()
        if half or text.endswith(REPLACEMENT):
            self.at_once = _wait
            return ""
        self.at_once = self._pieces.whole.get
        text = "".join(self._waiting)
        self._waiting.clear()
        return text


def _wait(_: int) -> None:
    return None
