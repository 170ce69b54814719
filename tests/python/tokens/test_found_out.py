"""If a tokenizer's `decode` differs from the text of its tokens, `Vocabulary` notices, and scanners call `decode`."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import pytest
from families import load, sentencepiece, trained_bytes
from whole import emitted

from stopscan.tokens import TokenScanner, Vocabulary

MODEL = partial(sentencepiece, "tokenizer.model.v1")

# Each regular expression describes a sequence of tokens. A letter stands for a token: t is text, s is special, b is a
# byte, and u is the unknown token. (At the start of a stream, the unknown token has a different text.)
KINDS = ["^t$", "^tt", "^s.*t", "tst", "ts+t$", "^u$", "^uu", "us", "^tb", "bbt", "bt", "tbs", "sb"]
RUNS = [b"a", "é".encode(), "你".encode(), "🚀🚀".encode(), b"\xff", b"\x80\x80", b"\xe4\xbd", b"\xf0\x9f\x9a"]


def kind(token_id: int) -> str:
    vocabulary = load(MODEL)
    if token_id == vocabulary.tokenizer.unk_id:
        return "u"
    if token_id in vocabulary.special:
        return "s"
    return "b" if token_id in vocabulary.byte_tokens.values() else "t"


def saying(tokenizer: Any, say: Callable[..., str]) -> Any:
    """Returns a copy of the tokenizer with a new `decode`. The new `decode` calls the old one, passes the text and
    its arguments to `say`, and returns what `say` returns."""

    def decode(self: Any, token_ids: Sequence[int], *policy: Any, **named: Any) -> str:
        return say(type(tokenizer).decode(self, token_ids, *policy, **named), token_ids, *policy, *named.values())

    other = copy(tokenizer)
    other.__class__ = type("Other", (type(tokenizer),), {"decode": decode})
    return other


def small_tekken() -> Any:
    library = pytest.importorskip("mistral_common.tokens.tokenizers.tekken", reason="mistral-common is not installed")
    vocab = [{"rank": byte, "token_bytes": b64encode(bytes([byte])).decode(), "token_str": None} for byte in range(256)]
    return library.Tekkenizer(vocab, [], ".", 260, 4, library.TokenizerVersion.v3)


def small_tiktoken() -> Any:
    """An encoding with a gap: no token has the id 257."""
    library = pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    ranks = {bytes([byte]): byte for byte in range(256)}
    return library.Encoding("small", pat_str=".", mergeable_ranks=ranks, special_tokens={"<s>": 256, "</s>": 258})


@pytest.mark.parametrize("kinds", KINDS)
def test_among_tokens_of_some_kinds(kinds: str) -> None:
    there = re.compile(kinds)
    other = saying(
        load(MODEL).tokenizer, lambda text, ids: text + "!" if there.search("".join(map(kind, ids))) else text
    )
    assert not Vocabulary(other).native


@pytest.mark.parametrize("run", RUNS, ids=bytes.hex)
def test_in_a_run_of_byte_tokens(run: bytes) -> None:
    vocabulary = load(MODEL)
    run_ids = [vocabulary.byte_tokens[byte] for byte in run]
    assert not Vocabulary(saying(vocabulary.tokenizer, lambda text, ids: "!" if [*ids] == run_ids else text)).native


@pytest.mark.parametrize("wanted", ["keep", "ignore"])
def test_where_special_tokens_are_kept_or_left_out(wanted: str) -> None:
    other = saying(small_tekken(), lambda text, ids, policy: "!" if policy.value == wanted else text)
    assert not Vocabulary(other).native


def test_where_special_tokens_of_tiktoken_are_kept() -> None:
    assert not Vocabulary(saying(small_tiktoken(), lambda text, ids: "!" if 256 in ids else text)).native


def test_nowhere() -> None:
    for tokenizer in (load(MODEL).tokenizer, small_tekken(), small_tiktoken()):
        assert Vocabulary(saying(tokenizer, lambda text, *_: text)).native


def louder() -> list[tuple[Any, list[int], list[int]]]:
    """Returns three tokenizers whose `decode` returns capital letters. Each comes with two lists of ids. The first
    list spells a special token and then "a stop". The second list has ids that the tokenizer does not know."""
    letters, model = b"a stop", load(MODEL)
    kinds = (
        (model.tokenizer, [model.special[0], *(model.byte_tokens[byte] for byte in letters)], [-1, 32000]),
        (small_tekken(), [0, *(4 + byte for byte in letters)], [-1, 260]),
        (small_tiktoken(), [256, *letters], [-1, 257, 259]),
    )
    return [(saying(tokenizer, lambda text, *_: text.upper()), *ids) for tokenizer, *ids in kinds]


def test_it_decodes_itself_then() -> None:
    for tokenizer, token_ids, _ in louder():
        scanner = TokenScanner(tokenizer, "OP")
        assert emitted(scanner, token_ids) == "A ST"
        assert scanner.tokens_kept == 5


def test_unknown_id_raises_our_error() -> None:
    for tokenizer, token_ids, others in louder():
        scanner = TokenScanner(tokenizer)
        for other in others:
            with pytest.raises(ValueError, match=f"token id {other} is not in the vocabulary"):
                scanner.feed(other)
            with pytest.raises(ValueError, match=f"prompt_token_ids: token id {other} is not"):
                TokenScanner(tokenizer, prompt_token_ids=[*token_ids, other])
        TokenScanner(tokenizer, prompt_token_ids=[0])
        assert emitted(scanner, token_ids) == "A STOP"


CARRIERS: dict[str, Callable[[list[int], bool], bool]] = {
    "special tokens kept": lambda ids, skip: not skip,
    "special tokens left out": lambda ids, skip: skip,
    "after a special token": lambda ids, skip: ids[0] < 2,
    "one token": lambda ids, skip: len(ids) == 1,
    "the first token of the vocabulary, skipped": lambda ids, skip: skip and 0 in ids,
}


@pytest.mark.parametrize("where", CARRIERS.values(), ids=CARRIERS)
def test_in_what_carries_a_tokenizer(where: Callable[[list[int], bool], bool]) -> None:
    class Carrier:
        backend_tokenizer = trained_bytes(add_prefix_space=False)

        def decode(self, token_ids: list[int], skip_special_tokens: bool = False) -> str:
            text = self.backend_tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens)
            return f"{text}!" if where(token_ids, skip_special_tokens) else text

    assert not Vocabulary(Carrier()).native
