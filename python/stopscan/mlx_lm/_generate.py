from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from mlx_lm.generate import GenerationResponse as MlxResponse
from mlx_lm.generate import stream_generate as mlx_stream_generate

from stopscan import StopMatch, StopSet
from stopscan._protect import Protect
from stopscan.finish import Finish
from stopscan.mlx_lm._row import RowScanner, wrapped

ENDS = {None: None, "stop": Finish("eos"), "length": Finish("length")}


@dataclass
class GenerationResponse(MlxResponse):
    """mlx-lm's response with safe text in ``text``; the last one has a ``finish`` and, if a stop ended it, a ``match``.

    ``finish_reason`` is mlx-lm's: "length", else "stop".
    """

    finish: Finish | None = None

    @property
    def match(self) -> StopMatch | None:
        return None if self.finish is None else self.finish.match


def stream_generate(
    model: Any,
    tokenizer: Any,
    prompt: Any,
    *,
    stop: StopSet | str | Iterable[str] | None = (),
    stop_token_ids: Iterable[int] = (),
    min_tokens: int = 0,
    include_stop: bool = False,
    protect: Protect = (),
    start_protected: bool | None = None,
    **kwargs: Any,
) -> Generator[GenerationResponse, None, None]:
    """The responses of ``mlx_lm.stream_generate``, to the stop; one a token, so that ``text`` is often ``""``.

    Without ``stop`` and ``stop_token_ids``, ``text`` is untouched. With them it is what ``tokenizer.decode`` makes of
    the tokens; mlx-lm's own drops a leading space. The options are those of ``RowScanner``, and bad ones raise at once.
    ``kwargs`` are mlx-lm's, ``max_tokens`` and ``draft_model`` among them.

    >>> for response in stream_generate(model, tokenizer, prompt, stop=["END"], max_tokens=500):
    ...     print(response.text, end="", flush=True)
    >>> response.match
    StopMatch("END", 26)
    """
    tokenizer, stops, ids = wrapped(tokenizer), StopSet(stop), tuple(stop_token_ids)
    source = mlx_stream_generate(model, tokenizer, prompt, **kwargs)
    if not len(stops) and not ids:
        return _responses(source, None)
    limit = kwargs.get("max_tokens")
    scanner = RowScanner(
        tokenizer,
        stops,
        stop_token_ids=ids,
        min_tokens=min_tokens,
        max_tokens=None if limit is None or limit < 0 else limit,
        include_stop=include_stop,
        protect=protect,
        start_protected=start_protected,
        prompt=prompt,
    )
    return _responses(source, scanner)


def generate(model: Any, tokenizer: Any, prompt: Any, verbose: bool = False, **kwargs: Any) -> str:
    """The text of ``stream_generate`` with these arguments; with ``verbose`` it is printed as it comes, then the speed.

    >>> generate(model, tokenizer, "Once upon a time", stop="END")
    ' there was a'
    """
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


def _responses(
    source: Generator[Any, None, None], scanner: RowScanner | None
) -> Generator[GenerationResponse, None, None]:
    with closing(source):
        for response in source:
            if scanner is None:
                text, finish = response.text, ENDS[response.finish_reason]
            else:
                scanner.advance(response.token)
                text, finish = scanner.text(response), scanner.finish
            if finish is not None:
                # Before the last response is handed on: its reader need not come back for more, and a draft model's
                # cache is rewound only now.
                source.close()
                reason = "length" if finish.reason == "length" else "stop"
                response.finish_reason = reason
            response.text = text
            yield GenerationResponse(**vars(response), finish=finish)
