"""Where in a text its tokens begin, so that logprobs can be cut with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stopscan_clients._json import get, items, text_at
from stopscan_clients._machines.machine import Token


def spelled(entries: Any, text: str) -> list[Token]:
    """Returns the entries of a list of logprobs, each with the place in ``text`` where its token begins.

    ``bytes`` counts before ``token``, which cannot spell half a character: such a token begins where the
    character does.
    """
    tokens, place = [], 0
    for entry in items(entries):
        raw = [byte for byte in items(get(entry, "bytes")) if isinstance(byte, int)]
        if raw:
            begun = sum(byte & 0xC0 != 0x80 for byte in raw)
            begin = place if raw[0] & 0xC0 != 0x80 else place - 1
        else:
            begun, begin = len(text_at(entry, "token")), place
        tokens.append((_within(begin, text), entry))
        place += begun
    return tokens


def placed(begins: Sequence[Any], entries: Iterable[Any], text: str) -> list[Token]:
    """Returns the entries, each with its place, where the API tells the places, from any zero."""
    whole = [begin if isinstance(begin, int) else 0 for begin in begins]
    return [(_within(begin - whole[0], text), entry) for begin, entry in zip(whole, entries, strict=False)]


def _within(begin: int, text: str) -> int:
    """A place of the text even for tokens that spell more than is in it: special ones, half a character."""
    return max(0, min(begin, len(text) - 1))
