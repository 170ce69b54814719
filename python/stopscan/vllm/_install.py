"""Where stopscan stands in vLLM: behind six functions, and behind whatever other plugins put in front of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import vllm
from vllm.exceptions import VLLMValidationError

from stopscan import Repeat
from stopscan.engines import Defaults, read_options, switch
from stopscan.vllm._adapter import PREFIX, Adapter, UnfitError, logger

WAY_OUT = "use a vLLM with which stopscan was tested, or run vLLM without stopscan (STOPSCAN_VLLM=optional)"

# The class, the name, vLLM's own function (or another plugin's) and ours.
_placed: list[tuple[type, str, Any, Any]] = []
_adapter = Adapter(Defaults())
# What the hooks ask; `None` while stopscan is not installed.
_current: Adapter | None = None
# Whether vLLM runs without stopscan if stopscan does not fit, instead of not at all.
_optional = False


def install(*, protect: Any = None, repeat: Repeat | None = None) -> None:
    """Puts stopscan into the detokenizer of the requests that vLLM gets from now on in this process. Returns nothing.

    Text, token ids, finish and stop reasons stay vLLM's. If stops complete at the same character, vLLM's list order
    counts. The text comes as soon as it is safe.

    - ``protect`` has the regions in which no stop fires, for requests without ``stopscan_protect``: pairs of markers,
      ``"reasoning"`` and ``"tool_call"``. Without ``protect``, a chat route protects what it tells from the content.
      ``LLM.chat`` is offline: stops fire everywhere.
    - ``repeat`` ends answers that loop, for requests without ``stopscan_repeat``.

    Another call replaces ``protect`` and ``repeat``, and forgets earlier faults.

    Raises ``RuntimeError``, with vLLM unchanged, if vLLM's texts with stopscan are not what they must be.

    >>> install(protect=["reasoning", ("<scratch>", "</scratch>")])
    """
    given = None if protect is None else {"protect": list(protect) if isinstance(protect, tuple) else protect}
    _install(Defaults(read_options(given).protect, repeat), optional=False)


def uninstall() -> None:
    """Gives vLLM its own detokenizer back. Requests that are under way end as they began. Returns nothing."""
    global _current
    _current = None
    for entry in reversed(_placed[:]):
        owner, name, original, ours = entry
        if vars(owner).get(name) is ours:  # else another plugin stands in front, and ours does nothing
            setattr(owner, name, original)
            _placed.remove(entry)


# An engine core or a worker that is forked must have nothing of ours.
os.register_at_fork(after_in_child=uninstall)


def install_as_asked() -> None:
    """Installs with what the environment says, before the first engine of a process."""
    asked = switch("STOPSCAN_VLLM")
    if asked == "0":
        return
    defaults = Defaults.from_environment("STOPSCAN_VLLM")
    try:
        _install(defaults, optional=asked == "optional")
    except RuntimeError as error:
        if asked == "1":
            raise
        logger.warning("running without stopscan: %s", error)


def _install(defaults: Defaults, *, optional: bool) -> None:
    global _current, _optional
    if _current is None:
        try:
            from stopscan.vllm import _selftest

            wrong = _selftest.problems(_standing)
        except Exception as error:
            wrong = [repr(error)]
        if wrong:
            raise RuntimeError(f"stopscan does not fit vLLM {vllm.__version__}: {'; '.join(wrong[:3])}; {WAY_OUT}")
    _place_all()
    _adapter.renew(defaults)
    _current, _optional = _adapter, optional


@contextmanager
def _standing(adapter: Adapter) -> Iterator[None]:
    """stopscan in vLLM for a while, with an adapter of its own."""
    global _current
    try:
        _place_all()
        _current = adapter
        yield
    finally:
        uninstall()


def _place(owner: type, name: str, after: Callable[..., None]) -> None:
    """Puts ``after``, a method of ``Adapter``, behind a function or class method of vLLM. It gets the result and all
    arguments. Nothing that fails in it leaves the hook, but what it refuses."""
    original = vars(owner).get(name)
    if original is None:
        raise RuntimeError(f"{owner.__name__} has no {name}")
    function = getattr(original, "__func__", original)
    if hasattr(function, "stopscan"):  # ours, or another plugin's that wraps ours
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
                if not _optional:
                    raise
                uninstall()
                logger.warning("running without stopscan: %s", problem)
            except BaseException as error:
                adapter.failed(error, beyond=_asks([result, *args, *options.values()]))
        return result

    hook.stopscan = True  # type: ignore[attr-defined]
    ours = hook if function is original else type(original)(hook)
    setattr(owner, name, ours)
    _placed.append((owner, name, original, ours))


def _asks(found: list[Any]) -> bool:
    """Whether a request among the arguments and the result of a function has options of stopscan."""
    params = [getattr(each, "sampling_params", each) for each in found]
    return any(str(name).startswith(PREFIX) for each in params for name in getattr(each, "extra_args", None) or ())


def _place_all() -> None:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.parser import ParserManager
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.engine.input_processor import InputProcessor
    from vllm.v1.engine.output_processor import RequestState

    _place(RequestState, "from_new_request", Adapter.request_made)
    _place(ChatCompletionRequest, "to_sampling_params", Adapter.params_made)
    _place(ResponsesRequest, "to_sampling_params", Adapter.params_made)
    _place(AsyncLLM, "generate", Adapter.generate_called)
    _place(InputProcessor, "__init__", Adapter.engine_made)
    _place(ParserManager, "get_parser", Adapter.parser_made)
