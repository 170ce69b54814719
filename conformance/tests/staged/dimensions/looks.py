"""How a stop looks, beside others and in a text that has what is nearly the stop."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from staged.dimensions.mutant import Around, Make, mutant, with_stops
from staged.generation import Scanner
from staged.request import right_stops
from staged.scanners import Simple


def each(change: Callable[[str], str]) -> Make:
    return with_stops(lambda stops: list(dict.fromkeys(filter(None, map(change, stops)))))


def without(which: Callable[[str, list[str]], bool]) -> Make:
    return with_stops(lambda stops: [stop for stop in stops if not which(stop, stops)])


def folded(fold: Callable[[str], str]) -> Make:
    """What only looks the same counts. `fold` keeps the number of characters."""

    class Folded(Around):
        def __init__(self, stops: list[str]) -> None:
            super().__init__([fold(stop) for stop in stops])
            self.given = {fold(stop): stop for stop in stops}
            self.text = ""
            self.sent = 0

        def read(self, text: str) -> str:
            self.text += text
            self.sent += len(self.inner.feed(fold(text)))
            out, self.text = self.text[: self.sent], self.text[self.sent :]
            self.sent = 0
            return out

        def flush(self) -> str:
            return "" if self.inner.match else self.text

        @property
        def match(self) -> str | None:
            return self.inner.match and self.given[self.inner.match]

    return Folded


def ignoring(characters: str) -> Make:
    """What has some of these in it counts, too."""

    class Ignoring(Simple):
        def __init__(self, stops: list[str]) -> None:
            super().__init__(stops)
            gap = f"[{characters}]*"
            self.patterns = {stop: re.compile(gap.join(map(re.escape, stop))) for stop in stops}

        def found(self) -> list[tuple[int, str]]:
            start = max(0, len(self.text) - 400)
            hits = [(one.search(self.text, start), stop) for stop, one in self.patterns.items()]
            return [(hit.start(), stop) for hit, stop in hits if hit and hit.start() >= self.sent]

        def hold(self) -> int:
            bare = [len(self.text) - n for n in range(40) if n <= len(self.text)]
            for start in reversed(bare):
                tail = re.sub(f"[{characters}]", "", self.text[start:])
                if tail and start >= self.sent and any(s.startswith(tail) and s != tail for s in self.stops):
                    return len(self.text) - start
            return 0

    return Ignoring  # type: ignore[return-value]


class NoWayBack(Around):
    """After a mismatch a stop begins anew at the next character: overlapping beginnings are missed."""

    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops)
        self.state = dict.fromkeys(stops, 0)
        self.found: str | None = None

    def read(self, text: str) -> str:
        for letter in text:
            for stop, state in self.state.items():
                if stop[state] == letter:
                    self.state[stop] = state + 1
                else:
                    self.state[stop] = int(stop[0] == letter)
                if self.state[stop] == len(stop):
                    self.found, self.state[stop] = stop, 0
        return self.inner.feed(text)

    @property
    def match(self) -> str | None:
        if self.inner.match and self.inner.match != self.found:
            self.inner = Scanner([stop for stop in self.stops if stop != self.inner.match])
        return self.inner.match


class OnlyTheFirstTokenId(Around):
    """The stop's tokens are compared, but only the first: here a token is a byte."""

    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops)
        self.firsts = {stop.encode()[:1].decode(errors="ignore"): stop for stop in reversed(stops)}
        self.hit: str | None = None

    def read(self, text: str) -> str:
        if text in self.firsts:
            self.hit = self.firsts[text]
            return self.inner.flush()
        return self.inner.feed(text)

    @property
    def match(self) -> str | None:
        return self.hit or self.inner.match


class SpecialByItsIdOnly(Around):
    def __init__(self, stops: list[str]) -> None:
        super().__init__([stop for stop in stops if not re.fullmatch(r"<\|.*\|>", stop)])


class Cached:
    """One set of stops for all requests with the same key."""

    def __init__(self, key: Callable[[list[str]], Any]) -> None:
        self.key = key
        self.sets: dict[Any, list[str]] = {}

    def __call__(self, stops: list[str]) -> Around:
        return Around(self.sets.setdefault(self.key(stops), stops))


def nothing_with_null(given: Any) -> list[str]:
    return [] if isinstance(given, list) and None in given else right_stops(given)


def nothing_with_empty(given: Any) -> list[str]:
    return [] if isinstance(given, list) and "" in given else right_stops(given)


QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f\u3000"), " ")
DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-")


def same_length(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(new if len(new := change(letter)) == 1 else letter for letter in text)


MUTANTS = [
    mutant("stops of more than 1000 characters are ignored", scanner=without(lambda stop, _: len(stop) > 1000)),
    mutant("stops are cut after 128 characters", scanner=each(lambda stop: stop[:128])),
    mutant("only 32 stops are used", "generate", scanner=with_stops(lambda stops: stops[:32])),
    mutant("stops end at NUL", scanner=each(lambda stop: stop.partition("\0")[0])),
    mutant("stops with NUL are ignored", "openai-completions", scanner=without(lambda stop, _: "\0" in stop)),
    mutant("a line break before a stop is lost", scanner=each(lambda stop: stop.lstrip("\n"))),
    mutant("a line break after a stop is lost", scanner=each(lambda stop: stop.rstrip("\n"))),
    mutant("stops of blanks are ignored", "anthropic", scanner=without(lambda stop, _: not stop.strip())),
    mutant("stops in one form of Unicode", scanner=each(lambda stop: unicodedata.normalize("NFC", stop))),
    mutant("stops in another form of Unicode", scanner=each(lambda stop: unicodedata.normalize("NFD", stop))),
    mutant("wide letters are letters", scanner=folded(same_length(lambda c: unicodedata.normalize("NFKC", c)))),
    mutant("quotes are alike", scanner=folded(lambda text: text.translate(QUOTES))),
    mutant("spaces are alike", "openai-completions", scanner=folded(lambda text: text.translate(SPACES))),
    mutant("dashes are alike", scanner=folded(lambda text: text.translate(DASHES))),
    mutant("accents are ignored", scanner=folded(same_length(lambda c: unicodedata.normalize("NFD", c)[0]))),
    mutant("variation selectors are ignored", scanner=ignoring("\ufe0e\ufe0f")),
    mutant("direction marks are ignored", scanner=ignoring("\u200e\u200f")),
    mutant("joiners are ignored", "anthropic", scanner=ignoring("\u200b\u200c\u200d")),
    mutant("CR is ignored", scanner=ignoring("\r")),
    mutant("special tokens count by their id", scanner=SpecialByItsIdOnly),
    mutant("only the first token id of a stop", scanner=OnlyTheFirstTokenId),
    mutant("a stop that ends another is dropped", scanner=without(
        lambda stop, stops: any(other != stop and other.endswith(stop) for other in stops))),
    mutant("a stop that begins another is dropped", scanner=without(
        lambda stop, stops: any(other != stop and other.startswith(stop) for other in stops))),
    mutant("overlapping beginnings are missed", scanner=NoWayBack),
    mutant("stops are remembered joined", scanner=Cached("".join)),
    mutant("stops are remembered by the first", scanner=Cached(lambda stops: stops[0] if stops else "")),
    mutant("stops are remembered by their lengths", scanner=Cached(lambda stops: tuple(map(len, stops)))),
    mutant("backslashes are escapes", scanner=each(lambda stop: stop.replace("\\n", "\n").replace("\\t", "\t"))),
    mutant("percent signs are escapes", scanner=each(unquote)),
    mutant("entities are read", "openai-completions", scanner=each(html.unescape)),
    mutant("stops of one letter are ignored", scanner=without(lambda stop, _: len(stop) == 1)),
    mutant("stops beyond the first plane are ignored", scanner=without(lambda stop, _: max(stop) > "\uffff")),
    mutant("digits are not letters", "anthropic", scanner=without(lambda stop, _: stop.isdigit())),
    mutant("alike but for case is the same", scanner=with_stops(
        lambda stops: list({stop.lower(): stop for stop in reversed(stops)}.values())[::-1])),
    mutant("null among stops takes all away", stops=nothing_with_null),
    mutant("an empty stop takes all away", stops=nothing_with_empty),
]  # fmt: skip
