"""Where stopscan stands in vLLM: behind six functions, and behind whatever other plugins put in front of them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from stopscan import Repeat
from stopscan.engines import Defaults, read_options, switch
from stopscan.vllm._adapter import PREFIX, Adapter, Refusal, logger

WAY_OUT = "use a vLLM with which stopscan was tested, or run vLLM without stopscan (STOPSCAN_VLLM=optional)"

# The class, the name, vLLM's own function (or another plugin's) and ours.
_placed: list[tuple[type, str, Any, Any]] = []
_adapter = Adapter(Defaults())
# What the hooks ask; `None` while stopscan is not installed.
_current: Adapter | None = None
# Whether vLLM runs without stopscan if stopscan does not fit, instead of not at all.
_optional = False


class Unfit(RuntimeError):
    """Says what of an engine stopscan cannot use. The engine does not start."""


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
            raise RuntimeError(f"stopscan does not fit vLLM {_version()}: {'; '.join(wrong[:3])}; {WAY_OUT}")
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


def _version() -> str:
    import vllm

    return str(getattr(vllm, "__version__", "?"))


def _place(owner: type, name: str, after: Callable[..., None]) -> None:
    """Puts ``after`` behind a function or class method of vLLM: it is called with what asks, the result and all
    arguments. Nothing that fails in it leaves the hook, but a ``Refusal``, as vLLM's own error, and ``Unfit``."""
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
                try:
                    after(adapter, result, *args, **options)
                except (Refusal, Unfit):
                    raise
                except BaseException as error:
                    adapter.failed(error, beyond=_asks([result, *args, *options.values()]))
            except Refusal as refusal:
                raise refusal.as_vllm() from refusal.__cause__
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

    # A request's own detokenizer is made here.
    _place(RequestState, "from_new_request", _request_made)
    # A chat's request knows what its route tells from the content. Once a stream has begun, it is too late for a 400.
    _place(ChatCompletionRequest, "to_sampling_params", _params_made)
    _place(ResponsesRequest, "to_sampling_params", _params_made)
    # All other routes come by here before they answer.
    _place(AsyncLLM, "generate", _generate_called)
    # An engine's configuration and its tokenizer meet here, in the process that detokenizes,
    _place(InputProcessor, "__init__", _engine_made)
    # and here a server makes the parser of its chat routes.
    _place(ParserManager, "get_parser", _parser_made)


def _request_made(adapter: Adapter, state: Any, _: Any, tokenizer: Any, request: Any, *args: Any, **options: Any) -> None:
    if request.sampling_params is None or not adapter.scan(state, tokenizer, request, trims=_trims()):
        return
    made, detokenizer = state._new_completion_output, state.detokenizer

    def last_output(token_ids: Any, finish_reason: Any, *rest: Any, **more: Any) -> Any:
        detokenizer.end_confirms = str(finish_reason) not in ("abort", "error")
        output = made(token_ids, finish_reason, *rest, **more)
        if finish_reason is not None:
            detokenizer.report(output)
        return output

    # If vLLM has the request's stops, it knows how the answer ends, and this request pays for no second hook.
    state._new_completion_output = last_output


def _trims() -> bool:
    """Whether vLLM drops the tokens behind a stop if one step brings several: since 0.32."""
    from vllm.v1.engine.output_processor import OutputProcessor

    return hasattr(OutputProcessor, "_trim_surplus_tokens")


def _params_made(adapter: Adapter, params: Any, request: Any, *args: Any, **options: Any) -> None:
    adapter.tell_apart(params, request.tool_choice)


def _generate_called(
    adapter: Adapter, _: Any, engine: Any, prompt: Any, sampling_params: Any, *args: Any, **options: Any
) -> None:
    if hasattr(sampling_params, "extra_args"):
        adapter.check(sampling_params, resumable=isinstance(prompt, AsyncGenerator))


def _engine_made(adapter: Adapter, _: None, processor: Any, vllm_config: Any, *args: Any, **options: Any) -> None:
    name = "of vLLM's configuration"
    try:
        name = vllm_config.structured_outputs_config.reasoning_parser or ""
        if processor.tokenizer is not None:
            # stopscan knows the engine as long as it is there.
            processor.stopscan = adapter.know_engine(processor.tokenizer, name)
    except Exception as error:
        problem = f"stopscan cannot use the reasoning parser {name}: {error!r}; {WAY_OUT}"
        if not _optional:
            raise Unfit(problem) from error
        uninstall()
        logger.warning("running without stopscan: %s", problem)


def _parser_made(
    adapter: Adapter, parser: Any, _: Any, tool_parser_name: Any = None, *args: Any, **options: Any
) -> None:
    adapter.know_parser(parser, tool_parser_name)
