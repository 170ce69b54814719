from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal
from weakref import WeakKeyDictionary

from vllm.sampling_params import SamplingParams
from vllm.v1.engine.detokenizer import IncrementalDetokenizer
from vllm.v1.engine.input_processor import InputProcessor

from stopscan.vllm._detokenizer import scanning
from stopscan.vllm._options import Pairs, check
from stopscan.vllm._regions import reasoning_markers

_originals: list[tuple[type, str, Any]] = []


def apply(protect: Pairs | Literal["reasoning"]) -> None:
    revert()
    markers: WeakKeyDictionary[Any, Pairs] = WeakKeyDictionary()
    default = () if protect == "reasoning" else protect

    def scan_stops(original: Callable[..., Any], cls: type, tokenizer: Any, request: Any) -> Any:
        detokenizer = original(cls, tokenizer, request)
        if tokenizer is None:
            return detokenizer
        return scanning(detokenizer, tokenizer, request, markers.get(tokenizer, default))

    def check_params(original: Callable[..., Any], *args: Any, **options: Any) -> Any:
        params = original(*args, **options)
        check(params, protect)
        return params

    def note_markers(original: Callable[..., Any], processor: Any, config: Any, *args: Any, **options: Any) -> None:
        original(processor, config, *args, **options)
        if protect == "reasoning" and processor.tokenizer is not None:
            markers[processor.tokenizer] = reasoning_markers(config, processor.tokenizer)

    _wrap(IncrementalDetokenizer, "from_new_request", scan_stops)
    # Servers make the parameters here, before they answer: once a stream has begun, it is too late for a 400.
    _wrap(SamplingParams, "from_optional", check_params)
    # Here an engine's configuration and its tokenizer meet in the process that detokenizes.
    _wrap(InputProcessor, "__init__", note_markers)


def revert() -> None:
    while _originals:
        setattr(*_originals.pop())


def _wrap(owner: type, name: str, wrapper: Callable[..., Any]) -> None:
    original = vars(owner)[name]
    function = getattr(original, "__func__", original)

    @wraps(function)
    def replacement(*args: Any, **options: Any) -> Any:
        return wrapper(function, *args, **options)

    _originals.append((owner, name, original))
    setattr(owner, name, replacement if function is original else type(original)(replacement))
