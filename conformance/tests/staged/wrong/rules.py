"""Wrong servers that compare, choose or keep stops wrongly: no stop fires, or a wrong one, or one that did not come."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from staged.request import right_stops
from staged.scanners import Around, Found, Make, Simple, finding, only, ordered, with_stops
from staged.wrong.table import wrong


def first_but_longest(one: Simple, before: int) -> Found | None:
    """Defect: the longest stop in the text fires, not the stop that completes first. If the text ends with a stop of
    three characters, and a longer stop begins with these characters, the scanner first waits for more text."""
    found = Simple.find(one, before)
    if found and any(stop != found[1] and one.text[found[0] :] == stop[:3] for stop in one.stops):
        return None
    return max((other for other in one.found() if found), key=lambda other: len(other[1]), default=None)


def without_fallback(*, looks_again: bool) -> type[Simple]:
    """Returns a class of scanners that compare a stop with the text character by character. When a character does not
    match, they start over after it, so they do not find "aab" in "aaab". If `looks_again` is true, they start over with
    the character that did not match."""

    def find(one: Simple, before: int) -> Found | None:
        for stop in one.stops:
            at = 0
            for index, character in enumerate(one.text):
                at = at + 1 if character == stop[at] else int(looks_again and character == stop[0])
                if at == len(stop):
                    return index + 1 - at, stop
        return None

    return finding(find)


def last_listed(one: Simple, before: int) -> Found | None:
    return next((found for stop in reversed(one.stops) for found in one.found() if found[1] == stop), None)


def whole_word(text: str, begin: int, end: int, starts: list[int]) -> bool:
    return not any(map(str.isalnum, text[max(0, begin - 1) : begin] + text[end : end + 1]))


def whole_grapheme(text: str, begin: int, end: int, starts: list[int]) -> bool:
    return end == len(text) or unicodedata.category(text[end]) not in ("Mn", "Sk")


class Patterns(Simple):
    def found(self) -> list[Found]:
        return [(m.start(), stop) for stop in self.stops for m in re.finditer(stop, self.text) if m[0]]


def alike(change: Callable[[str], str]) -> type[Simple]:
    """Returns a class of scanners in which a text counts as a stop if `change(text) == change(stop)`."""

    class Alike(Simple):
        def found(self) -> list[Found]:
            text, found = self.text, []
            for stop in self.stops:
                for at in range(max(0, len(text) - 400), len(text)):
                    for end in range(at + 1, min(len(text), at + 2 * len(stop)) + 1):
                        if change(text[at:end]) == change(stop):
                            found.append((at, stop))
                            break
            return found

    return Alike


def of_stops(change: Callable[[str], str]) -> type[Simple]:
    """Returns a class of scanners that look for `change(stop)`, and report the original `stop`."""

    class Changed(Simple):
        def __init__(self, stops: list[str]) -> None:
            super().__init__([change(stop) for stop in stops])
            self.names = dict(zip(self.stops, stops, strict=True))

        def find(self, before: int) -> Found | None:
            found = super().find(before)
            return found and (found[0], self.names[found[1]])

    return Changed


def each(change: Callable[[str], str]) -> Make:
    return with_stops(lambda stops: list(dict.fromkeys(filter(None, map(change, stops)))))


def without(which: Callable[[str, list[str]], Any]) -> Make:
    return with_stops(lambda stops: [stop for stop in stops if not which(stop, stops)])


def ignoring(characters: str) -> type[Simple]:
    return alike(lambda text: re.sub(f"[{characters}]", "", text))


def bare(text: str) -> str:
    """Returns the text without accents."""
    return "".join(filter(lambda c: not unicodedata.combining(c), unicodedata.normalize("NFD", text)))


class OnlyTheFirstTokenId(Around):
    """Defect: compares only the first token of each stop. The tokenizer makes a token of each byte, so a stop fires
    when the model writes a token that is only the first byte of the stop."""

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


class Cached:
    """Defect: computes a key from the stops of a request, and uses the stops of the first request with this key."""

    def __init__(self, key: Callable[[list[str]], Any]) -> None:
        self.key = key
        self.sets: dict[Any, list[str]] = {}

    def __call__(self, stops: list[str]) -> Around:
        return Around(self.sets.setdefault(self.key(stops), stops))


def nothing_with(odd: Any) -> Callable[[Any], list[str]]:
    return lambda given: [] if isinstance(given, list) and odd in given else right_stops(given)


QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f\u3000"), " ")


DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-")


WRONG = [
    wrong("list order", "openai-chat-stream-list-order", "text finish", scanner=ordered(lambda begin, stop: 0)),
    wrong("the last listed", "openai-chat-stream-list-order-reversed", "text finish", scanner=finding(last_listed)),
    wrong("earliest start", "openai-chat-stream-nested-in-one-token", "text finish",
          scanner=ordered(lambda begin, stop: (begin, -len(stop)))),
    wrong("earliest start of what is there", "openai-chat-stream-nested-in-two-tokens", "text finish",
          scanner=ordered(lambda begin, stop: (begin, -len(stop)))),
    wrong("earliest start, whole answer", "openai-chat-whole-overlap-reversed", "text finish",
          scanner=ordered(lambda begin, stop: -begin)),
    wrong("a tie to the shortest", "openai-chat-stream-tie", "text finish",
          scanner=ordered(lambda begin, stop: (begin + len(stop), len(stop)))),
    wrong("a tie in list order", "openai-chat-stream-tie-of-four", "text finish",
          scanner=ordered(lambda begin, stop: begin + len(stop))),
    wrong("the longest stop of a token", "openai-chat-stream-shorter-first-in-one-token", "finish",
          scanner=ordered(lambda begin, stop: -len(stop))),
    wrong("waits for a longer stop", "openai-chat-stream-shorter-first", "finish cost",
          scanner=finding(first_but_longest)),
    wrong("the last place of a token", "openai-chat-stream-repeated-in-one-token", "text",
          scanner=ordered(lambda begin, stop: -begin)),
    wrong("no stop at 0", "openai-chat-stream-at-zero", "text finish cost",
          scanner=only(lambda text, begin, end, starts: begin > 0)),
    wrong("no stop at 0 of the answer after reasoning", "openai-chat-stream-think-then-at-zero", "text finish cost",
          scanner=only(lambda text, begin, end, starts: begin > 0)),
    wrong("no stop that is the whole answer", "openai-chat-whole-whole-answer", "text finish cost",
          scanner=only(lambda text, begin, end, starts: begin > 0)),
    wrong("only within a token", "openai-chat-stream-three-tokens", "text cost",
          scanner=only(lambda text, begin, end, starts: begin >= starts[-1])),
    wrong("only within two tokens", "openai-chat-stream-beside-S-T-O-P", "text finish cost",
          scanner=only(lambda text, begin, end, starts: begin >= starts[-2:][0])),
    wrong("only in the last 40 characters", "openai-chat-stream-long-stop", "text finish cost",
          scanner=only(lambda text, begin, end, starts: begin >= starts[-1] - 40)),
    wrong("only where a token begins", "openai-chat-stream-inside", "text finish cost",
          scanner=only(lambda text, begin, end, starts: begin in starts)),
    wrong("only where a token ends", "openai-chat-stream-inside", "text finish cost",
          scanner=only(lambda text, begin, end, starts: end == len(text))),
    wrong("only whole words", "openai-chat-stream-inside", "text finish cost", scanner=only(whole_word)),
    wrong("no way back from a failed attempt", "openai-chat-stream-falls-back", "text finish cost",
          scanner=without_fallback(looks_again=False)),
    wrong("no way back within a stop", "openai-chat-stream-begins-within-itself", "text finish cost",
          scanner=without_fallback(looks_again=True)),
    wrong("only the first stop", "openai-chat-stream-first-of-three", "text finish cost",
          scanner=with_stops(lambda stops: stops[:1])),
    wrong("only four stops", "openai-chat-stream-five", "text finish cost",
          scanner=with_stops(lambda stops: stops[:4])),
    wrong("only sixteen stops", "openai-chat-stream-seventeen", "text finish cost",
          scanner=with_stops(lambda stops: stops[:16])),
    wrong("any case", "openai-chat-stream-case-upper", "text cost", scanner=alike(str.lower)),
    wrong("folded case", "openai-chat-stream-case-folding", "text cost", scanner=alike(lambda text: text.casefold())),
    wrong("composed", "openai-chat-stream-composed", "text cost",
          scanner=alike(lambda text: unicodedata.normalize("NFC", text))),
    wrong("decomposed", "openai-chat-stream-decomposed", "text cost",
          scanner=alike(lambda text: unicodedata.normalize("NFD", text))),
    wrong("compatible", "openai-chat-stream-ligature", "text cost",
          scanner=alike(lambda text: unicodedata.normalize("NFKC", text))),
    wrong("superscripts are digits", "openai-chat-stream-superscript", "text cost",
          scanner=alike(lambda t: unicodedata.normalize("NFKC", t))),
    wrong("invisible characters passed over", "openai-chat-stream-near-misses", "text finish cost",
          scanner=alike(lambda text: text.replace("\u200b", ""))),
    wrong("blanks passed over", "openai-chat-stream-near-misses", "text finish cost",
          scanner=alike(lambda text: text.replace(" ", ""))),
    wrong("stops trimmed", "openai-chat-stream-blank-before", "text cost",
          scanner=of_stops(lambda stop: stop.strip() or stop)),
    wrong("stops trimmed at the end", "openai-chat-stream-blank-after", "text cost",
          scanner=of_stops(lambda stop: stop.rstrip() or stop)),
    wrong("line ends of one kind", "openai-chat-stream-crlf", "text cost",
          scanner=of_stops(lambda stop: stop.replace("\r\n", "\n"))),
    wrong("escapes in stops", "openai-chat-stream-backslash", "text cost",
          scanner=of_stops(lambda stop: stop.replace("\\n", "\n"))),
    wrong("stops cut after 20 characters", "openai-chat-stream-longer-than-20-never", "text finish",
          scanner=of_stops(lambda stop: stop[:20])),
    wrong("long stops dropped", "openai-chat-stream-longer-than-20", "text finish cost",
          scanner=without(lambda stop, _: len(stop) > 20)),
    wrong("patterns", "openai-chat-stream-pattern-dot", "text cost", scanner=Patterns),
    wrong("graphemes", "openai-chat-stream-modifier", "text finish cost", scanner=only(whole_grapheme)),
    wrong("stops of more than 1000 characters are ignored", "openai-chat-stream-length-1100", "text finish cost",
          scanner=without(lambda stop, _: len(stop) > 1000)),
    wrong("stops are cut after 128 characters", "openai-chat-stream-length-140", "finish cost",
          scanner=each(lambda stop: stop[:128])),
    wrong("only 32 stops are used", "generate-whole-among-decoys-40", "text finish cost",
          scanner=with_stops(lambda stops: stops[:32])),
    wrong("stops end at NUL", "openai-chat-stream-among-nul", "text finish cost",
          scanner=each(lambda stop: stop.partition("\u0000")[0])),
    wrong("stops with NUL are ignored", "openai-completions-stream-script-looks-nul", "text finish cost",
          scanner=without(lambda stop, _: "\u0000" in stop)),
    wrong("a line break before a stop is lost", "openai-chat-stream-script-looks-break-first", "text finish cost",
          scanner=each(lambda stop: stop.lstrip("\n"))),
    wrong("a line break after a stop is lost", "openai-chat-whole-script-looks-break-last", "text finish cost",
          scanner=each(lambda stop: stop.rstrip("\n"))),
    wrong("stops of blanks are ignored", "anthropic-whole-script-thought+place-60+length-1", "text finish cost",
          scanner=without(lambda stop, _: not stop.strip())),
    wrong("stops in one form of Unicode", "openai-chat-stream-script-looks-composed", "text finish cost",
          scanner=each(lambda stop: unicodedata.normalize("NFC", stop))),
    wrong("stops in another form of Unicode", "openai-chat-whole-script-looks-decomposed", "text finish cost",
          scanner=each(lambda stop: unicodedata.normalize("NFD", stop))),
    wrong("wide letters are letters", "openai-chat-stream-script-looks-space", "text cost",
          scanner=alike(lambda text: unicodedata.normalize("NFKC", text))),
    wrong("quotes are alike", "openai-chat-whole-script-looks-quotes", "text cost",
          scanner=alike(lambda text: text.translate(QUOTES))),
    wrong("spaces are alike", "openai-completions-stream-script-looks-space", "text cost",
          scanner=alike(lambda text: text.translate(SPACES))),
    wrong("dashes are alike", "openai-chat-stream-script-looks-dash", "text cost",
          scanner=alike(lambda text: text.translate(DASHES))),
    wrong("accents are ignored", "openai-chat-stream-script-looks-accent", "text cost", scanner=alike(bare)),
    wrong("variation selectors are ignored", "openai-chat-stream-script-looks-selector", "text cost",
          scanner=ignoring("\ufe0e\ufe0f")),
    wrong("direction marks are ignored", "openai-chat-stream-script-looks-direction", "text cost",
          scanner=ignoring("\u200e\u200f")),
    wrong("joiners are ignored", "anthropic-stream-script-looks-joiner", "text cost",
          scanner=ignoring("\u200b\u200c\u200d")),
    wrong("CR is ignored", "openai-chat-whole-script-looks-line-end", "text cost", scanner=ignoring("\r")),
    wrong("special tokens count by their id", "openai-chat-stream-script-looks-special", "text finish cost",
          scanner=without(lambda stop, _: re.fullmatch("<\\|.*\\|>", stop))),
    wrong("only the first token id of a stop", "openai-chat-whole-two-rows", "cost", scanner=OnlyTheFirstTokenId),
    wrong("a stop that ends another is dropped", "openai-chat-whole-among-ends-another", "text finish cost",
          scanner=without(lambda stop, stops: any(other != stop and other.endswith(stop) for other in stops))),
    wrong("a stop that begins another is dropped", "openai-chat-stream-among-continued", "text finish cost",
          scanner=without(lambda stop, stops: any(other != stop and other.startswith(stop) for other in stops))),
    wrong("stops are remembered joined", "openai-chat-whole-among-equal-joined", "finish", scanner=Cached("".join)),
    wrong("stops are remembered by the first", "openai-chat-whole-one-more-stop-in-turn", "text",
          scanner=Cached(lambda stops: stops[0] if stops else "")),
    wrong("stops are remembered by their lengths", "openai-chat-whole-two-rows", "text finish cost",
          scanner=Cached(lambda stops: tuple(map(len, stops)))),
    wrong("percent signs are escapes", "openai-chat-stream-script-looks-percent", "text finish cost",
          scanner=each(unquote)),
    wrong("entities are read", "openai-completions-whole-script-looks-entity", "text finish cost",
          scanner=each(html.unescape)),
    wrong("stops of one letter are ignored", "openai-chat-whole-length-1", "text finish cost",
          scanner=without(lambda stop, _: len(stop) == 1)),
    wrong("stops beyond the first plane are ignored", "openai-chat-stream-script-looks-emoji", "text finish cost",
          scanner=without(lambda stop, _: max(stop) > "\uffff")),
    wrong("digits are not letters", "anthropic-stream-script-looks-digit", "text finish cost",
          scanner=without(lambda stop, _: stop.isdigit())),
    wrong("alike but for case is the same", "openai-chat-stream-among-case-twin", "text finish cost",
          scanner=with_stops(lambda stops: list({stop.lower(): stop for stop in reversed(stops)}.values())[::-1])),
    wrong("null among stops takes all away", "openai-chat-whole-null-among-stops", "form", stops=nothing_with(None)),
    wrong("an empty stop takes all away", "openai-chat-whole-an-empty-stop-among-stops", "form",
          stops=nothing_with("")),
]  # fmt: skip
