"""mlx-lm's loops with exact stops."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from mlx_lm.generate import BatchGenerator
from mlx_lm.generate import BatchResponse as MlxBatchResponse
from mlx_lm.generate import GenerationResponse as MlxResponse
from mlx_lm.generate import stream_generate as mlx_stream_generate
from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopMatch, StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm._row import RowScanner, wrapped

ENDS = {"stop": Finish("eos"), "length": Finish("length")}
ROW = ("stop_token_ids", "min_tokens", "include_stop", "protect", "start_protected")

Stops = StopSet | str | Iterable[str] | None


@dataclass
class GenerationResponse(MlxResponse):
    """mlx-lm's response with safe text in ``text``. The last response has a ``finish`` and, if a stop string fired, a
    ``match``. ``finish_reason`` is mlx-lm's word: "length", or "stop" for any other end."""

    finish: Finish | None = None
    match: StopMatch | None = None


@dataclass
class BatchResponse(MlxBatchResponse):
    """mlx-lm's response, with the ``Finish`` of each row in ``finishes``."""

    finishes: list[Finish] = field(default_factory=list)


def stream_generate(
    model: Any, tokenizer: Any, prompt: Any, *, stop: Stops = (), patterns: str | Iterable[str] = (), **kwargs: Any
) -> Generator[GenerationResponse, None, None]:
    """Returns an iterator of the responses of ``mlx_lm.stream_generate``, up to the stop. There is a response for each
    token, so ``text`` is often ``""``.

    - ``stop`` and ``patterns`` are those of ``StopSet``, ``stop_token_ids``, ``min_tokens``, ``include_stop``,
      ``protect`` and ``start_protected`` those of ``RowScanner``. Wrong values raise at once.
    - Without a stop, ``text`` is mlx-lm's. With a stop, ``text`` is the text of ``tokenizer.decode``, because mlx-lm's
      own text drops a leading space.
    - The other ``kwargs`` are mlx-lm's, such as ``max_tokens`` and ``draft_model``.

    >>> for response in stream_generate(model, tokenizer, prompt, stop=["END"], max_tokens=500):
    ...     print(response.text, end="", flush=True)
    >>> response.match
    StopMatch("END", 26)
    """
    tokenizer, stops = wrapped(tokenizer), _set(stop, patterns)
    limit, options = kwargs.get("max_tokens"), _taken(kwargs)
    row = RowScanner(tokenizer, stops, max_tokens=None if limit is None or limit < 0 else limit, prompt=prompt, **options)
    if len(stops) == 0 and not options.get("stop_token_ids"):
        return _responses(mlx_stream_generate(model, tokenizer, prompt, **kwargs), None)
    return _responses(mlx_stream_generate(model, _without_text(tokenizer), prompt, **kwargs), row)


def generate(model: Any, tokenizer: Any, prompt: Any, verbose: bool = False, **kwargs: Any) -> str:
    """Returns the text of ``stream_generate`` with these arguments. ``verbose`` prints it as it comes, and the speed."""
    texts = []
    for response in stream_generate(model, tokenizer, prompt, **kwargs):
        texts.append(response.text)
        if verbose:
            print(response.text, end="", flush=True)
    if verbose:
        print(f"\nPrompt: {response.prompt_tokens} tokens, {response.prompt_tps:.3f} tokens-per-sec")
        print(f"Generation: {response.generation_tokens} tokens, {response.generation_tps:.3f} tokens-per-sec")
        print(f"Peak memory: {response.peak_memory:.3f} GB")
    return "".join(texts)


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
      stops. ``patterns`` hold for all rows.
    - Token ids and logprobs end where the text ends, and have no EOS.
    - The options of ``stream_generate`` are taken, too. The other ``kwargs`` go to ``BatchGenerator``.

    >>> batch = batch_generate(model, tokenizer, prompts, stop=[["END"], ["6", "seven"]], max_tokens=500)
    >>> [finish.matched_stop for finish in batch.finishes]
    ['END', None]
    """
    tokenizer, options = wrapped(tokenizer), _taken(kwargs)
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    if isinstance(stop, list | tuple) and not all(isinstance(entry, str) for entry in stop):
        stops = [_set(entry, patterns) for entry in _each("stop", stop, prompts)]
    else:
        stops = [_set(stop, patterns)] * len(prompts)  # one set for all, compiled once
    limits = [max_tokens] * len(prompts) if isinstance(max_tokens, int) else _each("max_tokens", max_tokens, prompts)
    rows = [
        RowScanner(tokenizer, row_stops, max_tokens=limit, prompt=prompt, **options)
        for row_stops, limit, prompt in zip(stops, limits, prompts, strict=True)
    ]
    outputs: list[list[Any]] = [[] for _ in rows]
    texts: list[list[str]] = [[] for _ in rows]
    with closing(BatchGenerator(model, **kwargs)) as generator, generator.stats() as stats:
        uids = generator.insert(prompts, limits, caches=prompt_caches, stop_sequences=rows)
        number_of = {uid: number for number, uid in enumerate(uids)}
        while responses := generator.next_generated():
            for response in responses:
                number = number_of[response.uid]
                texts[number].append(rows[number].text(response))
                score = response.logprobs[response.token].item() if return_logprobs else None
                outputs[number].append((response.token, score))
                if response.finish_reason:
                    outputs[number].append(response.prompt_cache)
    caches = [output.pop() for output in outputs]
    kept = [output[: _length(row, len(output))] for row, output in zip(rows, outputs, strict=True)]
    if verbose:
        print(f"Prompt: {stats.prompt_tokens} tokens, {stats.prompt_tps:.3f} tokens-per-sec")
        print(f"Generation: {stats.generation_tokens} tokens, {stats.generation_tps:.3f} tokens-per-sec")
        print(f"Peak memory: {stats.peak_memory:.3f} GB")
    return BatchResponse(
        texts=["".join(pieces) for pieces in texts],
        stats=stats,
        caches=caches if return_prompt_caches else None,
        token_ids=[[token for token, _ in output] for output in kept] if return_token_ids else None,
        logprobs=[[score for _, score in output] for output in kept] if return_logprobs else None,
        finishes=[row.finish for row in rows],
    )


def _set(stop: Stops, patterns: Any) -> StopSet:
    return StopSet(stop, patterns=patterns) if patterns else StopSet(stop)


def _taken(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options of rows, taken out of ``kwargs``; an iterator of ids is read once."""
    options = {name: kwargs.pop(name) for name in ROW if name in kwargs}
    ids = options.get("stop_token_ids")
    if isinstance(ids, Iterable):
        options["stop_token_ids"] = tuple(each for each in ids if each is not None)
    return options


def _each(name: str, values: Sequence[Any], prompts: Sequence[Any]) -> list[Any]:
    if len(values) != len(prompts):
        raise ValueError(f"{name} has {len(values)} entries for {len(prompts)} prompts")
    return list(values)


def _length(row: Any, count: int) -> int:
    """How many tokens a row's text has."""
    reason = row.finish.reason
    return count if reason == "length" else count - 1 if reason == "eos" else row.tokens_kept


class _NoText:
    """A detokenizer for a loop whose text nobody reads; mlx-lm's own costs more than the scanner."""

    last_segment = ""

    def add_token(self, token_id: int) -> None: ...

    def finalize(self) -> None: ...


class _Textless(TokenizerWrapper):
    detokenizer = _NoText()


def _without_text(tokenizer: TokenizerWrapper) -> TokenizerWrapper:
    textless = object.__new__(_Textless)
    textless.__dict__.update(tokenizer.__dict__)
    return textless


def _responses(source: Generator[Any, None, None], row: RowScanner | None) -> Generator[Any, None, None]:
    with closing(source):
        for response in source:
            finish, match = ENDS.get(response.finish_reason), None
            if row is not None:
                row.advance(response.token)
                response.text, finish, match = row.text(response), row.finish, row.match
            if finish is not None:
                # Before the last response is handed on: its reader need not come back for more, and a draft model's
                # cache is rewound only now.
                source.close()
                response.finish_reason = "length" if finish.reason == "length" else "stop"
            yield GenerationResponse(**vars(response), finish=finish, match=match)
