"""mlx-lm's batch with exact stops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlx_lm.generate import BatchGenerator

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm._row import RowScanner, Stops, wrapped
from stopscan.mlx_lm._versions import BATCHES, require
from stopscan.mlx_lm.generate._single import print_speed, stop_set, taken

if TYPE_CHECKING:
    from stopscan.engines.untyped import Untyped as MlxBatchResponse
else:
    from mlx_lm.generate import BatchResponse as MlxBatchResponse


@dataclass
class BatchResponse(MlxBatchResponse):
    """mlx-lm's response, with the ``Finish`` of each row in ``finishes``."""

    finishes: list[Finish] = field(default_factory=list)


def batch_generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    prompt_caches: Sequence[Any] | None = None,
    max_tokens: int | Sequence[int] = 128,
    verbose: bool = False,
    *,
    stop: Stops | Iterable[Stops] = (),
    patterns: str | Iterable[str] = (),
    return_prompt_caches: bool = False,
    return_token_ids: bool = False,
    return_logprobs: bool = False,
    **kwargs: Any,
) -> BatchResponse:
    """Returns the response of ``mlx_lm.batch_generate``, with each text up to its stop. A row that stops leaves the
    batch before the next step.

    - ``stop`` holds for all rows. A list with an entry for each prompt, not all of them strings, gives each row its own
      stops.
    - ``patterns`` hold for all rows.
    - Token ids and logprobs end where the text ends, and have no EOS.
    - ``verbose`` prints the speed.
    - ``stop_token_ids``, ``min_tokens``, ``include_stop``, ``protect`` and ``start_protected`` are those of
      ``RowScanner``.
    - The other ``kwargs`` go to ``BatchGenerator``.

    Raises ``ImportError`` on mlx-lm before 0.32, whose batches ask no row when the row ends.

    >>> batch = batch_generate(model, tokenizer, prompts, stop=[["END"], ["6", "seven"]], max_tokens=500)
    >>> [finish.matched_stop for finish in batch.finishes]
    ['END', None]
    """
    require("batch_generate", BATCHES)
    tokenizer, options = wrapped(tokenizer), taken(kwargs)
    limits = [max_tokens] * len(prompts) if isinstance(max_tokens, int) else _each("max_tokens", max_tokens, prompts)
    rows = [
        RowScanner(tokenizer, row_stops, max_tokens=limit, prompt=prompt, **options)
        for row_stops, limit, prompt in zip(_stops(stop, patterns, prompts), limits, prompts, strict=True)
    ]
    outputs: list[list[Any]] = [[] for _ in rows]
    with closing(BatchGenerator(model, **kwargs)) as generator, generator.stats() as stats:
        uids = generator.insert(prompts, limits, caches=prompt_caches, stop_sequences=rows)
        of_row = dict(zip(uids, zip(rows, outputs, strict=True), strict=True))
        while responses := generator.next_generated():
            for response in responses:
                row, output = of_row[response.uid]
                score = response.logprobs[response.token].item() if return_logprobs else None
                output.append((row.text(response), response.token, score, response.prompt_cache))
    if verbose:
        print_speed(stats)
    kept = [output[: _length(row, len(output))] for row, output in zip(rows, outputs, strict=True)]
    return BatchResponse(  # type: ignore[call-arg]
        texts=["".join(text for text, *_ in output) for output in outputs],
        stats=stats,
        caches=[output[-1][3] for output in outputs] if return_prompt_caches else None,
        token_ids=[[token for _, token, *_ in output] for output in kept] if return_token_ids else None,
        logprobs=[[score for _, _, score, _ in output] for output in kept] if return_logprobs else None,
        finishes=[row.finish for row in rows if row.finish is not None],
    )


def _length(row: RowScanner, count: int) -> int:
    """How many of a row's tokens belong to its text."""
    reason = row.finish.reason if row.finish else "length"
    return count if reason == "length" else count - 1 if reason == "eos" else row.tokens_kept


def _stops(stop: Any, patterns: str | Iterable[str], prompts: Sequence[Any]) -> list[StopSet]:
    """The set of each row. Those of all rows are compiled once, and iterators are read once."""
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    entries = stop if isinstance(stop, StopSet | str | None) else list(stop)
    if isinstance(entries, list) and not all(isinstance(entry, str) for entry in entries):
        return [stop_set(entry, patterns) for entry in _each("stop", entries, prompts)]
    return [stop_set(entries, patterns)] * len(prompts)


def _each(name: str, values: Sequence[Any], prompts: Sequence[Any]) -> Sequence[Any]:
    if len(values) != len(prompts):
        raise ValueError(f"{name} has {len(values)} entries for {len(prompts)} prompts")
    return values
