"""What a token of a row costs: `RowScanner.advance` and `text`, beside mlx-lm's own detokenizer alone.

pip install '.[bench,mlx-lm]' && python benches/mlx_lm_rows.py
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

from cases import Case, empty_method, exhaust, feed_each, own
from measure import interleaved
from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, TokenizerWrapper
from report import heading, markdown, ratio
from tokens import EMPTY, LOOP, warm, windows
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


def detokenizing() -> Case:
    def check(token_ids: list[int]) -> None:
        detokenizer = wrapper().detokenizer
        for token_id in token_ids:
            detokenizer.add_token(token_id)
        detokenizer.finalize()
        assert detokenizer.text == tokenizer().decode(token_ids, skip_special_tokens=False).removeprefix(" ")

    return Case(DETOKENIZER, lambda ids: (wrapper().detokenizer, ids), own(detokenize_each), check)


def main() -> None:
    method = empty_method(EMPTY)
    cases = [
        Case(LOOP, list, own(exhaust), lambda ids: None),
        Case(EMPTY, lambda ids: (method.prepare([])[0], ids), own(feed_each), lambda ids: None),
        detokenizing(),
        *(scanning(f"`RowScanner`, {count:,} stops", numbered(count)) for count in (0, 4, 1000)),
        scanning("`RowScanner`, 4 realistic stops", REALISTIC),
    ]
    timings = interleaved([*map(warm, cases)], windows("english"), passes=40)
    tokens = sum(map(len, windows("english")))
    loop = timings.pop(LOOP)
    net = {name: timing.less(loop).per(tokens) for name, timing in timings.items()}
    rows = [(name, f"{timing.fastest:,.0f}", f"{ratio(net[DETOKENIZER], timing):.1f}x") for name, timing in net.items()]
    print(heading("A row of mlx-lm", ["mlx-lm", "tokenizers", "transformers"]), end="\n\n")
    print(markdown([("ns a token, net of the loop", "", "faster than the detokenizer"), *rows]))


if __name__ == "__main__":
    main()
