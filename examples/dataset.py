"""Cuts a data set of generated texts at its stops, with Ray Data and with Hugging Face `datasets`.

    pip install '.[tokenizers]' 'ray[data]' datasets && python examples/dataset.py --rows 20000 --workers 2

A `StopSet` and the `Vocabulary` of a tokenizer can be pickled, so Ray and `datasets` send them to their workers. The
functions `cut_…` take a batch of rows, and add columns for the answer and its match. A row has an excerpt of Python's
manual, as text and as token ids. Most rows contain a stop. The example prints how many seconds one worker and several
workers take, checks that their results are equal, and also times `str.split` at each stop.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from functools import partial
from pydoc_data.topics import topics
from time import perf_counter

import pyarrow as pa
from stream import trained_tokenizer
from tokenizers import Tokenizer

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.tokens import TokenScanner, Vocabulary

STOPS = ["\n\nHuman:", "</answer>", "<|im_end|>", "###"]
TOKENS = 500  # how many tokens each row has
BATCH = 1_000  # how many rows each batch has

Cut = Callable[[pa.Table], pa.Table]


def cut_texts(batch: pa.Table, stops: StopSet) -> pa.Table:
    """Returns the batch with three new columns. `answer` is the text before the stop. `matched_stop` is the stop, and
    `offset` is where it begins: both are null if no stop fired."""
    cuts = list(map(stops.truncate, batch["text"].to_pylist()))
    return with_columns(
        batch,
        answer=pa.array([answer for answer, _ in cuts], pa.string()),
        matched_stop=pa.array([match and match.sequence for _, match in cuts], pa.string()),
        offset=pa.array([match and match.offset for _, match in cuts], pa.int64()),
    )


def cut_token_ids(batch: pa.Table, stops: StopSet, vocabulary: Vocabulary) -> pa.Table:
    """Cuts `token_ids` as `cut_texts` cuts text. The column `tokens_kept` says how many ids (and logprobs) to keep."""
    cuts = list(finished(batch["token_ids"].to_pylist(), stops, vocabulary))
    return with_columns(
        batch,
        answer=pa.array([answer for answer, _, _ in cuts], pa.string()),
        matched_stop=pa.array([finish.matched_stop for _, finish, _ in cuts], pa.string()),
        offset=pa.array([finish.offset for _, finish, _ in cuts], pa.int64()),
        tokens_kept=pa.array([kept for _, _, kept in cuts], pa.int64()),
    )


def finished(rows: list[list[int]], stops: StopSet, vocabulary: Vocabulary) -> Iterator[tuple[str, Finish, int]]:
    scanner = TokenScanner(vocabulary, stops)
    for token_ids in rows:
        scanner.reset()
        answer = scanner.feed_many(token_ids) + scanner.flush()
        yield answer, scanner.finish, scanner.tokens_kept


def split_texts(batch: pa.Table, stops: list[str]) -> pa.Table:
    """Cuts as most evaluation code does: with `str.split` at each stop. The stop and its offset are not reported."""
    answers = []
    for text in batch["text"].to_pylist():
        for stop in stops:
            text = text.split(stop)[0]
        answers.append(text)
    return with_columns(batch, answer=pa.array(answers, pa.string()))


def with_columns(batch: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, column in columns.items():
        batch = batch.append_column(name, column)
    return batch


def without_engine(table: pa.Table, cut: Cut, workers: int) -> pa.Table:
    assert workers == 1
    return cut(table)


def with_datasets(table: pa.Table, cut: Cut, workers: int) -> pa.Table:
    from datasets import Dataset

    dataset = Dataset(table).with_format("arrow")
    return dataset.map(cut, batched=True, batch_size=BATCH, num_proc=workers if workers > 1 else None)[:]


def with_ray(table: pa.Table, cut: Cut, workers: int) -> pa.Table:
    import ray

    ray.init(ignore_reinit_error=True, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    ray.data.DataContext.get_current().enable_progress_bars = False
    blocks = [table.slice(start, BATCH) for start in range(0, len(table), BATCH)]
    dataset = ray.data.from_arrow(blocks).map_batches(cut, batch_format="pyarrow", batch_size=None, concurrency=workers)
    return pa.concat_tables(ray.get(dataset.to_arrow_refs()))


ENGINES = {"without an engine": without_engine, "datasets": with_datasets, "Ray Data": with_ray}


def generated(tokenizer: Tokenizer, rows: int) -> pa.Table:
    """Returns rows of random excerpts. Most have a random stop at a random place, and about one in five has no stop."""
    draw = random.Random(1)
    manual = tokenizer.encode("\n\n".join(topics.values())).ids
    stops = [tokenizer.encode(stop).ids for stop in STOPS] + [[]]
    token_ids = []
    for _ in range(rows):
        start, before = draw.randrange(len(manual) - TOKENS), draw.randrange(TOKENS)
        tokens = manual[start : start + TOKENS]
        token_ids.append(tokens[:before] + draw.choice(stops) + tokens[before:])
    return pa.table({"text": tokenizer.decode_batch(token_ids), "token_ids": token_ids})


def timed(run: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    """Calls `run` twice, because the first call also starts the workers. Returns the seconds and the result of the
    second call."""
    run()
    start = perf_counter()
    result = run()
    return perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description="Cuts a data set of generated texts at its stops.")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    tokenizer = trained_tokenizer()
    table, stops = generated(tokenizer, options.rows), StopSet(STOPS)
    ways: dict[str, tuple[str, Cut]] = {
        "str.split at each stop": ("text", partial(split_texts, stops=STOPS)),
        "cut_texts": ("text", partial(cut_texts, stops=stops)),
        "cut_token_ids": ("token_ids", partial(cut_token_ids, stops=stops, vocabulary=Vocabulary(tokenizer))),
    }
    megabytes = sum(len(text.encode()) for text in table["text"].to_pylist()) / 1e6
    print(f"{len(table):,} rows, {megabytes:.0f} MB of text, {len(table) * TOKENS / 1e6:.0f} million tokens\n")
    print(f"{'':18}{'':24}{'1 worker':>20}{f'{options.workers} workers':>20}  same result")
    for engine, run in ENGINES.items():
        for way, (column, cut) in ways.items():
            part = table.select([column])
            one, result = timed(partial(run, part, cut, 1))
            line = f"{engine:18}{way:24}{one:7.2f} s {megabytes / one:6.0f} MB/s"
            if run is not without_engine:
                several, again = timed(partial(run, part, cut, options.workers))
                line += f"{several:7.2f} s {megabytes / several:6.0f} MB/s  {'yes' if again.equals(result) else 'NO'}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
