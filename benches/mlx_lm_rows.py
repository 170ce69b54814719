"""Times one token of one row of a batch: in stopscan's `RowScanner`, and in mlx-lm's own detokenizer alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

from measure import Case, net, own
from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, TokenizerWrapper
from report import Limits, markdown
from tokens import ids
from transformers import PreTrainedTokenizerFast
from workload import REALISTIC, numbered, tokenizer

from stopscan.mlx_lm import RowScanner

DETOKENIZER = "mlx-lm's BPEStreamingDetokenizer, `add_token` and `last_segment`"
RESPONSE = SimpleNamespace(finish_reason=None)


@cache
def wrapper() -> Any:
    return TokenizerWrapper(PreTrainedTokenizerFast(tokenizer_object=tokenizer()), BPEStreamingDetokenizer)


def scan_each(subject: tuple[RowScanner, list[int], Any]) -> None:
    row, token_ids, response = subject
    for token_id in token_ids:
        row.advance(token_id)
        row.text(response)


def scanning(name: str, stop: list[str]) -> Case:
    def texts(token_ids: list[int]) -> Iterator[str]:
        row = RowScanner(wrapper(), stop)
        for token_id in token_ids:
            assert not row.advance(token_id)
            yield row.text(RESPONSE)
        yield row.flush()

    def check(token_ids: list[int]) -> None:
        assert "".join(texts(token_ids)) == tokenizer().decode(token_ids, skip_special_tokens=False)

    return Case(name, lambda ids: (RowScanner(wrapper(), stop), ids, RESPONSE), own(scan_each), check)


def detokenize_each(subject: tuple[Any, list[int]]) -> None:
    detokenizer, token_ids = subject
    for token_id in token_ids:
        detokenizer.add_token(token_id)
        detokenizer.last_segment  # noqa: B018


def report(limits: Limits) -> Iterator[str]:
    counts = (0, 4, 1000)
    cases = [
        Case(DETOKENIZER, lambda token_ids: (wrapper().detokenizer, token_ids), own(detokenize_each)),
        *(scanning(f"`RowScanner`, {count:,} stops", numbered(count)) for count in counts),
        scanning("`RowScanner`, 4 realistic stops", REALISTIC),
    ]
    times = net(cases, [ids("english")[start : start + 1024] for start in range(0, 6 * 1024, 1024)], 40)
    yield "## A row\n\n" + markdown([("case", "ns per token", "times the detokenizer"), *times.rows(DETOKENIZER)])
    limits.most("`RowScanner`, 4 stops", 400, times.times["`RowScanner`, 4 stops"], " ns")
    limits.least("mlx-lm's detokenizer / `RowScanner`, 4 stops", 4, times.ratio(DETOKENIZER, "`RowScanner`, 4 stops"))
