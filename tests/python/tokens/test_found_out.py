"""A tokenizer whose `decode` says otherwise than its tokens, wherever that is, is found out and decodes itself."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import pytest
from families import load, sentencepiece, trained_bytes

from stopscan.tokens import Vocabulary

MODEL = partial(sentencepiece, "tokenizer.model.v1")

# By kind: a text, a special token, the unknown one, whose text differs at the start, and a byte of a character.
KINDS = ["^t$", "^tt", "^s.*t", "tst", "ts+t$", "^u$", "^uu", "us", "^tb", "bbt", "bt", "tbs", "sb"]
RUNS = [b"a", "é".encode(), "你".encode(), "🚀🚀".encode(), b"\xff", b"\x80\x80", b"\xe4\xbd", b"\xf0\x9f\x9a"]


def kind(token_id: int) -> str:
    vocabulary = load(MODEL)
    if token_id == vocabulary.tokenizer.unk_id:
        return "u"
    if token_id in vocabulary.special:
        return "s"
    return "b" if token_id in vocabulary.byte_tokens.values() else "t"


def saying_more(tokenizer: Any, where: Callable[..., bool]) -> Any:
    """One like this, but for its `decode`."""

    def decode(self: Any, token_ids: Sequence[int], *policy: Any, **named: Any) -> str:
        text = str(type(tokenizer).decode(self, token_ids, *policy, **named))
        return f"{text}!" if where(token_ids, *policy, *named.values()) else text

    other = copy(tokenizer)
    other.__class__ = type("Other", (type(tokenizer),), {"decode": decode})
    return other


@pytest.mark.parametrize("kinds", KINDS)
def test_among_tokens_of_some_kinds(kinds: str) -> None:
    there = re.compile(kinds)
    other = saying_more(load(MODEL).tokenizer, lambda ids: there.search("".join(map(kind, ids))) is not None)
    assert not Vocabulary(other).native


@pytest.mark.parametrize("run", RUNS, ids=bytes.hex)
def test_in_a_run_of_byte_tokens(run: bytes) -> None:
    vocabulary = load(MODEL)
    run_ids = [vocabulary.byte_tokens[byte] for byte in run]
    assert not Vocabulary(saying_more(vocabulary.tokenizer, lambda ids: [*ids] == run_ids)).native


@pytest.mark.parametrize("wanted", ["keep", "ignore"])
def test_where_special_tokens_are_kept_or_left_out(wanted: str) -> None:
    library = pytest.importorskip("mistral_common.tokens.tokenizers.tekken", reason="mistral-common is not installed")
    vocab = [{"rank": byte, "token_bytes": b64encode(bytes([byte])).decode(), "token_str": None} for byte in range(256)]
    tokenizer = library.Tekkenizer(vocab, [], ".", 260, 4, library.TokenizerVersion.v3)
    assert Vocabulary(tokenizer).native
    assert not Vocabulary(saying_more(tokenizer, lambda ids, policy: policy.value == wanted)).native


def test_nowhere() -> None:
    assert Vocabulary(saying_more(load(MODEL).tokenizer, lambda ids: False)).native


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
