"""The decoders of the tokenizers library whose text is made from single tokens, read from their own description."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from tokenizers import Tokenizer

from stopscan.tokens._source import Tables

# Byte tokens as the decoder ByteFallback knows them; it takes a sign, too.
BYTE = re.compile("<0x([0-9A-Fa-f]{2}|\\+[0-9A-Fa-f])>")

Step = dict[str, Any]


@dataclass
class Chain:
    """What becomes of each token, and of the first space of the text."""

    replacements: list[tuple[str, str]] = field(default_factory=list)
    # The character for a space that the first token is without.
    dropped: str = ""
    byte_fallback: bool = False
    strip: bool = False

    def text(self, token: str) -> str:
        for old, new in self.replacements:
            token = token.replace(old, new)
        return token

    def first(self, token: str) -> str:
        for old, new in self.replacements:
            token = token.replace(old, "" if old == self.dropped else new)
        return token


def tables_of(tokenizer: Tokenizer, decoder: Step, names: Container[str | None]) -> Tables | None:
    """The tokens as ``decoder`` makes text of them, those of ``names`` special; None if it makes it otherwise."""
    steps = _steps(decoder)
    raw = _tokens(tokenizer)
    special = {token_id for token_id, token in enumerate(raw) if token in names}
    if [step["type"] for step in steps if step["type"] != "Fuse"] == ["ByteLevel"]:
        return Tables([*raw], special, spelled=True)
    chain = _chain(steps)
    return None if chain is None else _in_pieces(raw, special, chain)


def _steps(decoder: Step) -> list[Step]:
    """The decoders of a sequence, of those in it, or the one."""
    if decoder["type"] == "Sequence":
        return [step for part in decoder["decoders"] for step in _steps(part)]
    return [decoder]


def _chain(steps: list[Step]) -> Chain | None:
    """Replace and Metaspace, then ByteFallback, Fuse and a Strip of the first space, each of them or not."""
    chain = Chain()
    rest = [*steps]
    while rest and rest[0]["type"] in ("Replace", "Metaspace"):
        step = rest.pop(0)
        if step["type"] == "Metaspace":
            chain.replacements.append((step["replacement"], " "))
            if step["prepend_scheme"] != "never":
                chain.dropped = step["replacement"]
        elif pattern := step["pattern"].get("String"):
            chain.replacements.append((pattern, step["content"]))
        else:
            return None
    kinds = [step["type"] for step in rest]
    if kinds[:1] == ["ByteFallback"]:
        chain.byte_fallback = True
        del kinds[0]
    if kinds == ["Fuse", "Strip"] and not chain.dropped:
        strip = rest[-1]
        chain.strip = (strip["content"], strip["start"], strip["stop"]) == (" ", 1, 0)
        return chain if chain.strip else None
    return chain if kinds in ([], ["Fuse"]) else None


def _in_pieces(raw: list[str | None], special: set[int], chain: Chain) -> Tables:
    tables = Tables([], special, strays="runs" if chain.byte_fallback else "parts")
    tables.strip_first_space = chain.strip or chain.dropped != ""
    for token_id, token in enumerate(raw):
        text = token and chain.text(token)
        if text and chain.byte_fallback and len(text) == 6 and (byte := BYTE.fullmatch(text)):
            value = int(byte[1], 16)
            tables.tokens.append(value)
            if chain.strip and value == ord(" "):
                tables.firsts[token_id] = ""
            continue
        tables.tokens.append(text)
        if token and chain.dropped and (chain.dropped in token[1:] or token[0] == " "):
            tables.firsts[token_id] = chain.first(token)
    return tables


def _tokens(tokenizer: Tokenizer) -> list[str | None]:
    """The tokens by id."""
    size = tokenizer.get_vocab_size()
    tokens = [*map(tokenizer.id_to_token, range(size))]
    if None in tokens or tokenizer.id_to_token(size) is not None:  # there are gaps, or ids that share a text
        end = max(tokenizer.get_vocab().values()) + 1
        tokens += map(tokenizer.id_to_token, range(size, end))
    return tokens
