"""Where stopscan stands in vLLM."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from stopscan import Repeat
from stopscan.engines import Defaults, switch
from stopscan.vllm import _requests as requests
from stopscan.vllm._detokenizer import logger

_placed: list[tuple[type, str, Any]] = []


def install(*, protect: Any = None, repeat: Repeat | None = None) -> None:
    """Puts stopscan into the detokenizer of the requests that vLLM gets from now on in this process. Text, token ids,
    finish and stop reasons stay vLLM's. ``protect`` and ``repeat`` are for requests that say nothing.

    Raises ``RuntimeError``, with vLLM unchanged, if vLLM's texts with stopscan are not what they must be.
    """
    given = {"protect": protect, "repeat": None if repeat is None else [repeat.count, repeat.max_period, repeat.min_length]}
    asked = requests.read_options({name: value for name, value in given.items() if value is not None})
    _install(Defaults(asked.protect, asked.stops.repeat))


def install_as_asked() -> None:
    """Installs with what the environment says, before the first engine of a process."""
    asked = switch("STOPSCAN_VLLM")
    if asked == "0":
        return
    defaults = Defaults.from_environment("STOPSCAN_VLLM")
    try:
        _install(defaults)
    except RuntimeError as error:
        if asked == "1":
            raise
        logger.warning("running without stopscan: %s", error)


def _install(defaults: Defaults) -> None:
    if not _placed:
        from stopscan.vllm import _selftest

        try:
            wrong = _selftest.problems(_place_all, uninstall)
        except Exception as error:
            wrong = [repr(error)]
        if wrong:
            raise RuntimeError(f"stopscan does not fit this vLLM: {'; '.join(wrong[:3])}; run it without stopscan")
        _place_all()
    requests.defaults = defaults


def uninstall() -> None:
    """Gives vLLM its own detokenizer back. Requests that are under way end as they began."""
    while _placed:
        owner, name, original = _placed.pop()
        setattr(owner, name, original)


# An engine core or a worker that is forked must have nothing of ours.
os.register_at_fork(after_in_child=uninstall)


def _place(owner: type, name: str, wrapper: Callable[..., Any]) -> None:
    """Puts ``wrapper(original, *args)`` in the place of a function or class method."""
    original = vars(owner)[name]
    function = getattr(original, "__func__", original)

    @wraps(function)
    def ours(*args: Any, **options: Any) -> Any:
        return wrapper(function, *args, **options)

    setattr(owner, name, ours if function is original else type(original)(ours))
    _placed.append((owner, name, original))


def _place_all() -> None:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.parser import ParserManager
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.engine.input_processor import InputProcessor
    from vllm.v1.engine.output_processor import OutputProcessor, RequestState

    trims = hasattr(OutputProcessor, "_trim_surplus_tokens")

    def new_request(original: Any, cls: Any, tokenizer: Any, request: Any, *args: Any, **options: Any) -> Any:
        """A request's own detokenizer is made here."""
        state = original(cls, tokenizer, request, *args, **options)
        params = request.sampling_params
        if params is None or tokenizer is None or not params.detokenize:
            return state
        # Where vLLM has the request's stops, it also knows how the answer ends.
        if requests.take(state, tokenizer, request, trims=trims) and state.detokenizer.beyond:
            made, detokenizer = state._new_completion_output, state.detokenizer

            def last_output(token_ids: Any, finish_reason: Any, *rest: Any, **more: Any) -> Any:
                detokenizer.end_confirms = str(finish_reason) not in ("abort", "error")
                output = made(token_ids, finish_reason, *rest, **more)
                if finish_reason is not None:
                    detokenizer.report(output)
                return output

            state._new_completion_output = last_output
        return state

    def params_made(original: Any, *args: Any, **options: Any) -> Any:
        """A server makes its parameters here, before it answers: once a stream has begun, it is too late for a 400."""
        params = original(*args, **options)
        requests.asked_by(params)
        return params

    def generate(original: Any, self: Any, prompt: Any, sampling_params: Any, *args: Any, **options: Any) -> Any:
        """The route for tokens takes its parameters as they are; a stream has not begun when this is called."""
        if isinstance(sampling_params, SamplingParams):
            requests.asked_by(sampling_params)
        return original(self, prompt, sampling_params, *args, **options)

    def to_params(original: Any, self: Any, *args: Any, **options: Any) -> Any:
        """A chat's request knows whether its reasoning and its calls are told from its content."""
        params = original(self, *args, **options)
        if requests.engines and (params.stop or params.extra_args or requests.defaults.repeat):
            told = [*requests.engines.values()][-1].told(self)
            params.extra_args = {**(params.extra_args or {}), requests.TOLD: told}
        return params

    def engine_made(original: Any, self: Any, vllm_config: Any, *args: Any, **options: Any) -> None:
        original(self, vllm_config, *args, **options)
        if self.tokenizer is not None:
            parser = vllm_config.structured_outputs_config.reasoning_parser
            engine = requests.engines[id(self.tokenizer)] = requests.Engine(self.tokenizer, parser or "")
            regions = ", ".join(f"{state}: {' '.join(to)}" for state, to in engine.checkpoint.graph.items())
            logger.info("stopscan finds the stops; regions: %s", regions or "none")
            engine.vocabulary  # noqa: B018 - it takes a moment, which no request is to wait for

    def get_parser(original: Any, cls: Any, tool_parser_name: Any = None, *args: Any, **options: Any) -> Any:
        """A server says here which tool parser it has, which no configuration does."""
        parser = original(cls, tool_parser_name, *args, **options)
        requests.tool_parser = tool_parser_name if getattr(parser, "tool_parser_cls", None) else None
        for engine in requests.engines.values():
            engine.join()
        return parser

    _place(RequestState, "from_new_request", new_request)
    _place(SamplingParams, "from_optional", params_made)
    _place(AsyncLLM, "generate", generate)
    _place(ChatCompletionRequest, "to_sampling_params", to_params)
    _place(ResponsesRequest, "to_sampling_params", to_params)
    _place(InputProcessor, "__init__", engine_made)
    _place(ParserManager, "get_parser", get_parser)
