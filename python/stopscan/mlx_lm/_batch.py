from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlx_lm.generate import BatchGenerator

from stopscan import StopSet
from stopscan._engine.tokens import ids, own_options
from stopscan.finish import Finish
from stopscan.mlx_lm._row import RowScanner, wrapped
from stopscan.mlx_lm._versions import BATCHES, require

if TYPE_CHECKING:

    @dataclass
    class MlxBatchResponse:  # mlx-lm comes without types
        texts: list[str]
        stats: Any
        caches: Any = None
        token_ids: Any = None
        logprobs: Any = None

else:
    from mlx_lm.generate import BatchResponse as MlxBatchResponse

Stops = StopSet | str | Iterable[str] | None


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
    stop: Stops | Sequence[Stops] = (),
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
    tokenizer = wrapped(tokenizer)
    options, kwargs = own_options(kwargs)
    options["stop_token_ids"] = ids(options.get("stop_token_ids"))  # for all rows, though it be an iterator
    limits = _each("max_tokens", max_tokens, isinstance(max_tokens, int), prompts)
    one_stop = not isinstance(stop, list | tuple) or all(isinstance(entry, str) for entry in stop)
    stops = _each("stop", stop, one_stop, prompts)
    rows = [
        RowScanner(
            tokenizer,
            StopSet(row_stop, patterns=patterns) if patterns else row_stop,
            max_tokens=limit,
            prompt=prompt,
            **options,
        )
        for row_stop, limit, prompt in zip(stops, limits, prompts, strict=True)
    ]
    outputs = [_Output(row) for row in rows]
    with closing(BatchGenerator(model, **kwargs)) as generator, generator.stats() as stats:
        uids = generator.insert(prompts, limits, caches=prompt_caches, stop_sequences=rows)
        output_of = dict(zip(uids, outputs, strict=True))
        while responses := generator.next_generated():
            for response in responses:
                output_of[response.uid].add(response, with_logprob=return_logprobs)
    if verbose:
        print(f"Prompt: {stats.prompt_tokens} tokens, {stats.prompt_tps:.3f} tokens-per-sec")
        print(f"Generation: {stats.generation_tokens} tokens, {stats.generation_tps:.3f} tokens-per-sec")
        print(f"Peak memory: {stats.peak_memory:.3f} GB")
    return BatchResponse(
        texts=["".join(output.texts) for output in outputs],
        stats=stats,
        caches=[output.prompt_cache for output in outputs] if return_prompt_caches else None,
        token_ids=[output.cut(output.token_ids) for output in outputs] if return_token_ids else None,
        logprobs=[output.cut(output.logprobs) for output in outputs] if return_logprobs else None,
        finishes=[row.finish for row in rows if row.finish is not None],
    )


class _Output:
    """What came of one row."""

    def __init__(self, row: RowScanner) -> None:
        self.row = row
        self.texts: list[str] = []
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []
        self.prompt_cache: Any = None

    def add(self, response: Any, *, with_logprob: bool) -> None:
        self.texts.append(self.row.text(response))
        self.token_ids.append(response.token)
        if with_logprob:
            self.logprobs.append(response.logprobs[response.token].item())
        self.prompt_cache = response.prompt_cache

    def cut(self, values: list[Any]) -> list[Any]:
        finish = self.row.finish
        if finish is None or finish.reason == "length":
            return values
        return values[:-1] if finish.reason == "eos" else values[: self.row.tokens_kept]


def _each(name: str, value: Any, for_all: bool, prompts: Sequence[Any]) -> list[Any]:
    if for_all:
        return [value] * len(prompts)
    if len(value) != len(prompts):
        raise ValueError(f"{name} has {len(value)} entries for {len(prompts)} prompts")
    return list(value)
