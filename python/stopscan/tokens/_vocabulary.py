from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import RLock
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from stopscan import _stopscan
from stopscan.tokens._check import agrees
from stopscan.tokens._families import source_of
from stopscan.tokens._source import Habits, Source
from stopscan.tokens._window import Window


class Vocabulary(_stopscan.Vocabulary):
    """The bytes of every token id of a tokenizer: compiled once, immutable, shared by threads and scanners.

    ``tokenizer`` is a ``tokenizers.Tokenizer``, an object that carries one (transformers' fast tokenizers, mlx-lm's
    wrapper), a ``tiktoken.Encoding``, or a tokenizer of mistral-common. The vocabulary is kept as long as the tokenizer
    lives. The tokenizer is read again if tokens were added or the decoder was replaced, and not if a token that was
    there became special.

    The vocabulary is ``native`` if the text of a stream is made from the bytes of single ids: byte-level BPE, tekken,
    tiktoken, SentencePiece. The description of the decoder decides, and samples are compared with ``decode``. Any other
    tokenizer decodes for itself, which is slower.

    Raises ``TypeError`` for any other object. A pickle of a native vocabulary has the tokens, and not the tokenizer.

    >>> vocabulary = Vocabulary(tokenizer)
    >>> vocabulary.native
    True
    >>> scanner = TokenScanner(vocabulary, ["END"])
    """

    __slots__ = ("__weakref__", "_name", "_source")

    _name: str
    _source: Source | None

    def __new__(cls, tokenizer: Any, /) -> Vocabulary:
        source = source_of(tokenizer)
        with _lock:
            known = _recall(source.key)
            if known is None or known.fingerprint != source.fingerprint:
                known = _read(source)
                _remember(source.key, known)
        if known.vocabulary is not None:
            return known.vocabulary
        source.habits = known.habits
        vocabulary = super().__new__(cls, None)
        vocabulary._source = source
        return vocabulary

    def __reduce__(self) -> tuple[Any, ...]:
        if self._source is not None:
            return Vocabulary, (self._source.carrier,)
        return _restored, (self._name, *self._parts())

    def _window(self, skip_special_tokens: bool, prompt_token_ids: Sequence[int]) -> Window:
        assert self._source is not None
        return Window(self._source, skip_special_tokens, prompt_token_ids)


class Known(NamedTuple):
    """What was found out about a tokenizer, and its vocabulary if that is native. One that is not needs the tokenizer,
    and would keep it alive."""

    fingerprint: Hashable
    habits: Habits
    vocabulary: Vocabulary | None


_lock = RLock()
_known: WeakKeyDictionary[Any, Known] = WeakKeyDictionary()

# Native vocabularies by a name that pickles carry: they are large, and many scanners have the same.
_named: WeakValueDictionary[str, Vocabulary] = WeakValueDictionary()


def _recall(tokenizer: Any) -> Known | None:
    try:
        return _known.get(tokenizer)
    except TypeError:  # before 0.23, tokenizers' own cannot be weakly referenced; they have attributes
        known: Known | None = getattr(tokenizer, "_stopscan", None)
        return known


def _remember(tokenizer: Any, known: Known) -> None:
    try:
        _known[tokenizer] = known
    except TypeError:
        tokenizer._stopscan = known


def _read(source: Source) -> Known:
    source.habits = source.learn_habits()
    return Known(source.fingerprint, source.habits, _native(source))


def _native(source: Source) -> Vocabulary | None:
    tables = source.tables()
    if tables is None:
        return None
    try:
        vocabulary = _made(uuid4().hex, vars(tables))
    except ValueError:  # a decoder that makes text otherwise
        return None
    return vocabulary if agrees(vocabulary, source) else None


def _made(name: str, tables: dict[str, Any]) -> Vocabulary:
    vocabulary = _stopscan.Vocabulary.__new__(Vocabulary, **tables)
    vocabulary._name, vocabulary._source = name, None
    _named[name] = vocabulary
    return vocabulary


def _restored(name: str, tokens: list[Any], options: dict[str, Any]) -> Vocabulary:
    """The vocabulary of a pickle: the one that this process has, if it does."""
    return _named.get(name) or _made(name, {"tokens": tokens, **options})
