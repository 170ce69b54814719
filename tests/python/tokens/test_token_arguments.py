"""Bad ids and options change nothing: they are refused with an error that names them."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models
from vocabularies import staged
from whole import emitted, ended, stopped

from stopscan import StopSet
from stopscan.tokens import TokenScanner
from stopscan_conformance.reciter import SCRIPTS, Reciter

BAD_IDS = [(-1, ValueError), (5, ValueError), (99, ValueError), (2**32, ValueError), (2**40, ValueError)]
BAD_IDS += [
    (1.0, TypeError),
    ("1", TypeError),
    (None, TypeError),
    ([1], TypeError),
    ((1,), TypeError),
    (b"1", TypeError),
]


@pytest.mark.parametrize(("bad", "error"), BAD_IDS, ids=repr)
def test_bad_id_is_refused_and_stream_goes_on(bad: Any, error: type[Exception]) -> None:
    tokenizer, token_ids = staged("a", b"\xc3", b"\xa9", "EN", "D")
    scanner = TokenScanner(tokenizer, ["END"], max_tokens=5, stop_token_ids=[99_999])
    outputs = []
    for token_id in token_ids:
        with pytest.raises(error, match=str(bad) if error is ValueError else type(bad).__name__):
            scanner.feed(bad)
        outputs.append(scanner.feed(token_id))
    assert outputs == ["a", "", "é", "", ""]
    assert scanner.finish == stopped(2)
    assert (scanner.tokens_seen, scanner.tokens_kept) == (5, 3)


def test_id_in_a_vocabulary_gap_is_refused() -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 7}, []))
    tokenizer.decoder = decoders.Fuse()
    scanner = TokenScanner(tokenizer)
    assert scanner.feed(0) == "a"
    for gap in (1, 6, 8):
        with pytest.raises(ValueError, match=f"token id {gap} "):
            scanner.feed(gap)
    assert scanner.feed(7) == "b"
    assert (scanner.tokens_seen, scanner.tokens_kept) == (2, 2)


def test_integers_of_other_types() -> None:
    tokenizer, token_ids = staged("a", "b", "c")
    scanner = TokenScanner(tokenizer, stop_token_ids=np.array(token_ids[2:]), prompt_token_ids=np.array(token_ids[:1]))
    assert [scanner.feed(token_id) for token_id in np.array(token_ids, dtype=np.int32)] == ["a", "b", ""]
    assert scanner.finish == ended(2)
    assert scanner.finish is not None
    assert type(scanner.finish.matched_stop) is int
    assert TokenScanner(tokenizer).feed(True) == "b"


BAD_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"min_tokens": -1}, ValueError, "min_tokens: -1"),
    ({"max_tokens": -1}, ValueError, "max_tokens: -1"),
    ({"min_tokens": 3, "max_tokens": 2}, ValueError, "min_tokens 3 .* max_tokens 2"),
    ({"stop_token_ids": [-1]}, ValueError, "stop_token_ids: -1"),
    ({"eos_token_ids": [2**40]}, ValueError, f"eos_token_ids: {2**40}"),
    ({"stop_token_ids": ["a"]}, TypeError, "str"),
    ({"stop_token_ids": [1.5]}, TypeError, "float"),
    ({"prompt_token_ids": [0, 99]}, ValueError, "token id 99"),
    ({"prompt_token_ids": [-1, 0]}, ValueError, "token id -1"),
    ({"prompt_token_ids": "a"}, TypeError, "str"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_OPTIONS, ids=lambda value: str(value))
def test_bad_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    tokenizer, _ = staged("a", "b")
    with pytest.raises(error, match=message):
        TokenScanner(tokenizer, **options)


def test_stops_are_those_of_the_scanner() -> None:
    tokenizer, token_ids = staged("a", "b")
    with pytest.raises(ValueError, match="0"):
        TokenScanner(tokenizer, [""])
    with pytest.raises(TypeError):
        TokenScanner(tokenizer, [b"a"])  # type: ignore[list-item]
    for stop in ("b", ["b"], StopSet("b")):
        assert emitted(TokenScanner(tokenizer, stop), token_ids) == "a"
    for nothing in (None, (), []):
        assert emitted(TokenScanner(tokenizer, nothing), token_ids) == "ab"


@pytest.mark.parametrize("tokenizer", [None, "gpt2", {}, object()])
def test_what_carries_no_tokenizer_is_named(tokenizer: Any) -> None:
    with pytest.raises(TypeError, match=f"tokenizer: .* {type(tokenizer).__name__}"):
        TokenScanner(tokenizer, "END")


def test_a_transformers_fast_tokenizer() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    reciter = Reciter({"split": SCRIPTS["split"]})
    with TemporaryDirectory() as directory:
        tokenizer = transformers.AutoTokenizer.from_pretrained(reciter.write(directory))
    scanner = TokenScanner(tokenizer, "END", eos_token_ids=[tokenizer.eos_token_id])
    assert emitted(scanner, [*reciter.token_ids("split"), reciter.eos_token_id]) == "This is the "
    assert scanner.finish == stopped(12)
