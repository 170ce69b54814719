"""What the adapter holds on to in vLLM: it works on every release that has all of it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from operator import attrgetter
from types import ModuleType

# By module: classes and functions, with the attributes or parameters that they must have.
PARTS = {
    "vllm.v1.engine.detokenizer": {
        "IncrementalDetokenizer.from_new_request": ["tokenizer", "request"],
        "BaseIncrementalDetokenizer": ["decode_next", "output_token_ids", "num_output_tokens"],
        "BaseIncrementalDetokenizer.update": ["new_token_ids", "stop_terminated"],
        "BaseIncrementalDetokenizer.get_next_output_text": ["finished", "delta"],
        "FastIncrementalDetokenizer": ["decode_next"],
    },
    "vllm.v1.engine.output_processor": {"OutputProcessor": ["process_outputs"]},
    "vllm.v1.engine.input_processor": {"InputProcessor": ["tokenizer"]},
    "vllm.parser": {"ParserManager": ["get_parser"]},
    "vllm.v1.engine": {"EngineCoreRequest": ["sampling_params", "prompt_token_ids", "reasoning_parser_kwargs"]},
    "vllm.sampling_params": {
        "SamplingParams": ["_verify_args", "stop", "extra_args", "include_stop_str_in_output", "min_tokens"],
    },
    "vllm.reasoning": {
        "ReasoningParser": [
            "reasoning_start_str",
            "reasoning_end_str",
            "is_reasoning_end",
            "adjust_initial_state_from_prompt",
            "extract_reasoning_streaming",
        ],
        "ReasoningParserManager": ["get_reasoning_parser"],
    },
    "vllm.exceptions": {"VLLMValidationError": ["parameter"]},
}


def require(parts: dict[str, dict[str, list[str]]] = PARTS) -> None:
    """Raises ``RuntimeError`` that names the part, unless this vLLM has all ``parts``."""
    for module, owners in parts.items():
        for owner, names in owners.items():
            for name in names:
                if name not in _names(module, owner):
                    raise RuntimeError(f"stopscan.vllm does not support vLLM {_version()}: no {module}.{owner}: {name}")


@cache
def trims_token_ids() -> bool:
    """Whether this vLLM drops the tokens behind a stop, where one step brings several: since 0.32."""
    return "_trim_surplus_tokens" in _names("vllm.v1.engine.output_processor", "OutputProcessor")


def _names(module: str, owner: str) -> set[str]:
    try:
        found = attrgetter(owner)(import_module(module))
    except (ImportError, AttributeError):
        return set()
    return {*dir(found), *_parameters(found)}


def _parameters(found: object) -> dict[str, Parameter]:
    try:
        return dict(signature(found).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return {}


def _version() -> str:
    vllm: ModuleType = import_module("vllm")
    return str(vllm.__version__)
