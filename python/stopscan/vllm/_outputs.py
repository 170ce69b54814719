from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from copy import copy
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from stopscan._engine.environment import Settings
from stopscan._engine.options import without_options
from stopscan.vllm._detokenizer import ScanningDetokenizer

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.outputs import CompletionOutput, RequestOutput
    from vllm.v1.engine.async_llm import AsyncLLM

    from stopscan.vllm._adapter import Adapter

_engines: WeakSet[Any] = WeakSet()


async def scan_outputs(
    engine: AsyncLLM, prompt: Any, sampling_params: SamplingParams, request_id: str, **options: Any
) -> AsyncGenerator[RequestOutput, None]:
    """Returns an async iterator of the outputs of ``engine.generate`` with these arguments. stopscan finds the stop
    strings, not vLLM.

    Nothing is installed: the engine does not get the stops. When each of the ``n`` answers has ended, the request is
    aborted. ``extra_args`` may have the options of stopscan. Each token is decoded a second time.

    Raises ``RuntimeError`` if vLLM lacks the parts that stopscan needs, and vLLM's validation error for malformed
    options.

    >>> params = SamplingParams(stop=["END"], output_kind=RequestOutputKind.DELTA)
    >>> async for output in scan_outputs(engine, "Once upon", params, "request-1"):
    ...     print(output.outputs[0].text, end="")
    """
    from vllm.sampling_params import RequestOutputKind

    adapter = _adapter_of(engine)
    adapter.check(sampling_params)
    kind = sampling_params.output_kind
    params = sampling_params.clone()
    params.stop = []
    params.extra_args = without_options(params.extra_args)
    params.output_kind = RequestOutputKind.DELTA
    total: RequestOutput | None = None
    async with aclosing(engine.generate(prompt, params, request_id, **options)) as source:
        async for output in _cut(source, engine, adapter, sampling_params):
            if kind is RequestOutputKind.DELTA:
                yield output
                continue
            if total is None:
                total = output
            else:
                total.add(output, aggregate=True)
            if kind is RequestOutputKind.CUMULATIVE or output.finished:
                yield _snapshot(total)


async def _cut(
    source: AsyncGenerator[RequestOutput, None], engine: AsyncLLM, adapter: Adapter, params: SamplingParams
) -> AsyncGenerator[RequestOutput, None]:
    """The outputs, which are deltas, as far as the stops let them come; the source is closed with the last answer."""
    detokenizers: dict[int, Any] = {}
    running = set(range(params.n))
    async for output in source:
        output.outputs = [completion for completion in output.outputs if completion.index in running]
        for completion in output.outputs:
            if completion.index not in detokenizers:
                detokenizers[completion.index] = _detokenizer(engine, adapter, params, output)
            _scan(detokenizers[completion.index], completion)
            if completion.finish_reason is not None:
                running.remove(completion.index)
        output.finished = not running
        if output.finished:
            # Before the last output is handed on: its reader need not come back for more.
            await source.aclose()
        if output.outputs:
            yield output


@cache
def _adapter() -> Adapter:
    """An adapter that no server's defaults concern. Raises ``RuntimeError`` where stopscan does not fit."""
    from stopscan.vllm._install import adapter

    return adapter(Settings(protect=()))


def _adapter_of(engine: AsyncLLM) -> Adapter:
    adapter = _adapter()
    if engine not in _engines and (tokenizer := engine.input_processor.tokenizer) is not None:
        adapter.note_engine(engine.vllm_config.structured_outputs_config.reasoning_parser, tokenizer)
        _engines.add(engine)
    return adapter


def _detokenizer(engine: AsyncLLM, adapter: Adapter, params: SamplingParams, output: RequestOutput) -> Any:
    from vllm.v1.engine.detokenizer import IncrementalDetokenizer

    def made(sampling_params: SamplingParams) -> Any:
        request: Any = SimpleNamespace(
            request_id=output.request_id,
            sampling_params=sampling_params,
            prompt_token_ids=output.prompt_token_ids,
            prompt_embeds=None,
            reasoning_parser_kwargs=None,
        )
        return IncrementalDetokenizer.from_new_request(tokenizer, request), request

    def remake(count: int) -> Any:
        later = copy(params)
        later.min_tokens = max(count, params.min_tokens)
        return made(later)[0]

    tokenizer = engine.get_tokenizer() if params.detokenize else None
    detokenizer, request = made(params)
    return detokenizer if tokenizer is None else adapter.scanning(detokenizer, tokenizer, request, remake)


def _scan(detokenizer: Any, completion: CompletionOutput) -> None:
    """Puts the safe text into a delta; at a stop, its reason too, and the tokens behind it are cut off."""
    before = detokenizer.num_output_tokens()
    stop = detokenizer.update(list(completion.token_ids), completion.finish_reason == "stop")
    if stop is not None:
        completion.finish_reason, completion.stop_reason = "stop", stop
        _trim(completion, detokenizer.num_output_tokens() - before)
    ended = completion.finish_reason is not None
    if isinstance(detokenizer, ScanningDetokenizer):
        detokenizer.end_confirms = completion.finish_reason not in ("abort", "error")
    completion.text = detokenizer.get_next_output_text(ended, True)
    if ended and isinstance(detokenizer, ScanningDetokenizer):
        detokenizer.report(completion)


def _trim(completion: CompletionOutput, kept: int) -> None:
    dropped = completion.token_ids[kept:]
    completion.token_ids = completion.token_ids[:kept]
    if dropped and completion.logprobs:
        lost = zip(completion.logprobs[kept:], dropped, strict=True)
        completion.cumulative_logprob -= sum(position[token_id].logprob for position, token_id in lost)
        completion.logprobs = completion.logprobs[:kept]


def _snapshot(total: RequestOutput) -> RequestOutput:
    """All answers so far, as objects that later deltas do not change."""
    output = copy(total)
    output.outputs = [_copy(completion) for completion in sorted(total.outputs, key=lambda answer: answer.index)]
    return output


def _copy(completion: CompletionOutput) -> CompletionOutput:
    copied = copy(completion)
    # vLLM adds a delta to these in place.
    copied.token_ids = list(completion.token_ids)
    copied.logprobs = completion.logprobs and completion.logprobs[:]
    return copied
