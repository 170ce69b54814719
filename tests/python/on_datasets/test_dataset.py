"""``examples/dataset.py`` cuts the rows of a data set at stops. With `datasets` and with Ray, the rows must equal those
of the reference."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="ray is not installed; ci/datasets-env makes the environment")

import dataset
import pyarrow as pa
from reference import Reference
from stream import trained_tokenizer

from stopscan import StopSet
from stopscan.tokens import Vocabulary

ROWS = 60
SETS: dict[str, dict[str, Any]] = {
    "four stops": {"stop": dataset.STOPS},
    "one stop, in vain": {"stop": ["<|nowhere|>"]},
    "ties and nesting": {"stop": ["the", "he", "statement", "###"]},
    "visible": {"stop": ["###"], "visible": [". "]},
    "protected": {"stop": ["###", "the"], "protect": [("The ", ".")]},
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rows = dataset.generated(trained_tokenizer(), ROWS)
    odd = trained_tokenizer()
    texts = ["", "###", "###the", "a </answer", "🦀 ###", "the statement"]
    ids = [odd.encode(text).ids for text in texts]
    return pa.concat_tables(
        [rows, pa.table({"text": odd.decode_batch(ids), "token_ids": pa.array(ids, pa.list_(pa.int64()))})]
    )


@pytest.fixture(params=SETS, scope="module")
def stops(request: pytest.FixtureRequest) -> dict[str, Any]:
    return SETS[request.param]


@pytest.fixture(params=[dataset.with_datasets, dataset.with_ray], scope="module")
def engine(request: pytest.FixtureRequest) -> Any:
    """Returns the example's function for `datasets`, and then the one for Ray. `datasets` must come first, because it
    forks its process. Once Ray has started threads, a fork can hang."""
    if request.param is dataset.with_ray:
        request.getfixturevalue("cluster")
    return request.param


def compiled(stops: dict[str, Any]) -> StopSet:
    return StopSet(stops["stop"], **{name: value for name, value in stops.items() if name != "stop"})


def by_the_book(text: str, stops: dict[str, Any]) -> dict[str, Any]:
    book = Reference(**stops)
    answer = book.feed(text) + book.flush()
    match = book.match
    return {"answer": answer, "matched_stop": match and match.sequence, "offset": match and match.offset}


def columns(table: pa.Table, *names: str) -> list[dict[str, Any]]:
    return table.select(names).to_pylist()


def test_texts_and_token_ids_are_cut_as_the_rules_say(table: pa.Table, stops: dict[str, Any]) -> None:
    expected = [by_the_book(text, stops) for text in table["text"].to_pylist()]
    texts = dataset.cut_texts(table, compiled(stops))
    assert columns(texts, "answer", "matched_stop", "offset") == expected
    tokens = dataset.cut_token_ids(table, compiled(stops), Vocabulary(trained_tokenizer()))
    assert columns(tokens, "answer", "matched_stop", "offset") == expected


def test_the_kept_tokens_are_those_of_the_answer(table: pa.Table) -> None:
    tokenizer = trained_tokenizer()
    cut = dataset.cut_token_ids(table, StopSet(dataset.STOPS), Vocabulary(tokenizer))
    for row in cut.to_pylist():
        kept = row["token_ids"][: row["tokens_kept"]]
        assert tokenizer.decode(kept).startswith(row["answer"])
        assert not kept or not tokenizer.decode(kept[:-1]).startswith(row["answer"])


@pytest.mark.parametrize("workers", [1, 2])
def test_every_engine_says_the_same_on_one_worker_and_on_two(
    monkeypatch: pytest.MonkeyPatch, table: pa.Table, engine: Any, workers: int
) -> None:
    monkeypatch.setattr(dataset, "BATCH", 7)
    for stops in map(compiled, SETS.values()):
        cut = partial(dataset.cut_texts, stops=stops)
        assert engine(table, cut, workers).to_pylist() == cut(table).to_pylist()
    cut = partial(dataset.cut_token_ids, stops=compiled(SETS["four stops"]), vocabulary=Vocabulary(trained_tokenizer()))
    assert engine(table, cut, workers).to_pylist() == cut(table).to_pylist()


def test_batches_without_a_match_have_the_columns_of_the_others(monkeypatch: pytest.MonkeyPatch, engine: Any) -> None:
    monkeypatch.setattr(dataset, "BATCH", 1)
    table = pa.table({"text": ["nothing", "a ### b", ""]})
    result = engine(table, partial(dataset.cut_texts, stops=StopSet("###")), 2)
    assert result["matched_stop"].to_pylist() == [None, "###", None]
    assert result["offset"].to_pylist() == [None, 2, None]


def test_a_row_without_text_is_an_error_that_comes_through(engine: Any) -> None:
    table = pa.table({"text": ["some", None]})
    with pytest.raises(Exception, match="expected str, got NoneType"):
        engine(table, partial(dataset.cut_texts, stops=StopSet("###")), 2)


def test_split_takes_the_stop_that_begins_first_not_the_one_that_completes_first() -> None:
    table = pa.table({"text": ["xabcd", "a ### b", "none"]})
    stops = ["abcd", "bc", "###"]
    assert dataset.split_texts(table, stops)["answer"].to_pylist() == ["x", "a ", "none"]
    assert dataset.cut_texts(table, StopSet(stops))["answer"].to_pylist() == ["xa", "a ", "none"]


def test_the_example(table: pa.Table) -> None:
    program = Path(dataset.__file__)
    command = [sys.executable, str(program), "--rows", "200", "--workers", "2"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    assert output.count("  yes\n") == 6
    assert "NO" not in output


def test_an_empty_batch_has_the_same_columns() -> None:
    """An empty batch must not raise. Before a fix, it did: the columns came from `zip(*rows)`, which yields nothing
    without rows."""
    stops = StopSet(dataset.STOPS)
    texts = pa.table({"text": pa.array([], pa.string()), "token_ids": pa.array([], pa.list_(pa.int64()))})
    vocabulary = Vocabulary(trained_tokenizer())
    assert dataset.cut_texts(texts, stops).num_rows == 0
    cut = dataset.cut_token_ids(texts, stops, vocabulary)
    assert cut.column_names == ["text", "token_ids", "answer", "matched_stop", "offset", "tokens_kept"]
