"""The reference for token scanners: after each token, it decodes all tokens again and scans their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, get_args

from books import Book, Decoded
from reference import Match, Reference, region_of

from stopscan import StopMatch, StopSet
from stopscan.finish import EndReason, Finish
from stopscan.tokens import TokenScanner

REASONS = get_args(EndReason)


class Whole:
    def __init__(
        self,
        book: Book | Decoded,
        token_ids: Sequence[int],
        stop: Sequence[str] = (),
        *,
        visible: Sequence[str] = (),
        protect: Sequence[tuple[str, str]] = (),
        stop_token_ids: Sequence[int] = (),
        eos_token_ids: Sequence[int] = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        eos_ends_early: bool = False,
        include_stop: bool = False,
        start_protected: bool = False,
        skip_special_tokens: bool = True,
        prompt_token_ids: Sequence[int] = (),
        reason: str = "eos",
        marker: Callable[[int], str | None] = lambda token_id: None,
        reference: Any = None,
    ) -> None:
        self.book, self.prompt, self.ids, self.skips = book, prompt_token_ids, token_ids, skip_special_tokens
        self.region_of = str if protect else region_of  # a protected region is named after its opening marker
        self.silent: set[int] = set()  # the positions of tokens without text, such as an EOS
        self.regions: list[str | None] = []  # for each token, the region of its last character
        self.marked = 0  # the position of the last token that was a marker without text
        self.reference = reference or Reference(
            stop, visible=visible, protect=protect, include_stop=include_stop, start_protected=start_protected
        )
        self.read = 0  # how many characters were scanned
        self.outputs: list[Any] = []
        self.seen = 0
        self.finish = Finish("length") if max_tokens == 0 else None
        for token_id in token_ids:
            if self.finish is not None:
                break
            armed = self.seen >= min_tokens
            if armed and token_id in stop_token_ids:
                self.end_at(Finish("stop_token", token_id), armed)
                break
            if token_id in eos_token_ids and (armed or eos_ends_early):
                self.end_at(Finish("eos"), armed)
                break
            self.seen += 1
            self.reference.marker_ended = False
            is_eos = token_id in eos_token_ids
            if is_eos:
                self.silent.add(self.seen)
            out = self.feed(self.seen, ended=False, armed=armed)
            if skip_special_tokens and not is_eos and (name := marker(token_id)) is not None:
                out += self.pass_marker(name)
            self.regions.append(None if self.reference.marker_ended else self.region_of(self.reference.state))
            self.outputs.append(out)
            self.finish = self.matched()
            if self.finish is None and self.seen == max_tokens:
                self.end(Finish("length"), armed=armed)
                self.outputs[-2:] = [self.outputs[-2] + self.outputs[-1]]
        else:
            if self.finish is None:
                self.end(Finish(reason), armed=self.seen > min_tokens)
        self.numbers = [number for _, number in self.characters(self.seen, True)]

    @property
    def kept(self) -> int:
        count = len("".join(self.outputs))
        return self.numbers[count - 1] if count else 0

    def tokens_in(self, gone: int) -> dict[str, int]:
        """Returns how many tokens count in each region. Counts the tokens up to the position ``gone``. If a marker
        that adds no text comes later, counts the tokens up to this marker."""
        names = dict.fromkeys(map(self.region_of, self.reference.graph))
        if len(names) == 1 and self.reference.markers_stay:
            return dict.fromkeys(names, gone)
        return {name: self.regions[: max(gone, self.marked)].count(name) for name in names}

    def characters(self, count: int, ended: bool, *, skips: bool | None = None) -> list[tuple[str, int]]:
        numbers = [number for number in range(1, count + 1) if number not in self.silent]
        skip_special_tokens = self.skips if skips is None else skips
        token_ids = [self.ids[number - 1] for number in numbers]
        spelled = self.book.characters(self.prompt, token_ids, skip_special_tokens=skip_special_tokens, ended=ended)
        return [(character, numbers[place - 1]) for character, place in spelled]

    def own(self, count: int) -> str | None:
        """Returns the text of the token at position ``count``. Returns ``None`` if this token has no text, or if it
        shares a character with other tokens."""
        if count in self.silent:
            return None
        raw = getattr(self.book, "raw", lambda token_id: "")(self.ids[count - 1])
        if isinstance(raw, bytes) and "\ufffd" in raw.decode(errors="replace"):
            return None  # its first bytes complete a character of the tokens before it
        if isinstance(raw, int) and raw > 0x7F:
            return None  # a byte token that is a part of a character
        special: Any = getattr(self.book, "special", ())
        others = copy(self)
        skipped = {number for number in range(1, count) if self.skips and self.ids[number - 1] in special}
        others.silent = self.silent | skipped
        text = "".join(
            character for character, number in others.characters(count, True, skips=False) if number == count
        )
        begins = "".join(
            character for character, number in others.characters(count, False, skips=False) if number == count
        )
        return text if text == begins and "\ufffd" not in text else None

    def feed(self, count: int, *, ended: bool, armed: bool) -> Any:
        characters = self.characters(count, ended)
        new = characters[self.read :]
        newest = next((at for at, (_, number) in enumerate(new) if number == count), len(new))
        before, own = ("".join(character for character, _ in part) for part in (new[:newest], new[newest:]))
        self.read = len(characters)
        out = self.reference.feed(before, armed=armed)
        leads = self.reference.graph[self.reference.state]
        one_step = not ended and own in leads and own == self.own(count)
        return out + self.reference.feed(own, armed=armed, one_step=one_step)

    def pass_marker(self, name: str) -> Any:
        out = pass_marker(self.reference, name, self.seen)
        if self.reference.marker_ended:
            self.marked = self.seen
        return out

    def end_at(self, finish: Finish, armed: bool) -> None:
        """Ends the stream at a token whose text is not emitted. A stop that equals the token's text still fires."""
        stop = self.own(self.seen + 1) if armed else None
        out = self.feed(self.seen, ended=True, armed=armed)
        if self.reference.match is None and stop in self.stops_here():
            out += self.reference.flush()
            self.reference.match = Match(stop, len(self.reference.text), len(self.reference.text) + len(stop))
        self.outputs.append(out + self.reference.flush())
        self.finish = self.matched() or finish
        self.seen += 1
        self.silent.add(self.seen)

    def stops_here(self) -> Sequence[str]:
        return self.reference.stops if self.reference.region in self.reference.stop_in else ()

    def end(self, finish: Finish, *, armed: bool) -> None:
        self.outputs.append(self.feed(self.seen, ended=True, armed=armed) + self.reference.flush())
        self.finish = self.matched() or finish

    def matched(self) -> Finish | None:
        match = self.reference.match
        return match and Finish("stop_sequence", match.sequence, match.offset)


def pass_marker(reference: Any, marker: str, number: int) -> Any:
    """Makes the reference follow a marker that is a special token. Such a marker opens or closes a region even if its
    text is left out."""
    if not isinstance(reference, Reference):
        return reference.pass_marker(marker, number)
    if reference.match or marker not in reference.graph[reference.state]:
        return ""
    out = reference.flush()
    reference.follow(marker)
    reference.marker_ended = True
    return out


def run(scanner: TokenScanner, token_ids: Sequence[int], reason: Any = "eos") -> list[str]:
    """Feeds the tokens to the scanner, and returns the text that comes out with each token. If no token ends the
    stream, the text of ``flush`` comes last."""
    outputs = []
    for token_id in token_ids:
        outputs.append(scanner.feed(token_id))
        if scanner.finish is not None:
            return outputs
    return [*outputs, scanner.flush(reason)]


def emitted(scanner: TokenScanner, token_ids: Sequence[int], reason: Any = "eos") -> str:
    return "".join(run(scanner, token_ids, reason))


def agree(
    tokenizer: Any, book: Book | Decoded, token_ids: Sequence[int], stop: Sequence[str] = (), **options: Any
) -> TokenScanner:
    """Compares a scanner with the reference: outputs, counts and finish. Returns the scanner after all tokens."""
    whole = Whole(book, token_ids, stop, **options)
    reason = options.pop("reason", "eos")
    options.pop("marker", None)
    stops = StopSet(stop, visible=options.pop("visible", ()), protect=options.pop("protect", ()))
    scanner = TokenScanner(tokenizer, stops, **options)
    assert run(scanner, token_ids, reason) == whole.outputs
    assert scanner.finish == whole.finish
    assert scanner.match == (whole.finish and whole.finish.match)
    assert (scanner.tokens_seen, scanner.tokens_kept) == (whole.seen, whole.kept)
    assert scanner.tokens_in == whole.tokens_in(whole.kept)
    return scanner


def stopped(offset: int, stop: str = "END") -> Finish:
    return Finish("stop_sequence", stop, offset)


def ended(token_id: int) -> Finish:
    return Finish("stop_token", token_id)


def matched(scanner: TokenScanner) -> StopMatch | None:
    return scanner.match
