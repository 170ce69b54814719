"""The wrong stop, or none, or one where there is none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from staged.defects.defect import wrong
from staged.scanners import Found, Simple


class ListOrder(Simple):
    def find(self, before: int) -> Found | None:
        return next(iter(self.found()), None)


class LastListed(Simple):
    def find(self, before: int) -> Found | None:
        return next((one for stop in reversed(self.stops) for one in self.found() if one[1] == stop), None)


class EarliestStart(Simple):
    def find(self, before: int) -> Found | None:
        return min(self.found(), key=lambda one: (one[0], -len(one[1])), default=None)


class ShortestOfATie(Simple):
    def find(self, before: int) -> Found | None:
        return min(self.found(), key=lambda one: (one[0] + len(one[1]), len(one[1])), default=None)


class TieInListOrder(Simple):
    def find(self, before: int) -> Found | None:
        return min(self.found(), key=lambda one: one[0] + len(one[1]), default=None)


class LongestStop(Simple):
    def find(self, before: int) -> Found | None:
        return max(self.found(), key=lambda one: len(one[1]), default=None)


class WaitsForLonger(Simple):
    def find(self, before: int) -> Found | None:
        found = super().find(before)
        if found and any(stop != found[1] and self.text[found[0] :] == stop[:3] for stop in self.stops):
            return None
        return max((one for one in self.found() if found), key=lambda one: len(one[1]), default=None)


class LastPlace(Simple):
    def find(self, before: int) -> Found | None:
        return max(self.found(), key=lambda one: one[0], default=None)


class NotAtZero(Simple):
    def find(self, before: int) -> Found | None:
        return min((one for one in self.found() if one[0] > 0), default=None)


class OnlyInOneToken(Simple):
    def find(self, before: int) -> Found | None:
        return min((one for one in self.found() if one[0] >= before), default=None)


class InTwoTokens(Simple):
    last = 0

    def find(self, before: int) -> Found | None:
        window, self.last = self.last, before
        return min((one for one in self.found() if one[0] >= window), default=None)


class InTheLast(Simple):
    window = 40

    def find(self, before: int) -> Found | None:
        return min((one for one in self.found() if one[0] >= before - self.window), default=None)


class InTheFirst(InTheLast):
    def find(self, before: int) -> Found | None:
        return min((one for one in self.found() if one[0] < 4000), default=None)


class AtATokensStart(Simple):
    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops)
        self.starts = {0}

    def find(self, before: int) -> Found | None:
        self.starts.add(before)
        return min((one for one in self.found() if one[0] in self.starts), default=None)


class AtATokensEnd(Simple):
    def find(self, before: int) -> Found | None:
        return min((one for one in self.found() if self.text.endswith(one[1])), default=None)


class WholeWords(Simple):
    def find(self, before: int) -> Found | None:
        def apart(one: Found) -> bool:
            around = self.text[max(0, one[0] - 1) : one[0]] + self.text[one[0] + len(one[1]) :][:1]
            return not any(map(str.isalnum, around))

        return min(filter(apart, self.found()), default=None)


class NoFallback(Simple):
    """Compares from where the last attempt failed."""

    def find(self, before: int) -> Found | None:
        for stop in self.stops:
            at = 0
            for index, character in enumerate(self.text):
                at = at + 1 if character == stop[at] else 0
                if at == len(stop):
                    return index + 1 - at, stop
        return None


class OnlyTheFirst(Simple):
    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops[:1])


class OnlyFour(Simple):
    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops[:4])


class OnlySixteen(Simple):
    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops[:16])


class Patterns(Simple):
    def found(self) -> list[Found]:
        return [(m.start(), stop) for stop in self.stops for m in re.finditer(stop, self.text) if m[0]]


class Graphemes(Simple):
    def found(self) -> list[Found]:
        modifiers = ("Mn", "Sk")
        after = [(one, self.text[one[0] + len(one[1]) :][:1]) for one in super().found()]
        return [one for one, next_one in after if not next_one or unicodedata.category(next_one) not in modifiers]


def alike(change: Callable[[str], str]) -> type[Simple]:
    """Finds what is only like a stop: character by character, the same after `change`."""

    class Alike(Simple):
        def found(self) -> list[Found]:
            text, found = self.text, []
            for stop in self.stops:
                for at in range(len(text)):
                    for end in range(at + 1, min(len(text), at + 2 * len(stop)) + 1):
                        if change(text[at:end]) == change(stop):
                            found.append((at, stop))
                            break
            return found

    return Alike


def of_stops(change: Callable[[str], str]) -> type[Simple]:
    """Looks for something else than it was given, and reports what it was given."""

    class Changed(Simple):
        def __init__(self, stops: list[str]) -> None:
            super().__init__([change(stop) for stop in stops])
            self.names = dict(zip(self.stops, stops, strict=True))

        def find(self, before: int) -> Found | None:
            found = super().find(before)
            return found and (found[0], self.names[found[1]])

    return Changed


DEFECTS = [
    wrong("list order", "list-order", "text finish", scanner=ListOrder),
    wrong("the last listed", "list-order-reversed", "text finish", scanner=LastListed),
    wrong("earliest start", "nested-in-one-token", "text finish", scanner=EarliestStart),
    wrong("earliest start of what is there", "nested-in-two-tokens", "text finish", scanner=EarliestStart),
    wrong("earliest start, whole answer", "overlap-reversed", "text finish", whole=True, scanner=LastPlace),
    wrong("a tie to the shortest", "tie", "text finish", scanner=ShortestOfATie),
    wrong("a tie in list order", "tie-of-four", "text finish", scanner=TieInListOrder),
    wrong("the longest stop of a token", "shorter-first-in-one-token", "finish", scanner=LongestStop),
    wrong("waits for a longer stop", "shorter-first", "finish cost", scanner=WaitsForLonger),
    wrong("the last place of a token", "repeated-in-one-token", "text", scanner=LastPlace),
    wrong("no stop at 0", "at-zero", "text finish cost", scanner=NotAtZero),
    wrong("no stop at 0 of the answer after reasoning", "think-then-at-zero", "text finish cost", scanner=NotAtZero),
    wrong("no stop that is the whole answer", "whole-answer", "text finish cost", scanner=NotAtZero, whole=True),
    wrong("only within a token", "three-tokens", "text cost", scanner=OnlyInOneToken),
    wrong("only within two tokens", "beside-S-T-O-P", "text finish cost", scanner=InTwoTokens),
    wrong("only in the last 40 characters", "long-stop", "text finish cost", scanner=InTheLast),
    wrong("only in the first 4,000 characters", "long-text", "text finish cost", scanner=InTheFirst),
    wrong("only where a token begins", "inside", "text finish cost", scanner=AtATokensStart),
    wrong("only where a token ends", "inside", "text finish cost", scanner=AtATokensEnd),
    wrong("only whole words", "inside", "text finish cost", scanner=WholeWords),
    wrong("no way back from a failed attempt", "falls-back", "text finish cost", scanner=NoFallback),
    wrong("no way back within a stop", "begins-within-itself", "text finish cost", scanner=NoFallback),
    wrong("only the first stop", "first-of-three", "text finish cost", scanner=OnlyTheFirst),
    wrong("only four stops", "five", "text finish cost", scanner=OnlyFour),
    wrong("only sixteen stops", "seventeen", "text finish cost", scanner=OnlySixteen),
    wrong("any case", "case-upper", "text cost", scanner=alike(str.lower)),
    wrong("folded case", "case-folding", "text cost", scanner=alike(lambda text: text.casefold())),
    wrong("composed", "composed", "text cost", scanner=alike(lambda text: unicodedata.normalize("NFC", text))),
    wrong("decomposed", "decomposed", "text cost", scanner=alike(lambda text: unicodedata.normalize("NFD", text))),
    wrong("compatible", "ligature", "text cost", scanner=alike(lambda text: unicodedata.normalize("NFKC", text))),
    wrong(
        "superscripts are digits", "superscript", "text cost", scanner=alike(lambda t: unicodedata.normalize("NFKC", t))
    ),
    wrong(
        "invisible characters passed over",
        "near-misses",
        "text finish cost",
        scanner=alike(lambda text: text.replace("\u200b", "")),
    ),
    wrong("blanks passed over", "near-misses", "text finish cost", scanner=alike(lambda text: text.replace(" ", ""))),
    wrong("stops trimmed", "blank-before", "text cost", scanner=of_stops(lambda stop: stop.strip() or stop)),
    wrong("stops trimmed at the end", "blank-after", "text cost", scanner=of_stops(lambda stop: stop.rstrip() or stop)),
    wrong("line ends of one kind", "crlf", "text cost", scanner=of_stops(lambda stop: stop.replace("\r\n", "\n"))),
    wrong("escapes in stops", "backslash", "text cost", scanner=of_stops(lambda stop: stop.replace("\\n", "\n"))),
    wrong(
        "stops cut after 20 characters", "longer-than-20-never", "text finish", scanner=of_stops(lambda stop: stop[:20])
    ),
    wrong(
        "long stops dropped",
        "longer-than-20",
        "text finish cost",
        scanner=lambda stops: Simple([stop for stop in stops if len(stop) <= 20]),
    ),
    wrong("patterns", "pattern-dot", "text cost", scanner=Patterns),
    wrong("graphemes", "modifier", "text finish cost", scanner=Graphemes),
]
