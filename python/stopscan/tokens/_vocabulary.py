from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from stopscan import _stopscan
from stopscan.tokens._check import agrees
from stopscan.tokens._families import source_of
from stopscan.tokens._source import CarrierDecode, Source
from stopscan.tokens._window import Window


class Vocabulary(_stopscan.Vocabulary):
    """The bytes of every token id of a tokenizer: compiled once, immutable, shared by threads and scanners.

    ``tokenizer`` is a ``tokenizers.Tokenizer``, a ``tiktoken.Encoding`` or a tokenizer of mistral-common, an object
    that has one of them in an attribute (transformers' fast tokenizers, mlx-lm's wrapper, tokenizers that come with a
    checkpoint), or any other object with a method ``decode`` from token ids to text. An object that cannot decode
    raises ``TypeError``.

    The vocabulary is cached as long as the tokenizer lives. It is made again if tokens were added or the decoder was
    replaced, but not if an existing token was made special.

    The vocabulary is ``native`` if stopscan can make the text of a stream from the bytes of single ids, without the
    tokenizer: for byte-level BPE, tekken, tiktoken and SentencePiece. stopscan reads from the tokenizer's data whether
    it can do this. It then compares the text of sample ids with the result of ``decode``: if they differ, the
    vocabulary is not ``native``. If a vocabulary is not ``native``, the scanner calls ``decode``, which is slower.

    A pickle of a native vocabulary has the tokens, but not the tokenizer.

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
        source.carrier_decode = known.carrier_decode
        vocabulary = super().__new__(cls, None)
        vocabulary._source = source
        return vocabulary

    def __reduce__(self) -> tuple[Any, ...]:
        if self._source is not None:
            return Vocabulary, (self._source.carrier,)
        return _restored, (self._name, *self._parts())

    def _window(self, skip_special_tokens: bool, prompt_token_ids: Sequence[int], count_unknown: bool) -> Window:
        assert self._source is not None
        prompt = filter(self._source.contains, prompt_token_ids) if count_unknown else prompt_token_ids
        return Window(self._source, skip_special_tokens, [*prompt])


class Known(NamedTuple):
    """The entry of a tokenizer in the cache of vocabularies.

    ``vocabulary`` is ``None`` if the tokenizer has no native vocabulary. A vocabulary that is not native is not cached:
    it refers to the tokenizer, so the cache would keep the tokenizer alive.
    """

    fingerprint: Hashable
    carrier_decode: CarrierDecode
    vocabulary: Vocabulary | None


_lock = RLock()
_known: WeakKeyDictionary[Any, Known] = WeakKeyDictionary()

# Native vocabularies by name. The name of a vocabulary is random, and is stored in its pickles. So all pickles of one
# vocabulary are loaded as one object.
_named: WeakValueDictionary[str, Vocabulary] = WeakValueDictionary()


def _recall(tokenizer: Any) -> Known | None:
    try:
        return _known.get(tokenizer)
    except TypeError:  # before tokenizers 0.23, a tokenizer cannot be weakly referenced, but can be given an attribute
        known: Known | None = getattr(tokenizer, "_stopscan", None)
        return known


def _remember(tokenizer: Any, known: Known) -> None:
    try:
        _known[tokenizer] = known
    except TypeError:
        with suppress(AttributeError):  # an object with slots is not cached: its vocabulary is made again each time
            tokenizer._stopscan = known


def _read(source: Source) -> Known:
    source.carrier_decode = source.compare_carrier()
    return Known(source.fingerprint, source.carrier_decode, _native(source))


def _native(source: Source) -> Vocabulary | None:
    tables = source.tables()
    if tables is None:
        return None
    try:
        vocabulary = _make(uuid4().hex, vars(tables))
    except ValueError:  # the decoder has rules that `_stopscan.Vocabulary` does not know
        return None
    return vocabulary if agrees(vocabulary, source) else None


def _make(name: str, tables: dict[str, Any]) -> Vocabulary:
    vocabulary = _stopscan.Vocabulary.__new__(Vocabulary, **tables)
    vocabulary._name, vocabulary._source = name, None
    _named[name] = vocabulary
    return vocabulary


def _restored(name: str, tokens: list[Any], options: dict[str, Any]) -> Vocabulary:
    """Returns the vocabulary of a pickle. If this process already has a vocabulary with this ``name``, returns it.
    Otherwise makes a new one."""
    return _named.get(name) or _make(name, {"tokens": tokens, **options})
