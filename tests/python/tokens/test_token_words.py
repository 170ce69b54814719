"""Stops and markers of several tokens. While a stop or marker may have begun, a scanner puts off the decoding of token
ids until it must decode them. It must do that when somebody reads its state.

So the tests compare two scanners, which must give the same results. The state of one scanner is read after each token,
and that of the second one only at the end.
"""

from __future__ import annotations

import string

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from vocabularies import staged

from stopscan import StopScanner, StopSet
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

PIECES = [
    "\n",
    "\n\n",
    "Hu",
    "man",
    ":",
    "#",
    "## ",
    "Ins",
    " a",
    "é",
    "你",
    "### Inst",
    "<t",
    ">",
    "<t>",
    "</t>",
    "x\n",
]
TOKENIZER, IDS = staged(*PIECES)
VOCABULARY = Vocabulary(TOKENIZER)
STOPS = {
    "hidden": StopSet(["\n\nHuman:", "### Instruction", "éé"]),
    "visible": StopSet(["###"], visible=["\n\nHu", "你\n"]),
    "protected": StopSet(["\n\nHuman:", "## "], protect=[("<t>", "</t>")]),
}

token_ids = st.lists(st.sampled_from(IDS), max_size=40)


@pytest.mark.parametrize("name", STOPS)
@pytest.mark.parametrize("include_stop", [False, True])
@settings(max_examples=150)
@given(ids=token_ids, min_tokens=st.integers(0, 6))
def test_reading_state_does_not_change_a_scanner(
    name: str, include_stop: bool, ids: list[int], min_tokens: int
) -> None:
    options = {"include_stop": include_stop, "min_tokens": min_tokens, "max_tokens": 30}
    scanner, looked_at = (TokenScanner(VOCABULARY, STOPS[name], **options) for _ in range(2))
    text = StopScanner(STOPS[name], include_stop=include_stop)
    for index, token_id in enumerate(ids):
        out = looked_at.feed(token_id)
        assert scanner.feed(token_id) == out
        if looked_at.finish is None:
            assert text.feed(PIECES[IDS.index(token_id)], armed=index >= min_tokens) == out
            assert text.held == looked_at.held
        looked_at = looked_at.copy()
    assert scanner.tokens_seen == looked_at.tokens_seen
    assert scanner.tokens_kept == looked_at.tokens_kept
    assert (scanner.match, scanner.held, scanner.finish) == (looked_at.match, looked_at.held, looked_at.finish)
    assert scanner.flush("length") == looked_at.flush("length")


@settings(max_examples=150)
@given(ids=token_ids)
def test_reading_state_does_not_change_a_segmenter(ids: list[int]) -> None:
    segments = SegmentSet({"answer": {"<t>": "reasoning"}, "reasoning": {"</t>": "answer"}}, stop=["\n\nHuman:"])
    segmenter, looked_at = TokenSegmenter(VOCABULARY, segments), TokenSegmenter(VOCABULARY, segments)
    for token_id in ids:
        out = segmenter.feed(token_id)
        assert out == looked_at.feed(token_id)
        assert all(text for _, text, _ in out)
        looked_at = looked_at.copy()
    assert segmenter.tokens_in == looked_at.tokens_in


@pytest.mark.parametrize("first", [*string.printable, "é", "你", "🦀"])
def test_a_stop_may_begin_with_any_character(first: str) -> None:
    characters = [
        *dict.fromkeys([*string.ascii_letters, *string.digits, *string.punctuation, " ", "\n", "ж", "再", first])
    ]
    tokenizer, ids = staged(*characters, *characters)
    scanner = TokenScanner(tokenizer, [first + "|!"])
    spelled = dict(zip(characters, ids, strict=False))
    text = "".join(map(scanner.feed, [*ids, spelled[first], spelled["|"]]))
    assert (text, scanner.held, scanner.finish) == ("".join(characters) * 2, first + "|", None)
    assert scanner.feed(spelled["!"]) == ""
    assert scanner.match is not None
    assert (scanner.match.offset, scanner.tokens_kept) == (len(characters) * 2, len(ids))
