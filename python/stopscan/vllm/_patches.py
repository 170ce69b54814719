"""Where stopscan stands in vLLM: in front of four functions, and of whatever other plugins put there."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from vllm.parser import ParserManager
from vllm.sampling_params import SamplingParams
from vllm.v1.engine.detokenizer import IncrementalDetokenizer
from vllm.v1.engine.input_processor import InputProcessor

from stopscan.vllm._installation import Installation

# The class and the name of each function, vLLM's own (or another plugin's) and ours.
_placed: list[tuple[type, str, Any, Any]] = []
_current: Installation | None = None


def apply(installation: Installation) -> None:
    global _current
    _current = installation
    # Another plugin may have put back what it found before us.
    _placed[:] = [entry for entry in _placed if vars(entry[0])[entry[1]] is not entry[2]]
    placed = {entry[:2] for entry in _placed}
    for owner, name, wrapper in WRAPPERS:
        if (owner, name) not in placed:
            _place(owner, name, wrapper)


def revert() -> None:
    """Takes stopscan out of vLLM; where another plugin stands in front of it, it stays and does nothing."""
    global _current
    _current = None
    for entry in list(_placed):
        owner, name, original, ours = entry
        if vars(owner)[name] is ours:
            setattr(owner, name, original)
            _placed.remove(entry)


def _scan_stops(current: Installation, original: Callable[..., Any], cls: type, tokenizer: Any, request: Any) -> Any:
    detokenizer = original(cls, tokenizer, request)
    return detokenizer if tokenizer is None else current.scanning(detokenizer, tokenizer, request)


def _check_params(current: Installation, original: Callable[..., Any], params: Any) -> None:
    original(params)
    current.check(params)


def _note_engine(
    current: Installation, original: Callable[..., Any], processor: Any, *args: Any, **options: Any
) -> None:
    original(processor, *args, **options)
    if processor.tokenizer is not None:
        config = args[0] if args else options["vllm_config"]
        current.note_engine(config.structured_outputs_config.reasoning_parser, processor.tokenizer)


def _note_tools(
    current: Installation,
    original: Callable[..., Any],
    cls: type,
    tool_parser_name: Any = None,
    *args: Any,
    **options: Any,
) -> Any:
    parser = original(cls, tool_parser_name, *args, **options)
    current.note_tools(tool_parser_name)
    return parser


WRAPPERS: list[tuple[type, str, Callable[..., Any]]] = [
    (IncrementalDetokenizer, "from_new_request", _scan_stops),
    # All parameters come by here before a server answers: once a stream has begun, it is too late for a 400.
    (SamplingParams, "_verify_args", _check_params),
    # Here an engine's configuration and its tokenizer meet in the process that detokenizes,
    (InputProcessor, "__init__", _note_engine),
    # and here a server says which tool parser it has, which no configuration does.
    (ParserManager, "get_parser", _note_tools),
]


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
