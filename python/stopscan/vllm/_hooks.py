"""Where stopscan stands in vLLM: in front of seven functions, and of whatever other plugins put there."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from copy import copy
from functools import wraps
from typing import Any

from vllm.parser import ParserManager
from vllm.sampling_params import SamplingParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.detokenizer import IncrementalDetokenizer
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.engine.output_processor import RequestState

from stopscan.vllm._adapter import Adapter, logger
from stopscan.vllm._detokenizer import ScanningDetokenizer

# The class and the name of each function, vLLM's own (or another plugin's) and ours.
_placed: list[tuple[type, str, Any, Any]] = []
_current: Adapter | None = None


def installed() -> bool:
    """Whether stopscan stands in this process."""
    return _current is not None


def apply(adapter: Adapter) -> None:
    """Puts stopscan in front of each function in which it does not stand yet, with what ``adapter`` says."""
    global _current
    missing = [wrapper for wrapper in WRAPPERS if not _stands(*wrapper[:2])]
    for owner, name, _ in missing:
        if name not in vars(owner):
            raise RuntimeError(f"{owner.__name__} has no {name}")
    for owner, name, wrapper in missing:
        _place(owner, name, wrapper)
    if _current is not None:
        adapter.succeed(_current)
    _current = adapter


def _stands(owner: type, name: str) -> bool:
    """Whether a wrapper of ours is to be seen there. Another plugin may hide it: to stand there twice does no harm."""
    found, ours = vars(owner).get(name), [entry[3] for entry in _placed if entry[:2] == (owner, name)]
    chain = [getattr(wrapper, "__func__", wrapper) for wrapper in ours]
    while found is not None:
        if found in ours or found in chain:
            return True
        found = getattr(getattr(found, "__func__", found), "__wrapped__", None)
    return False


def revert() -> None:
    """Takes stopscan out of vLLM; where another plugin stands in front of it, it stays and does nothing."""
    global _current
    _current = None
    for entry in reversed(_placed[:]):
        owner, name, original, ours = entry
        if vars(owner).get(name) is ours:
            setattr(owner, name, original)
            _placed.remove(entry)


# An engine core or a worker that is forked must have nothing of ours.
os.register_at_fork(after_in_child=revert)


def _scan_stops(adapter: Adapter, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    detokenizer = original(*args, **options)
    tokenizer, request = _argument(args, options, 1, "tokenizer"), _argument(args, options, 2, "request")
    if tokenizer is None:
        return detokenizer

    def remake(count: int) -> Any:
        """vLLM's detokenizer for the request, whose stops sleep for as many tokens."""
        later = copy(request)
        later.sampling_params = copy(request.sampling_params)
        later.sampling_params.min_tokens = max(count, later.sampling_params.min_tokens)
        return original(args[0], tokenizer, later)

    return adapter.scanning(detokenizer, tokenizer, request, remake)


def _check_made(adapter: Adapter, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    params = original(*args, **options)
    adapter.check(params)
    return params


def _check_asked(adapter: Adapter, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    params = _argument(args, options, 2, "sampling_params")
    if isinstance(params, SamplingParams):
        adapter.check(params, resumable=isinstance(_argument(args, options, 1, "prompt"), AsyncGenerator))
    return original(*args, **options)


def _check_used(adapter: Adapter, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    params = _argument(args, options, 3, "params")
    if isinstance(params, SamplingParams):
        adapter.check(params, resumable=bool(options.get("resumable")))
    return original(*args, **options)


def _report_end(adapter: Adapter, original: Callable[..., Any], state: Any, *args: Any, **options: Any) -> Any:
    finish_reason = _argument(args, options, 1, "finish_reason")
    detokenizer = state.detokenizer
    if finish_reason is None or not isinstance(detokenizer, ScanningDetokenizer):
        return original(state, *args, **options)
    detokenizer.end_confirms = str(finish_reason) not in ("abort", "error")
    output = original(state, *args, **options)
    detokenizer.report(output)
    return output


def _note_engine(adapter: Adapter, original: Callable[..., Any], processor: Any, *args: Any, **options: Any) -> None:
    original(processor, *args, **options)
    if processor.tokenizer is None:
        return
    try:
        config = _argument(args, options, 0, "vllm_config").structured_outputs_config
        reasoning_parser = config.reasoning_parser
    except Exception as error:
        problem = f"stopscan cannot read the reasoning parser of vLLM's configuration: {error!r}"
        if not adapter.optional:
            raise RuntimeError(problem) from error
        revert()
        logger.warning("running without stopscan: %s", problem)
    else:
        adapter.note_engine(reasoning_parser, processor.tokenizer)


def _note_tools(adapter: Adapter, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    parser = original(*args, **options)
    adapter.note_tools(_argument(args, options, 1, "tool_parser_name"))
    return parser


WRAPPERS: list[tuple[type, str, Callable[..., Any]]] = [
    (IncrementalDetokenizer, "from_new_request", _scan_stops),
    # A server makes its parameters here, before it answers: once a stream has begun, it is too late for a 400.
    (SamplingParams, "from_optional", _check_made),
    # The route for tokens takes them as they are; a stream of this function has not begun when it is called.
    (AsyncLLM, "generate", _check_asked),
    # And here the parameters come by that a program made by itself.
    (InputProcessor, "process_inputs", _check_used),
    # The end of a text may confirm a pattern, or be an error of ours, when vLLM has settled how the answer ended.
    (RequestState, "_new_completion_output", _report_end),
    # Here an engine's configuration and its tokenizer meet in the process that detokenizes,
    (InputProcessor, "__init__", _note_engine),
    # and here a server says which tool parser it has, which no configuration does.
    (ParserManager, "get_parser", _note_tools),
]


def _argument(args: tuple[Any, ...], options: dict[str, Any], place: int, name: str) -> Any:
    return options[name] if name in options else args[place] if place < len(args) else None


def _place(owner: type, name: str, wrapper: Callable[..., Any]) -> None:
    original = vars(owner)[name]
    function = getattr(original, "__func__", original)

    @wraps(function)
    def replacement(*args: Any, **options: Any) -> Any:
        if _current is None:
            return function(*args, **options)
        return wrapper(_current, function, *args, **options)

    ours = replacement if function is original else type(original)(replacement)
    setattr(owner, name, ours)
    _placed.append((owner, name, original, ours))
