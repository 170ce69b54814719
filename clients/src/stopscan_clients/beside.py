"""Cuts the fields that describe a text, such as logprobs and citations, together with the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from stopscan_clients.paths import dotted, get, items, members, put, without

Token: TypeAlias = tuple[int, Any]  # where the token begins in the text, in code points, and the token's entry


@dataclass(frozen=True)
class Tokens:
    """Where the entries for the tokens of a text, such as logprobs, are: a list at ``path``, or parallel lists
    (``columns``) in the object at ``path``. An empty path means that there are none.

    The entry of a token is sent with the token's first character.
    """

    path: str = ""
    columns: tuple[str, ...] = ()
    offsets: str = ""  # the column with the offset of each token; the first offset need not be 0
    single: bool = False  # ``path`` leads to one entry, not to a list

    def of(self, unit: Any) -> Any:
        """Returns the entries in the unit as the API wrote them, or ``None`` if the unit has none."""
        return get(unit, *dotted(self.path)) if self.path else None

    def read(self, unit: Any, text: str) -> list[Token]:
        """Returns the entries, each with the offset in the text at which its token begins."""
        value = self.of(unit)
        if not value:
            return []
        rows: list[Any] = [value] if self.single else items(value)
        if self.columns:
            lists = [items(get(value, name)) for name in self.columns]
            rows = [tuple(c[i] if i < len(c) else None for c in lists) for i in range(len(lists[0]))]
        told = items(get(value, self.offsets)) if self.offsets else []
        tokens, place = [], 0
        for i, row in enumerate(rows):
            begin, length = _spelled(row[0] if self.columns else row, place)
            if i < len(told) and type(told[i]) is int and type(told[0]) is int:
                begin = told[i] - told[0]
            # `begin` may be too large: special tokens and half characters are longer in their entries than in the text.
            tokens.append((max(0, min(begin, len(text) - 1)), row))
            place += length
        return tokens

    def before(self, unit: Any, text: str, end: int) -> list[Any]:
        """Returns the entries of the tokens that begin before an offset in the text."""
        return [row for begin, row in self.read(unit, text) if begin < end]

    def write(self, unit: Any, rows: list[Any]) -> Any:
        """Returns the unit with these entries. A unit without entries is returned unchanged."""
        path, value = dotted(self.path), self.of(unit)
        if value is None:
            return unit
        if self.single:
            return put(unit, rows[0], *path) if rows else without(unit, *path)
        if not self.columns:
            return put(unit, rows, *path)
        told = members(value) or dict.fromkeys(self.columns, ())  # rows of held text may come to an event without any
        lists = {name: [row[i] for row in rows] for i, name in enumerate(self.columns) if told.get(name) is not None}
        return put(unit, {**told, **lists}, *path)


NO_TOKENS = Tokens()


def _spelled(entry: Any, place: int) -> tuple[int, int]:
    """Returns where the token begins, and how many characters begin in it. A token in the middle of a character begins
    where the character begins.

    Uses the entry's ``bytes`` if it has any, because its ``token`` cannot spell an incomplete character.
    """
    raw = [byte for byte in items(get(entry, "bytes")) if isinstance(byte, int)]
    if raw:
        begun = sum(byte & 0xC0 != 0x80 for byte in raw)
        return (place if raw[0] & 0xC0 != 0x80 else place - 1), begun
    text = entry if isinstance(entry, str) else get(entry, "token")
    return place, len(text) if isinstance(text, str) else 0


@dataclass(frozen=True)
class Spans:
    """A list of remarks on spans of the text, such as citations. At a stop, only those remarks stay that end before
    it."""

    path: str
    end: tuple[str, ...]  # the paths at which a remark may have its end
    in_bytes: bool = False
    piece: tuple[str, str] | None = None  # where a remark says to which piece of text it belongs, and the list of them

    def cut(self, unit: Any, text: str) -> Any:
        """Returns the unit with only those remarks that end in the text, or the unit itself if all remarks do."""
        path = dotted(self.path)
        remarks = get(unit, *path)
        if not isinstance(remarks, list):
            return unit
        kept = []
        for remark in remarks:
            ends = [end for at in self.end if type(end := get(remark, *dotted(at))) is int]
            said = text
            if self.piece is not None and type(at := get(remark, *dotted(self.piece[0]))) is int and at > 0:
                said = get(unit, *dotted(self.piece[1]), at, "text") or ""
            if ends and max(ends) <= len(said.encode() if self.in_bytes else said):
                kept.append(remark)
        return unit if len(kept) == len(remarks) else put(unit, kept, *path)


@dataclass(frozen=True)
class Beside:
    """The fields beside a text: the entries of its tokens, and remarks (see ``Spans``)."""

    tokens: Tokens = NO_TOKENS
    spans: tuple[Spans, ...] = ()

    def cut(self, tree: Any, text: str) -> Any:
        """Returns the tree without the remarks that end after ``text``, which is the text up to a stop. Leaves the
        tokens as they are."""
        for spans in self.spans:
            tree = spans.cut(tree, text)
        return tree


NOTHING = Beside()
