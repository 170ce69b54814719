"""Times one token of one row in a batch, in stopscan's `RowScanner` and in mlx-lm's detokenizer."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Case, Ran
from workload import REALISTIC, ids, numbered, tokenizer

pytest.importorskip("mlx_lm")

from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, TokenizerWrapper
from transformers import PreTrainedTokenizerFast

from stopscan.mlx_lm import RowScanner

DETOKENIZER = "mlx-lm's BPEStreamingDetokenizer, `add_token` and `last_segment`"
RESPONSE = SimpleNamespace(finish_reason=None)
GROUP = "a row"


@cache
def wrapper() -> Any:
    return TokenizerWrapper(PreTrainedTokenizerFast(tokenizer_object=tokenizer()), BPEStreamingDetokenizer)


def scan_each(row: RowScanner, token_ids: list[int]) -> None:
    for token_id in token_ids:
        row.advance(token_id)
        row.text(RESPONSE)


def scanning(stop: list[str]) -> Case:
    def check(token_ids: list[int]) -> None:
        row, texts = RowScanner(wrapper(), stop), []
        for token_id in token_ids:
            assert not row.advance(token_id)
            texts.append(row.text(RESPONSE))
        assert "".join(texts) + row.flush() == tokenizer().decode(token_ids, skip_special_tokens=False)

    return Case(scan_each, lambda token_ids: (RowScanner(wrapper(), stop), token_ids), check)


def detokenize_each(detokenizer: Any, token_ids: list[int]) -> None:
    for token_id in token_ids:
        detokenizer.add_token(token_id)
        detokenizer.last_segment  # noqa: B018


CASES = {
    DETOKENIZER: Case(detokenize_each, lambda token_ids: (wrapper().detokenizer, token_ids)),
    **{f"`RowScanner`, {count:,} stops": scanning(numbered(count)) for count in (0, 4, 1000)},
    "`RowScanner`, 4 realistic stops": scanning(REALISTIC),
}


@pytest.mark.parametrize("name", CASES)
def test_per_token(bench: Any, name: str) -> None:
    windows = [ids("english")[start : start + 1024] for start in range(0, 6 * 1024, 1024)]
    bench(GROUP, name, CASES[name], windows, passes=20)


def test_limits_per_token(ran: Ran, limit: Any) -> None:
    name = "`RowScanner`, 4 stops"
    limit(name, ran.of(GROUP, name).net, most=400, unit=" ns")
    limit(f"mlx-lm's detokenizer / {name}", ran.ratio(GROUP, DETOKENIZER, name), least=4)
