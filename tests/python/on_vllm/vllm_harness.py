"""Feeds tokens into vLLM's own output processor, step by step, and collects the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.parser import ParserManager
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector, RequestState

from stopscan.vllm._selftest import Slow as SlowTokenizer
from stopscan.vllm._selftest import logprobs

__all__ = ["ANSWER", "THINK", "Run", "SlowTokenizer", "checked", "made", "patched", "run", "text"]

# The functions of vLLM that stopscan wraps.
FUNCTIONS = [
    (RequestState, "from_new_request"),
    (ChatCompletionRequest, "to_sampling_params"),
    (ResponsesRequest, "to_sampling_params"),
    (ChatCompletionRequest, "to_beam_search_params"),
    (CompletionRequest, "to_beam_search_params"),
    (AsyncLLM, "generate"),
    (InputProcessor, "__init__"),
    (ParserManager, "get_parser"),
]

THINK = ["<think>", "</think>"]
# The text that a client gets of the script "think" if END is the stop and no stop fires in the reasoning. So the END in
# the reasoning is part of the text, and the next END, which fires, is not.
ANSWER = "<think>Is it END?</think>It is 5 or 6 "


@dataclass
class Run:
    texts: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)
    cumulative_logprob: float | None = None
    finish_reason: str | None = None
    stop_reason: Any = None
    aborted: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def run(
    tokenizer: Any,
    steps: Sequence[Sequence[int]],
    params: SamplingParams,
    *,
    finish: FinishReason | None = None,
    stop_reason: int | None = None,
    prompt: Sequence[int] | None = (),
    parser_options: dict[str, Any] | None = None,
    by_server: bool = True,
) -> Run:
    """Feeds token ids to vLLM's output processor, step by step, and returns the outputs. The last step has the finish
    reason ``finish``. If the request has not ended then, it is aborted.

    With ``prompt=None``, the prompt has embeddings instead of token ids. With ``by_server=False``, the request comes
    from a program that calls vLLM itself, not from a server.
    """
    result = Run()
    processor = OutputProcessor(tokenizer, log_stats=False)
    queue = RequestOutputCollector(params.output_kind, "r") if by_server else None
    processor.add_request(made(params, prompt, parser_options), None, queue=queue)
    for number, step in enumerate(steps, 1):
        last = number == len(steps)
        output = EngineCoreOutput(
            request_id="r",
            new_token_ids=list(step),
            new_logprobs=logprobs(step) if params.logprobs is not None else None,
            finish_reason=finish if last else None,
            stop_reason=stop_reason if last else None,
        )
        done = processor.process_outputs([output])
        result.aborted += done.reqs_to_abort
        for come in [queue.get_nowait()] if queue else done.request_outputs:
            _take(result, come, params)
        if result.finish_reason is not None:
            return result
    processor.abort_requests(["r"], internal=True)
    if queue:
        _take(result, queue.get_nowait(), params)
    return result


def _take(result: Run, output: Any, params: SamplingParams) -> None:
    if output is None:
        return
    (completion,) = output.outputs
    if params.output_kind is RequestOutputKind.DELTA:
        result.texts.append(completion.text)
        result.token_ids += completion.token_ids
        result.logprobs += completion.logprobs or []
    else:
        result.texts.append(completion.text[len(result.text) :])
        assert result.text == completion.text
        result.token_ids = list(completion.token_ids)
        result.logprobs = list(completion.logprobs or [])
    result.cumulative_logprob = completion.cumulative_logprob
    result.finish_reason = completion.finish_reason
    result.stop_reason = completion.stop_reason


def made(
    params: SamplingParams, prompt: Sequence[int] | None, parser_options: dict[str, Any] | None
) -> EngineCoreRequest:
    """The request as an engine core gets it."""
    return EngineCoreRequest(
        request_id="r",
        external_req_id="r",
        prompt_token_ids=None if prompt is None else list(prompt),
        prompt_embeds=torch.zeros(1, 8) if prompt is None else None,
        mm_features=None,
        sampling_params=params,
        pooling_params=None,
        arrival_time=0.0,
        lora_request=None,
        cache_salt=None,
        data_parallel_rank=None,
        reasoning_parser_kwargs=parser_options,
    )


def text(tokenizer: Any, reciter: Any, script: str, *, prompt: str = "", **params: Any) -> tuple[str, Any]:
    """The text and the stop reason that a client gets if the model writes the given script."""
    steps = [[token] for token in [*reciter.token_ids(script), reciter.eos_token_id]]
    params.setdefault("output_kind", RequestOutputKind.DELTA)
    prompt_ids = tokenizer.encode(prompt, add_special_tokens=False)
    result = run(tokenizer, steps, SamplingParams(**params), finish=FinishReason.STOP, prompt=prompt_ids)
    return result.text, result.stop_reason


def checked(**params: Any) -> SamplingParams:
    """Makes parameters as a server does, and passes them to ``generate``, where stopscan checks them."""
    made = SamplingParams.from_optional(**params)
    AsyncLLM.generate(None, "", made, "r")
    return made


def patched() -> list[Any]:
    """The functions of vLLM that stopscan wraps, as they are now: wrapped or not."""
    return [vars(owner).get(name) for owner, name in FUNCTIONS]
