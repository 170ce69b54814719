"""Regular expressions as stops of token streams: they match as in the whole text, whichever tokens spell this text."""

from __future__ import annotations

import pickle
from functools import partial

from families import over, reciting, sentencepiece, small_bytes, small_fallback, tekken
from hypothesis import assume, given
from hypothesis import strategies as st
from test_token_streams import streams
from vocabularies import Vocabulary, byte_level_book, staged
from whole import REASONS, agree, run, stopped

from stopscan import StopSet
from stopscan.tokens import TokenScanner

PATTERNS = [
    r"(?i)\bend\b",
    r"END?S",
    r"\n+[ab]",
    r"[ab]{2,3}x",
    r"\d, ?\d",
    r"[世再].",
    r"\ufffd+a",
    r"(the|naïve) \S",
    r"<\w{5}>",
]


@over(
    [
        small_bytes,
        small_fallback,
        reciting,
        partial(tekken, "tekken_240911.json"),
        partial(sentencepiece, "tokenizer.model.v1"),
    ]
)
@given(data=st.data())
def test_everything_is_that_of_the_whole_text(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, strings = data.draw(streams(vocabulary))
    chosen = data.draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True))
    stops = StopSet(strings, patterns=chosen)
    include = data.draw(st.booleans())
    characters = vocabulary.book.characters([], token_ids, skip_special_tokens=True, ended=True)
    assume(not vocabulary.book.takes_back)
    text = "".join(character for character, _ in characters)
    expected, match = stops.truncate(text, include_stop=include)
    scanner = TokenScanner(vocabulary.tokenizer, stops, include_stop=include)
    steps = scanner.copy()
    outputs = run(scanner, token_ids, data.draw(st.sampled_from(REASONS)))
    assert ("".join(outputs), scanner.match) == (expected, match)
    assert (scanner.finish.reason == "stop_sequence") == (match is not None)
    assert scanner.tokens_kept == (characters[len(expected) - 1][1] if expected else 0)
    for token_id in token_ids:
        steps = pickle.loads(pickle.dumps(steps)) if vocabulary.size < 1_000 else steps.copy()
        steps.feed(token_id)
    steps.flush()
    assert steps.match == match


def test_a_pattern_that_only_the_end_confirms() -> None:
    tokenizer, (a, en, d, x) = staged("a ", "EN", "D", "x")
    stops = StopSet(patterns=[r"\bEND\b"])
    scanner = TokenScanner(tokenizer, stops)
    assert run(scanner, [a, en, d]) == ["a ", "", "", ""]
    assert scanner.finish == stopped(2)
    scanner = TokenScanner(tokenizer, stops, max_tokens=3)
    assert run(scanner, [a, en, d]) == ["a ", "", ""]
    assert scanner.finish == stopped(2)
    assert run(TokenScanner(tokenizer, stops), [a, en, d, x]) == ["a ", "", "", "ENDx", ""]


def test_min_tokens_leaves_out_what_completes_before() -> None:
    tokenizer, token_ids = staged("1", ", ", "2", " 3", ", 4")
    scanner = TokenScanner(tokenizer, StopSet(patterns=[r"\d, \d"]), min_tokens=3)
    assert run(scanner, token_ids) == ["", "", "1, ", "2 ", ""]
    assert scanner.finish == stopped(5, "3, 4")
    assert scanner.match is not None
    assert scanner.match.pattern == r"\d, \d"


def test_strings_beside_a_pattern_are_as_without() -> None:
    tokenizer, token_ids = staged("a", "EN", "D", "x")
    agree(tokenizer, byte_level_book(tokenizer), token_ids, ["END"])
    scanner = TokenScanner(tokenizer, StopSet("END", patterns=[r"never \d"]))
    assert run(scanner, token_ids) == ["a", "", ""]
    assert scanner.finish == stopped(1)
