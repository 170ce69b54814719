"""Hooks stopscan into vLLM: ``install`` wraps functions of vLLM, even if other plugins have wrapped them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pkgutil import resolve_name
from typing import Any

import vllm
from vllm.exceptions import VLLMValidationError

from stopscan import Repeat
from stopscan.engines import Defaults, read_options, switch
from stopscan.vllm._adapter import PREFIX, SET_APART, Adapter, UnfitError, logger

WAY_OUT = "use a vLLM with which stopscan was tested, or run vLLM without stopscan (STOPSCAN_VLLM=optional)"

OPENAI = "entrypoints.openai."
# Each entry has three parts: a class, by its path in `vllm`; the name of the function to wrap; and the method of
# `Adapter` that runs after the function.
HOOKS: list[tuple[str, str, Callable[..., None]]] = [
    ("v1.engine.output_processor:RequestState", "from_new_request", Adapter.request_made),
    (f"{OPENAI}chat_completion.protocol:ChatCompletionRequest", "to_sampling_params", Adapter.params_made),
    (f"{OPENAI}responses.protocol:ResponsesRequest", "to_sampling_params", Adapter.params_made),
    (f"{OPENAI}chat_completion.protocol:ChatCompletionRequest", "to_beam_search_params", Adapter.beam_params_made),
    (f"{OPENAI}completion.protocol:CompletionRequest", "to_beam_search_params", Adapter.beam_params_made),
    ("v1.engine.async_llm:AsyncLLM", "generate", Adapter.generate_called),
    ("v1.engine.input_processor:InputProcessor", "__init__", Adapter.engine_made),
    ("parser:ParserManager", "get_parser", Adapter.parser_made),
]

# The hooks in place: the class, the name, the function that is wrapped (vLLM's or another plugin's), and stopscan's
# wrapper.
_placed: list[tuple[type, str, Any, Any]] = []
_adapter = Adapter(Defaults())
# The adapter that the hooks call; `None` while stopscan is not installed.
_current: Adapter | None = None


def install(*, protect: Any = None, repeat: Repeat | None = None) -> None:
    """Makes vLLM find the stops of all new requests in this process with stopscan. Returns nothing.

    Text, token ids, finish and stop reasons are as in vLLM. If several stops complete at the same character, the first
    in the request's list is reported, as in vLLM. Text comes as soon as it cannot be the beginning of a stop.

    - ``protect`` is a list of the regions in which no stop except a loop fires, for requests without
      ``stopscan_protect``. A region is given by its pair of markers, or by its name: ``"reasoning"`` or
      ``"tool_call"``. Without ``protect``, a chat route protects the reasoning and the calls that it separates from the
      content, but in the offline ``LLM.chat`` stops fire everywhere.
    - ``repeat`` ends answers that loop, for requests without ``stopscan_repeat``.

    Another call replaces ``protect`` and ``repeat``, and forgets earlier failures.

    Raises ``RuntimeError`` and leaves vLLM unchanged if, in the self-test, vLLM's outputs with stopscan are wrong.

    >>> install(protect=["reasoning", ("<scratch>", "</scratch>")])
    """
    given = None if protect is None else {"protect": list(protect) if isinstance(protect, tuple) else protect}
    _install(Defaults(read_options(given).protect, repeat), optional=False)


def uninstall() -> None:
    """Removes stopscan from vLLM. vLLM itself then finds the stops of new requests. Running requests keep stopscan.
    Returns nothing."""
    global _current
    _current = None
    for entry in reversed(_placed[:]):
        owner, name, original, ours = entry
        if vars(owner).get(name) is ours:  # if another plugin has wrapped our hook, our hook stays and does nothing
            setattr(owner, name, original)
            _placed.remove(entry)


# Engine cores and workers that are forked from this process run without stopscan.
os.register_at_fork(after_in_child=uninstall)


def install_as_asked() -> None:
    """Installs stopscan with the options in the environment, if ``STOPSCAN_VLLM`` asks for it."""
    if (value := switch("STOPSCAN_VLLM")) != "0" and _current is None:  # a program's own `install` is kept
        _install(Defaults.from_environment("STOPSCAN_VLLM"), optional=value == "optional")


def _install(defaults: Defaults, *, optional: bool) -> None:
    global _current
    if _current is None:
        try:
            from stopscan.vllm import _selftest

            wrong = _selftest.problems(_standing)
        except Exception as error:
            wrong = [repr(error)]
        if wrong:
            raise RuntimeError(f"stopscan does not fit vLLM {vllm.__version__}: {'; '.join(wrong[:3])}; {WAY_OUT}")
    _place_all()
    _adapter.renew(defaults, optional=optional)
    _current = _adapter


@contextmanager
def _standing(adapter: Adapter) -> Iterator[None]:
    """Installs stopscan with ``adapter`` while a ``with`` block runs, for the self-test."""
    global _current
    try:
        _place_all()
        _current = adapter
        yield
    finally:
        uninstall()


def _place(owner: type, name: str, after: Callable[..., None]) -> None:
    """Wraps a function or class method of vLLM. Each time the function has returned, the wrapper calls ``after`` with
    the function's result and all its arguments.

    If ``after`` raises an error, the error is noted, and vLLM goes on. But a request with options of stopscan is
    refused. Two errors of ``after`` are raised in vLLM: ``VLLMValidationError``, which refuses a request, and
    ``UnfitError``, which refuses an engine. If the adapter is ``optional``, an ``UnfitError`` uninstalls stopscan
    instead.
    """
    original = vars(owner).get(name)
    if original is None:
        raise RuntimeError(f"{owner.__name__} has no {name}")
    function = getattr(original, "__func__", original)
    if hasattr(function, "stopscan"):  # our hook is in place, perhaps in another plugin's wrapper
        return

    @wraps(function)
    def hook(*args: Any, **options: Any) -> Any:
        result, adapter = function(*args, **options), _current
        if adapter is not None:
            try:
                after(adapter, result, *args, **options)
            except VLLMValidationError:
                raise
            except UnfitError as problem:
                if not adapter.optional:
                    raise
                uninstall()
                logger.warning("running without stopscan: %s", problem)
            except BaseException as error:
                params = [getattr(each, "sampling_params", each) for each in (result, *args, *options.values())]
                names = [str(name) for each in params for name in getattr(each, "extra_args", None) or ()]
                beyond = any(name.startswith(PREFIX) and name != SET_APART for name in names)
                adapter.failed(error, after.__name__, beyond=beyond)
        return result

    hook.stopscan = True  # type: ignore[attr-defined]
    ours = hook if function is original else type(original)(hook)
    setattr(owner, name, ours)
    _placed.append((owner, name, original, ours))


def _place_all() -> None:
    for path, name, after in HOOKS:
        _place(resolve_name(f"vllm.{path}"), name, after)
