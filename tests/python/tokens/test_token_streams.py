"""`TokenScanner` returns the same as a scan of the whole decoded text, whichever tokens spell this text."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from families import NATIVE, manual, metaspace, over, reciting, sentencepiece, small_bytes, small_fallback, tekken
from hypothesis import given, settings
from hypothesis import strategies as st
from setups import NUMBERS, coins
from vocabularies import Vocabulary
from whole import REASONS, agree, run

from stopscan.tokens import TokenScanner

WORDS = [
    "END",
    "E",
    "ND",
    " ",
    " END",
    "the ",
    "ab",
    "a",
    "b",
    "\n\n",
    "1, 2",
    "naïve",
    "é",
    "你好",
    "世",
    "再见",
    "አማ",
]
WORDS += ["🚀", "😀", "👩\u200d💻", "e\u0301", "<think>", "</think>", "\t", "  ", "x", "ENDS", "\u00a0", "Ω"]
# Lists of one to six token lengths, for the parameter `wishes` of `Vocabulary.spell`. They are made from random bytes,
# because drawing bytes is faster than drawing a list of integers.
WISHES = st.binary(min_size=6, max_size=6).map(lambda drawn: [byte % 7 for byte in drawn[: drawn[0] % 6 + 1]])
BYTES = [b"END", b"\xe4", b"\xbd\xa0", b"\xff", b"\x80", "🚀".encode(), b"\xf0\x9f", b"a", b" ", "é".encode()]


# `KINDS` has one vocabulary of each kind, for many examples. `ALL` has all vocabularies, for fewer examples.
KINDS = over(
    [
        manual,
        small_bytes,
        small_fallback,
        reciting,
        partial(tekken, "tekken_240911.json"),
        partial(sentencepiece, "tokenizer.model.v1"),
        partial(metaspace, "first"),
    ]
)
ALL = over(NATIVE)


def stop_of(text: str, number: int) -> str:
    """A stop that is often in the text."""
    number, one = divmod(number, 3)
    if not one:
        return piece_of(text, number // 64) + piece_of(text, number % 64)
    return piece_of(text, number)


def piece_of(text: str, number: int) -> str:
    number, own = divmod(number, 3)
    if not own or not text:
        return WORDS[number % len(WORDS)]
    size, begin = divmod(number, len(text))
    return text[begin : begin + size % 6 + 1]


@st.composite
def streams(draw: Callable[..., Any], vocabulary: Vocabulary) -> tuple[list[int], list[str]]:
    """Random token ids, and stops that are often in their text."""
    text = "".join(WORDS[number % len(WORDS)] for number in draw(NUMBERS[12]))
    token_ids = vocabulary.spell(text, draw(WISHES)) if draw(coins) else vocabulary.encode(text)
    for number in draw(NUMBERS[2]):
        number, place = divmod(number, len(token_ids) + 1)
        token_ids.insert(place, vocabulary.special[number % len(vocabulary.special)])
    return token_ids, list({stop_of(text, number): None for number in draw(NUMBERS[4])})


@ALL
@settings(max_examples=30)
@given(data=st.data())
def test_everything_is_that_of_the_whole_text(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    agree(
        vocabulary.tokenizer,
        vocabulary.book,
        token_ids,
        stop,
        include_stop=data.draw(st.booleans()),
        skip_special_tokens=data.draw(st.booleans()),
        reason=data.draw(st.sampled_from(REASONS)),
    )


@KINDS
@given(data=st.data())
def test_ids_that_end_and_limits_beside_strings(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    ends = st.lists(st.sampled_from([*token_ids, *vocabulary.special]), max_size=2)
    min_tokens = data.draw(st.integers(0, len(token_ids)))
    agree(
        vocabulary.tokenizer,
        vocabulary.book,
        token_ids,
        stop,
        stop_token_ids=data.draw(ends),
        eos_token_ids=data.draw(ends),
        min_tokens=min_tokens,
        max_tokens=data.draw(st.none() | st.integers(max(min_tokens, 1), len(token_ids) + 1)),
        include_stop=data.draw(st.booleans()),
        skip_special_tokens=data.draw(st.booleans()),
    )


@KINDS
@given(data=st.data())
def test_visible_stops_and_protected_regions(vocabulary: Vocabulary, data: st.DataObject) -> None:
    """A marker may be text or a special token, which works as a marker even if it is left out of the text."""
    token_ids, stop = data.draw(streams(vocabulary))
    names = {token_id: text(vocabulary.book.raw(token_id)) for token_id in vocabulary.special}
    marker = st.sampled_from(["<think>", "</think>", *[names[i] for i in token_ids if i in names]])
    markers = [(data.draw(marker), data.draw(marker)) for _ in range(data.draw(st.integers(1, 2)))]
    markers = list(dict(markers).items())
    hidden = [sequence for sequence in stop if not any(sequence in pair for pair in markers)]
    cut = data.draw(st.integers(0, len(hidden)))
    agree(
        vocabulary.tokenizer,
        vocabulary.book,
        token_ids,
        hidden[cut:],
        visible=hidden[:cut],
        protect=markers,
        start_protected=data.draw(st.booleans()),
        skip_special_tokens=data.draw(st.booleans()),
        min_tokens=data.draw(st.integers(0, 3)),
        marker=names.get,
    )


def text(raw: str | bytes | int) -> str:
    return raw.decode() if isinstance(raw, bytes) else str(raw)


@KINDS
@given(data=st.data())
def test_prompts(vocabulary: Vocabulary, data: st.DataObject) -> None:
    """The prompt is random, or it is the first tokens of the stream and may end inside a character."""
    token_ids, stop = data.draw(streams(vocabulary))
    prompt = data.draw(streams(vocabulary))[0]
    if data.draw(st.booleans()):
        cut = data.draw(st.integers(0, len(token_ids)))
        prompt, token_ids = token_ids[:cut], token_ids[cut:]
    skip = data.draw(st.booleans())
    agree(vocabulary.tokenizer, vocabulary.book, token_ids, stop, prompt_token_ids=prompt, skip_special_tokens=skip)


@KINDS
@given(data=st.data())
def test_any_bytes(vocabulary: Vocabulary, data: st.DataObject) -> None:
    """Half characters and stray bytes between text and special tokens, in the prompt and in the stream."""
    pieces = st.one_of(st.sampled_from(BYTES), st.sampled_from(vocabulary.special), st.sampled_from(["the ", "END"]))
    token_ids: list[int] = []
    for piece in data.draw(st.lists(pieces, max_size=12)):
        token_ids += [piece] if isinstance(piece, int) else vocabulary.spell(piece, data.draw(WISHES))
    cut = data.draw(st.sampled_from([0, 0, len(token_ids) // 2]))
    stop = data.draw(
        st.lists(st.sampled_from(["END", "\ufffd", "\ufffd\ufffd", " \ufffd", "你", "a\ufffdE"]), max_size=2)
    )
    agree(
        vocabulary.tokenizer,
        vocabulary.book,
        token_ids[cut:],
        stop,
        prompt_token_ids=token_ids[:cut],
        skip_special_tokens=data.draw(st.booleans()),
        include_stop=data.draw(st.booleans()),
        max_tokens=data.draw(st.sampled_from([None, 5])),
        eos_token_ids=data.draw(st.sampled_from([(), token_ids[-1:]])),
        reason=data.draw(st.sampled_from(REASONS)),
    )


@KINDS
@given(data=st.data())
def test_feed_many_gives_what_feed_gives(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(token_ids)), max_size=4)))
    steps = [token_ids[start:end] for start, end in pairwise([0, *cuts, len(token_ids)])]
    ends = data.draw(st.lists(st.sampled_from([*token_ids, 2**32 - 1]), max_size=1))
    one = TokenScanner(vocabulary.tokenizer, stop, eos_token_ids=ends)
    many = TokenScanner(vocabulary.tokenizer, stop, eos_token_ids=ends)
    for step in steps:
        assert many.feed_many(iter(step)) == "".join(map(one.feed, step))
        assert (many.finish, many.held) == (one.finish, one.held)
        assert (many.tokens_seen, many.tokens_kept) == (one.tokens_seen, one.tokens_kept)
    assert many.flush() == one.flush()


# A pickle contains the vocabulary, so large vocabularies would take long.
@over([small_bytes, small_fallback, reciting, partial(metaspace, "first")])
@given(data=st.data())
def test_copies_pickles_and_resets_go_on_as_the_original(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    prompt = data.draw(streams(vocabulary))[0]
    cut = data.draw(st.integers(0, len(token_ids)))
    scanner = TokenScanner(
        vocabulary.tokenizer, stop, prompt_token_ids=prompt, max_tokens=data.draw(st.integers(1, 20))
    )
    start = scanner.copy()
    before = [scanner.feed(token_id) for token_id in token_ids[:cut]]
    others = [copies(scanner) for copies in COPIES]
    state = observed(scanner)
    assert [observed(other) for other in others] == [state] * len(others)
    after = run(scanner, token_ids[cut:])
    for other in others:
        assert run(other, token_ids[cut:]) == after
        assert observed(other) == observed(scanner)
    scanner.reset()
    assert observed(scanner) == observed(start)
    assert [scanner.feed(token_id) for token_id in token_ids[:cut]] == before
    assert run(scanner, token_ids[cut:]) == after


COPIES: list[Callable[[TokenScanner], TokenScanner]] = [
    TokenScanner.copy,
    copy.copy,
    copy.deepcopy,
    *[lambda scanner, protocol=protocol: pickle.loads(pickle.dumps(scanner, protocol)) for protocol in range(6)],
]


def observed(scanner: TokenScanner) -> tuple[Any, ...]:
    return scanner.finish, scanner.match, scanner.held, scanner.tokens_seen, scanner.tokens_kept
