"""mlx-lm's generate functions with exact stops. ``python -m stopscan.mlx_lm.generate`` is the command."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

from mlx_lm.generate import BatchGenerator
from mlx_lm.generate import stream_generate as mlx_stream_generate
from mlx_lm.models.cache import can_trim_prompt_cache
from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopMatch, StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm._row import RowScanner, Stops, wrapped
from stopscan.mlx_lm._versions import require

if TYPE_CHECKING:
    from stopscan.engines.untyped import Untyped as MlxBatchResponse
    from stopscan.engines.untyped import Untyped as MlxResponse
else:
    from mlx_lm.generate import BatchResponse as MlxBatchResponse
    from mlx_lm.generate import GenerationResponse as MlxResponse

__all__ = ["BatchResponse", "GenerationResponse", "batch_generate", "generate", "stream_generate"]

ENDS = {"stop": Finish("eos"), "length": Finish("length")}
RESPONSE = tuple(signature(MlxResponse).parameters)
ROW_OPTIONS = ("stop_token_ids", "min_tokens", "include_stop", "protect", "start_protected")


@dataclass
class GenerationResponse(MlxResponse):
    """mlx-lm's response, whose ``text`` is safe to send. The last response has a ``finish``, and ``tokens_kept``, the
    number of tokens up to the end of the text. If a stop string fired, it also has a ``match``.

    ``finish_reason`` has mlx-lm's values: "length", or "stop" for any other end.
    """

    finish: Finish | None = None
    match: StopMatch | None = None
    tokens_kept: int | None = None


def stream_generate(
    model: Any, tokenizer: Any, prompt: Any, *, stop: Stops = (), patterns: str | Iterable[str] = (), **kwargs: Any
) -> Generator[GenerationResponse, None, None]:
    """Returns an iterator of the responses of ``mlx_lm.stream_generate``, up to the stop. There is a response for each
    token, so ``text`` is often ``""``.

    - ``stop`` and ``patterns`` are the same as in ``StopSet``. A ``StopSet`` may have a ``repeat``.
    - ``stop_token_ids``, ``min_tokens``, ``include_stop``, ``protect`` and ``start_protected`` are the same as in
      ``RowScanner``. Wrong values raise at once.
    - If no stops are given, ``text`` is mlx-lm's. Otherwise ``text`` is the text of ``tokenizer.decode``, because
      mlx-lm's own text drops a leading space.
    - If a stop ends the text, and mlx-lm can trim the ``prompt_cache``, the tokens after the text are removed from it.
    - The other ``kwargs`` are mlx-lm's, such as ``max_tokens`` and ``draft_model``.

    >>> for response in stream_generate(model, tokenizer, prompt, stop=["END"], max_tokens=500):
    ...     print(response.text, end="", flush=True)
    >>> response.match
    StopMatch("END", 26)
    """
    require("stream_generate")
    tokenizer, stops, options = wrapped(tokenizer), _stop_set(stop, patterns), _row_options(kwargs)
    row, limit = None, kwargs.get("max_tokens")
    if len(stops) or any(options.values()):  # a wrong value raises here, even if there are no stops
        row = RowScanner(tokenizer, stops, max_tokens=None if limit == -1 else limit, prompt=prompt, **options)
    if row is None or not (len(stops) or options.get("stop_token_ids")):
        return _responses(mlx_stream_generate(model, tokenizer, prompt, **kwargs), None, [])
    source = mlx_stream_generate(model, _Textless(tokenizer), prompt, **kwargs)
    return _responses(source, row, kwargs.get("prompt_cache") or [])


def generate(model: Any, tokenizer: Any, prompt: Any, verbose: bool = False, **kwargs: Any) -> str:
    """Returns the text of ``stream_generate`` with these arguments.

    ``verbose`` prints the text as it comes.

    >>> generate(model, tokenizer, "Once upon a time", stop="END")
    ' there was a'
    """
    texts = []
    for response in stream_generate(model, tokenizer, prompt, **kwargs):
        texts.append(response.text)
        if verbose:
            print(response.text, end="", flush=True)
    if verbose:
        print()
    return "".join(texts)


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

    - ``stop`` is for all rows. If its entries are not all strings, each entry has the stops of one row, in the order of
      the prompts.
    - ``patterns`` are for all rows.
    - Token ids and logprobs end where the text ends, and do not include the EOS.
    - ``stop_token_ids``, ``min_tokens``, ``include_stop``, ``protect`` and ``start_protected`` are the same as in
      ``RowScanner``.
    - The other ``kwargs`` go to ``BatchGenerator``.

    Raises ``ImportError`` on mlx-lm before 0.32, whose batches do not ask a row whether it ends.

    >>> batch = batch_generate(model, tokenizer, prompts, stop=[["END"], ["6", "seven"]], max_tokens=500)
    >>> [finish.matched_stop for finish in batch.finishes]
    ['END', None]
    """
    require("batch_generate")
    tokenizer, options = wrapped(tokenizer), _row_options(kwargs)
    limits = [max_tokens] * len(prompts) if isinstance(max_tokens, int) else _each("max_tokens", max_tokens, prompts)
    rows = [
        RowScanner(tokenizer, row_stops, max_tokens=limit, prompt=prompt, **options)
        for row_stops, limit, prompt in zip(_stops(stop, patterns, prompts), limits, prompts, strict=True)
    ]
    answers = [_Answer(row) for row in rows]
    with closing(BatchGenerator(model, **kwargs)) as generator, generator.stats() as stats:
        uids = generator.insert(prompts, limits, caches=prompt_caches, stop_sequences=rows)
        answer_of = dict(zip(uids, answers, strict=True))
        while responses := generator.next_generated():
            for response in responses:
                answer_of[response.uid].add(response, return_logprobs)
    return BatchResponse(  # type: ignore[call-arg]
        texts=["".join(answer.texts) for answer in answers],
        stats=stats,
        caches=[answer.cache for answer in answers] if return_prompt_caches else None,
        token_ids=[answer.token_ids[: answer.length] for answer in answers] if return_token_ids else None,
        logprobs=[answer.logprobs[: answer.length] for answer in answers] if return_logprobs else None,
        finishes=[row.finish for row in rows if row.finish is not None],
    )


class _Answer:
    """One row of a batch, and what mlx-lm generated for it."""

    def __init__(self, row: RowScanner) -> None:
        self.row, self.cache = row, None
        self.texts: list[str] = []
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []

    def add(self, response: Any, with_logprobs: bool) -> None:
        self.texts.append(self.row.text(response))
        self.token_ids.append(response.token)
        if with_logprobs:
            self.logprobs.append(response.logprobs[response.token].item())
        self.cache = response.prompt_cache

    @property
    def length(self) -> int:
        """How many of ``token_ids`` to return. If the row ended at its limit: all of them. If it ended with an EOS: all
        but the EOS. Otherwise: all up to the last token with text in the output."""
        count, reason = len(self.token_ids), self.row.finish.reason if self.row.finish else "length"
        return {"length": count, "eos": count - 1}.get(reason, self.row.tokens_kept)


def _stops(stop: Any, patterns: str | Iterable[str], prompts: Sequence[Any]) -> list[StopSet]:
    """Returns the ``StopSet`` of each row. Stops for all rows are compiled once. ``stop`` and ``patterns`` may be
    iterators."""
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    entries = stop if isinstance(stop, StopSet | str | None) else list(stop)
    if isinstance(entries, list) and not all(isinstance(entry, str) for entry in entries):
        return [_stop_set(entry, patterns) for entry in _each("stop", entries, prompts)]
    return [_stop_set(entries, patterns)] * len(prompts)


def _each(name: str, values: Sequence[Any], prompts: Sequence[Any]) -> Sequence[Any]:
    if len(values) != len(prompts):
        raise ValueError(f"{name} has {len(values)} entries for {len(prompts)} prompts")
    return values


def _stop_set(stop: Stops, patterns: str | Iterable[str]) -> StopSet:
    return StopSet(stop, patterns=patterns) if patterns else StopSet(stop)


def _row_options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Removes the options of rows from ``kwargs``, and returns them. Makes a tuple of each iterator, because an
    iterator can be read only once."""
    options = {name: kwargs.pop(name) for name in ROW_OPTIONS if name in kwargs}
    return {name: tuple(value) if isinstance(value, Iterator) else value for name, value in options.items()}


class _NoText:
    """A detokenizer that makes no text, because the text of mlx-lm's loop is not used. mlx-lm's own detokenizer takes
    more time than the scanner, and before 0.32 it fails for a vocabulary in which two tokens have the same text."""

    last_segment = ""

    def add_token(self, token_id: int) -> None: ...

    def finalize(self) -> None: ...


class _Textless(TokenizerWrapper):
    detokenizer = _NoText()

    def __init__(self, tokenizer: TokenizerWrapper) -> None:
        self.__dict__.update(vars(tokenizer))


def _responses(
    source: Generator[Any, None, None], row: RowScanner | None, caches: list[Any]
) -> Generator[GenerationResponse, None, None]:
    """Yields the responses of mlx-lm's generator ``source``, with the text and the ``Finish`` of ``row``. If a stop
    ends the text, removes the tokens after the text from the prompt cache, ``caches``."""
    start = _size(caches[0]) if caches and can_trim_prompt_cache(caches) else 0
    with closing(source):
        for response in source:
            values = {name: getattr(response, name) for name in RESPONSE}
            finish = ENDS.get(response.finish_reason)
            kept = response.generation_tokens - (response.finish_reason == "stop")
            if row is not None:
                row.advance(response.token)
                values["text"], finish, kept = row.text(response), row.finish, row.tokens_kept
                values["match"] = row.match
            if finish is not None:
                # Close mlx-lm's loop before the last `yield`, because the caller may not ask for another response. Only
                # closing rewinds the cache of a draft model.
                source.close()
                reason = "length" if finish.reason == "length" else "stop"
                values |= {"finish_reason": reason, "finish": finish, "tokens_kept": kept}
                if finish.reason not in ("eos", "length") and can_trim_prompt_cache(caches):
                    for cache in caches:
                        cache.trim(max(0, _size(cache) - start - response.prompt_tokens - kept))
            yield GenerationResponse(**values)


def _size(cache: Any) -> int:
    """Returns how many tokens ``cache`` has. All caches in a ``CacheList`` have the same tokens, so one is counted."""
    size: int = cache.offset if hasattr(cache, "offset") else _size(cache[0])
    return size
