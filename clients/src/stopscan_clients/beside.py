"""Cuts the fields that describe a text, such as logprobs and citations, together with the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from stopscan_clients.paths import dotted, get, items, members, put, without

# A token's offset in the text, in code points, and the API's data about the token, such as its logprob.
Token: TypeAlias = tuple[int, Any]


@dataclass(frozen=True)
class Tokens:
    """Says where an event has the entries of its tokens. An entry is data about one token, such as its logprob.

    ``path`` leads to a list of entries. It begins at the choice or, if the API has no choices, at the event. If
    ``columns`` are given, it leads to an object with parallel lists instead. If the API sends no entries, ``path`` is
    empty.

    The entry of a token is sent with the token's first character.
    """

    path: str = ""
    columns: tuple[str, ...] = ()
    offsets: str = ""  # the name of the column with the tokens' offsets; the first offset need not be 0
    single: bool = False  # whether ``path`` leads to the entry of a single token, not to a list of entries

    def of(self, unit: Any) -> Any:
        """Returns the entries of the tokens in a choice or event as the API wrote them, or ``None`` if there are
        none."""
        return get(unit, *dotted(self.path)) if self.path else None

    def read(self, unit: Any, text: str) -> list[Token]:
        """Returns the entries of the tokens, such as logprobs, each with the offset in ``text`` at which its token
        begins."""
        value = self.of(unit)
        if not value:
            return []
        entries: list[Any] = [value] if self.single else items(value)
        if self.columns:
            lists = [items(get(value, name)) for name in self.columns]
            entries = [tuple(c[i] if i < len(c) else None for c in lists) for i in range(len(lists[0]))]
        offsets = items(get(value, self.offsets)) if self.offsets else []
        tokens, place = [], 0
        for i, entry in enumerate(entries):
            begin, length = _spelled(entry[0] if self.columns else entry, place)
            if i < len(offsets) and type(offsets[i]) is int and type(offsets[0]) is int:
                begin = offsets[i] - offsets[0]
            # `begin` may be after the end of the text: the entry of a special token, or of a token with half a
            # character, may have more characters than the token adds to the text.
            tokens.append((max(0, min(begin, len(text) - 1)), entry))
            place += length
        return tokens

    def before(self, unit: Any, text: str, end: int) -> list[Any]:
        """Returns the entries of the tokens that begin before an offset in the text."""
        return [entry for begin, entry in self.read(unit, text) if begin < end]

    def write(self, unit: Any, entries: list[Any]) -> Any:
        """Returns ``unit``, a choice or event, with these entries. If it had none, returns ``unit`` itself."""
        path, value = dotted(self.path), self.of(unit)
        if value is None:
            return unit
        if self.single:
            return put(unit, entries[0], *path) if entries else without(unit, *path)
        if not self.columns:
            return put(unit, entries, *path)
        # The API may have sent an event without columns. If held text of earlier events is sent in this event, the
        # entries of that text are sent in it, too, so all columns are added.
        columns = members(value) or dict.fromkeys(self.columns, ())
        lists = {
            name: [entry[i] for entry in entries]
            for i, name in enumerate(self.columns)
            if columns.get(name) is not None
        }
        return put(unit, {**columns, **lists}, *path)


NO_TOKENS = Tokens()


def _spelled(entry: Any, place: int) -> tuple[int, int]:
    """Returns the offset at which a token begins in the text, and how many characters begin in the token. ``place`` is
    how many characters begin in all earlier tokens. A token that begins inside a character gets the offset of that
    character.

    Reads the ``bytes`` of the entry or, if it has none, its ``token``. This is a string, which cannot contain half a
    character.
    """
    raw = [byte for byte in items(get(entry, "bytes")) if isinstance(byte, int)]
    if raw:
        begun = sum(byte & 0xC0 != 0x80 for byte in raw)
        return (place if raw[0] & 0xC0 != 0x80 else place - 1), begun
    text = entry if isinstance(entry, str) else get(entry, "token")
    return place, len(text) if isinstance(text, str) else 0


@dataclass(frozen=True)
class Spans:
    """Says where a choice, event or answer has remarks on spans of its text, such as citations. At a stop, only the
    remarks that end in the kept text are kept."""

    path: str
    end: tuple[str, ...]  # the paths in a remark where it may say at which offset of the text it ends
    in_bytes: bool = False  # whether this offset counts bytes of UTF-8, not characters
    # If the text is a list of pieces, a remark (such as a citation) may be about one of them. It then has the index of
    # this piece. The first path leads from the remark to this index, the second from the choice, event or answer to the
    # list of pieces, and the third from a piece to its text. A remark without an index is about the whole text.
    piece: tuple[str, str, str] = ("", "", "")

    def cut(self, unit: Any, text: str) -> Any:
        """Returns the choice, event or answer ``unit`` without the remarks, such as citations, that end after ``text``,
        the text that is kept at a stop. A remark that does not say where it ends is removed too. If nothing is removed,
        returns ``unit`` itself."""
        path = dotted(self.path)
        remarks = get(unit, *path)
        if not isinstance(remarks, list):
            return unit
        kept = [remark for remark in remarks if self._ends_in(remark, unit, text)]
        return unit if len(kept) == len(remarks) else put(unit, kept, *path)

    def _ends_in(self, remark: Any, unit: Any, text: str) -> bool:
        ends = [end for path in self.end if type(end := get(remark, *dotted(path))) is int]
        number_at, pieces_at, text_at = self.piece
        number = get(remark, *dotted(number_at))
        if type(number) is int and number > 0:
            text = get(unit, *dotted(pieces_at), number, text_at) or ""
        return bool(ends) and max(ends) <= len(text.encode() if self.in_bytes else text)


@dataclass(frozen=True)
class Beside:
    """The fields that describe a text: the entries of its tokens (``Tokens``), and remarks on it (``Spans``)."""

    tokens: Tokens = NO_TOKENS
    spans: tuple[Spans, ...] = ()

    def cut(self, tree: Any, text: str) -> Any:
        """Returns the event or answer ``tree`` without the remarks, such as citations, that end after ``text``, the
        text that is kept at a stop. The entries of the tokens do not change."""
        for spans in self.spans:
            tree = spans.cut(tree, text)
        return tree


NOTHING = Beside()
