"""mlx-lm's single loop with exact stops."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlx_lm.generate import stream_generate as mlx_stream_generate
from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopMatch, StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm._row import RowScanner, Stops, wrapped

if TYPE_CHECKING:
    from stopscan.engines.untyped import Untyped as MlxResponse
else:
    from mlx_lm.generate import GenerationResponse as MlxResponse

ENDS = {"stop": Finish("eos"), "length": Finish("length")}
OF_ROWS = ("stop_token_ids", "min_tokens", "include_stop", "protect", "start_protected")


@dataclass
class GenerationResponse(MlxResponse):
    """mlx-lm's response with safe text in ``text``. The last response has a ``finish`` and, if a stop string fired, a
    ``match``.

    ``finish_reason`` is mlx-lm's word: "length", or "stop" for any other end.
    """

    finish: Finish | None = None
    match: StopMatch | None = None


def stream_generate(
    model: Any, tokenizer: Any, prompt: Any, *, stop: Stops = (), patterns: str | Iterable[str] = (), **kwargs: Any
) -> Generator[GenerationResponse, None, None]:
    """Returns an iterator of the responses of ``mlx_lm.stream_generate``, up to the stop. There is a response for each
    token, so ``text`` is often ``""``.

    - ``stop`` and ``patterns`` are those of ``StopSet``. A ``StopSet`` may have a ``repeat``.
    - ``stop_token_ids``, ``min_tokens``, ``include_stop``, ``protect`` and ``start_protected`` are those of
      ``RowScanner``. Wrong values raise at once.
    - Without a stop, ``text`` is mlx-lm's. With a stop, ``text`` is the text of ``tokenizer.decode``, because mlx-lm's
      own text drops a leading space.
    - The other ``kwargs`` are mlx-lm's, such as ``max_tokens`` and ``draft_model``.

    >>> for response in stream_generate(model, tokenizer, prompt, stop=["END"], max_tokens=500):
    ...     print(response.text, end="", flush=True)
    >>> response.match
    StopMatch("END", 26)
    """
    tokenizer, stops, options = wrapped(tokenizer), stop_set(stop, patterns), taken(kwargs)
    if len(stops) == 0 and not options.get("stop_token_ids"):
        return _responses(mlx_stream_generate(model, tokenizer, prompt, **kwargs), None)
    limit = kwargs.get("max_tokens")
    row = RowScanner(tokenizer, stops, max_tokens=None if limit == -1 else limit, prompt=prompt, **options)
    return _responses(mlx_stream_generate(model, _without_text(tokenizer), prompt, **kwargs), row)


def generate(model: Any, tokenizer: Any, prompt: Any, verbose: bool = False, **kwargs: Any) -> str:
    """Returns the text of ``stream_generate`` with these arguments.

    ``verbose`` prints the text as it comes, and then the speed.

    >>> generate(model, tokenizer, "Once upon a time", stop="END")
    ' there was a'
    """
    texts = []
    for response in stream_generate(model, tokenizer, prompt, **kwargs):
        texts.append(response.text)
        if verbose:
            print(response.text, end="", flush=True)
    if verbose and texts:
        print()
        print_speed(response)
    return "".join(texts)


def print_speed(stats: Any) -> None:
    """Prints the counts of a response of mlx-lm, or of a batch's statistics."""
    print(f"Prompt: {stats.prompt_tokens} tokens, {stats.prompt_tps:.3f} tokens-per-sec")
    print(f"Generation: {stats.generation_tokens} tokens, {stats.generation_tps:.3f} tokens-per-sec")
    print(f"Peak memory: {stats.peak_memory:.3f} GB")


def stop_set(stop: Stops, patterns: str | Iterable[str]) -> StopSet:
    return StopSet(stop, patterns=patterns) if patterns else StopSet(stop)


def taken(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options of rows, taken out of ``kwargs``. What can be read once, such as a generator, is read here."""
    options = {name: kwargs.pop(name) for name in OF_ROWS if name in kwargs}
    for name in ("stop_token_ids", "protect"):
        if isinstance(options.get(name), Iterable) and not isinstance(options[name], str):
            options[name] = tuple(each for each in options[name] if each is not None)
    return options


class _NoText:
    """A detokenizer for a loop whose text nobody reads. mlx-lm's own costs more than the scanner, and before 0.32 it
    cannot be made for a vocabulary in which texts repeat."""

    last_segment = ""

    def add_token(self, token_id: int) -> None: ...

    def finalize(self) -> None: ...


class _Textless(TokenizerWrapper):
    detokenizer = _NoText()


def _without_text(tokenizer: TokenizerWrapper) -> TokenizerWrapper:
    textless = object.__new__(_Textless)
    textless.__dict__.update(tokenizer.__dict__)
    return textless


def _responses(source: Generator[Any, None, None], row: RowScanner | None) -> Generator[GenerationResponse, None, None]:
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
