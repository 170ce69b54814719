"""What a token scanner must say, found by spelling out all tokens again after each one and scanning by the book."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, get_args

from books import Book, Decoded
from reference import Reference

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
        include_stop: bool = False,
        start_protected: bool = False,
        skip_special_tokens: bool = True,
        prompt_token_ids: Sequence[int] = (),
        reason: str = "eos",
        marker: Callable[[int], str | None] = lambda token_id: None,
        reference: Any = None,
    ) -> None:
        self.characters = lambda count, ended: book.characters(
            prompt_token_ids, token_ids[:count], skip_special_tokens=skip_special_tokens, ended=ended
        )
        self.reference = reference or Reference(
            stop, visible=visible, protect=protect, include_stop=include_stop, start_protected=start_protected
        )
        self.count = self.read = 0  # how many tokens and characters were scanned
        self.outputs: list[Any] = []
        self.seen = 0
        self.finish = Finish("length") if max_tokens == 0 else None
        for token_id in token_ids:
            if self.finish is not None:
                break
            armed = self.seen >= min_tokens
            if token_id in eos_token_ids or armed and token_id in stop_token_ids:
                is_stop = token_id in stop_token_ids
                self.end(Finish("stop_token", token_id) if is_stop and armed else Finish("eos"), armed=armed, ids=1)
                break
            self.seen += 1
            out = self.feed(self.seen, ended=False, armed=armed)
            if skip_special_tokens and (name := marker(token_id)) is not None:
                out += pass_marker(self.reference, name, self.seen)
            self.outputs.append(out)
            self.finish = self.matched()
            if self.finish is None and self.seen == max_tokens:
                self.end(Finish("length"), armed=armed)
                self.outputs[-2:] = [self.outputs[-2] + self.outputs[-1]]
        else:
            if self.finish is None:
                self.end(Finish(reason), armed=self.seen > min_tokens)
        self.numbers = [number for _, number in self.characters(self.count, True)]

    @property
    def kept(self) -> int:
        count = len("".join(self.outputs))
        return self.numbers[count - 1] if count else 0

    def feed(self, count: int, *, ended: bool, armed: bool) -> Any:
        characters = self.characters(count, ended)
        new = "".join(character for character, _ in characters[self.read :])
        self.count, self.read = count, len(characters)
        return self.reference.feed(new, armed=armed)

    def end(self, finish: Finish, *, armed: bool, ids: int = 0) -> None:
        """The end, with one token more if its text completes a stop."""
        with_token = copy(self)
        with_token.reference = copy(self.reference)
        with_token.feed(self.seen + ids, ended=True, armed=armed)
        tokens = self.seen + ids if with_token.reference.match else self.seen
        self.outputs.append(self.feed(tokens, ended=True, armed=armed) + self.reference.flush())
        self.finish = self.matched() or finish
        self.seen += ids

    def matched(self) -> Finish | None:
        match = self.reference.match
        return match and Finish("stop_sequence", match.sequence, match.offset)


def pass_marker(reference: Any, marker: str, number: int) -> Any:
    """A marker that is a token without text leads into its region, or out of it, all the same."""
    if not isinstance(reference, Reference):
        return reference.pass_marker(marker, number)
    if reference.match:
        return ""
    state = reference.graph[reference.state].get(marker)
    if state is None:
        return ""
    out = reference.flush()
    reference.state = state
    return out


def run(scanner: TokenScanner, token_ids: Sequence[int], reason: Any = "eos") -> list[str]:
    """What each token emitted, and what the end did if it was not one of them."""
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
    """The scanner after all tokens, each output, count and the finish of which were what the oracle says."""
    whole = Whole(book, token_ids, stop, **options)
    reason = options.pop("reason", "eos")
    options.pop("marker", None)
    stops = StopSet(stop, visible=options.pop("visible", ()), protect=options.pop("protect", ()))
    scanner = TokenScanner(tokenizer, stops, **options)
    assert run(scanner, token_ids, reason) == whole.outputs
    assert scanner.finish == whole.finish
    assert scanner.match == (whole.finish and whole.finish.match)
    assert (scanner.tokens_seen, scanner.tokens_kept) == (whole.seen, whole.kept)
    return scanner


def stopped(offset: int, stop: str = "END") -> Finish:
    return Finish("stop_sequence", stop, offset)


def ended(token_id: int) -> Finish:
    return Finish("stop_token", token_id)


def matched(scanner: TokenScanner) -> StopMatch | None:
    return scanner.match
