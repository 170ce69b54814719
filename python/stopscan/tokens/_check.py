"""Checks native vocabularies. A native vocabulary decodes without its tokenizer, and must give the same text as the
tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from stopscan import _stopscan
from stopscan.tokens._samples import sequences
from stopscan.tokens._source import Source, Token

# This many token ids are drawn at random for the samples. Ids without a token and byte tokens, such as the token for
# the byte 255, are then left out. `RUNS` tests the byte tokens.
DRAWN = 1000

# The samples spell these byte strings with byte tokens. A string has characters of one to four bytes, or it is invalid
# UTF-8. No string has an invalid byte after a character, because `decode` may then replace the character too, but a
# stream has already emitted the character.
RUNS = [b"a", "é".encode(), "你".encode(), "🚀🚀".encode(), b"\xff", b"\x80\x80", b"\xe4\xbd", b"\xf0\x9f\x9a"]


def agrees(vocabulary: _stopscan.Vocabulary, source: Source) -> bool:
    """Returns whether sampled ids and sequences have the same text in ``vocabulary`` as in ``source``."""
    decode = source.decoder()
    return all(
        _text(vocabulary, ids, skip) == decode(ids, skip_special_tokens=skip)
        for ids in _samples(*vocabulary._parts(), [*source.special])
        for skip in source.skips
    )


def _samples(tokens: list[Token], options: dict[str, Any], special: list[int]) -> Iterator[list[int]]:
    draw = Random(len(tokens))
    drawn = draw.choices(range(len(tokens)), k=DRAWN) if tokens else []
    texts = [token_id for token_id in drawn if isinstance(tokens[token_id], str | bytes)]
    yield from sequences(texts, special)
    yield from sequences([*options["firsts"]], special, count=8)
    if options["strays"] != "parts":
        yield from _runs(tokens, texts[:1], special[:1])


def _runs(tokens: list[Token], text: list[int], special: list[int]) -> Iterator[list[int]]:
    byte_ids = {token: token_id for token_id, token in enumerate(tokens) if isinstance(token, int)}
    for run in RUNS:
        if all(byte in byte_ids for byte in run):
            ids = [byte_ids[byte] for byte in run]
            yield ids
            yield [*text, *ids, *text, *ids[:1], *special, *ids[1:]]


def _text(vocabulary: _stopscan.Vocabulary, ids: list[int], skip: bool) -> str:
    scanner = _stopscan.TokenScanner(vocabulary, skip_special_tokens=skip)
    return scanner.feed_many(ids) + scanner.flush()
