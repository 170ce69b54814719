"""Tests that ``install`` refuses only a vLLM that does not fit. Patches imitate future releases of vLLM."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.parser import ParserManager
from vllm.v1.engine import FinishReason, detokenizer, output_processor, parallel_sampling
from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer, IncrementalDetokenizer
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.engine.output_processor import OutputProcessor, RequestState
from vllm_harness import FUNCTIONS, patched

from stopscan.vllm import _install, _selftest, install, uninstall

pytestmark = pytest.mark.vllm


@pytest.fixture(autouse=True)
def _tested() -> None:
    """Overrides the fixture that skips the self-test, so that the self-test runs in this file."""


Patch = Callable[[pytest.MonkeyPatch], None]
UPGRADES: dict[str, Patch] = {}
HARMLESS: dict[str, Patch] = {}


def refused(patch: Patch) -> Patch:
    UPGRADES[patch.__name__] = patch
    return patch


def harmless(patch: Patch) -> Patch:
    HARMLESS[patch.__name__] = patch
    return patch


def rename(function: Any, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code = function.__code__
    names = tuple(new if name == old else name for name in code.co_names)
    monkeypatch.setattr(function, "__code__", code.replace(co_names=names))


@refused
def an_attribute_of_the_detokenizer_is_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in (*BaseIncrementalDetokenizer.__mro__[:2], *BaseIncrementalDetokenizer.__subclasses__()):
        for found in vars(cls).values():
            if function := getattr(found, "fget", found if hasattr(found, "__code__") else None):
                rename(function, "token_ids", "ids", monkeypatch)


@harmless
def one_more_property_of_the_detokenizer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made = RequestState._new_completion_output
    monkeypatch.setattr(IncrementalDetokenizer, "text_so_far", property(lambda self: self.output_text), raising=False)
    monkeypatch.setattr(
        BaseIncrementalDetokenizer, "text_so_far", property(lambda self: self.output_text), raising=False
    )

    def reading(self: Any, *args: Any) -> Any:
        if isinstance(self.detokenizer, BaseIncrementalDetokenizer) or "Scanning" in type(self.detokenizer).__name__:
            assert self.detokenizer.text_so_far is not None
        return made(self, *args)

    monkeypatch.setattr(RequestState, "_new_completion_output", reading)


@refused
def one_more_argument_to_get_next_output_text(monkeypatch: pytest.MonkeyPatch) -> None:
    made = RequestState._new_completion_output
    for cls in (IncrementalDetokenizer, BaseIncrementalDetokenizer):
        own = cls.get_next_output_text
        more = lambda self, finished, delta, final=False, own=own: own(self, finished, delta)  # noqa: E731
        monkeypatch.setattr(cls, "get_next_output_text", more)

    def calling(self: Any, *args: Any) -> Any:
        text = self.detokenizer.get_next_output_text
        self.detokenizer.__dict__["get_next_output_text"] = lambda finished, delta: text(finished, delta, True)
        try:
            return made(self, *args)
        finally:
            del self.detokenizer.__dict__["get_next_output_text"]

    monkeypatch.setattr(RequestState, "_new_completion_output", calling)


@refused
def one_more_argument_to_update(monkeypatch: pytest.MonkeyPatch) -> None:
    process = OutputProcessor.process_outputs
    for cls in (IncrementalDetokenizer, BaseIncrementalDetokenizer):
        own = cls.update
        monkeypatch.setattr(cls, "update", lambda self, new, stopped, step=0, own=own: own(self, new, stopped))

    def calling(self: Any, outputs: Any, *args: Any, **options: Any) -> Any:
        for state in self.request_states.values():
            if "update" not in vars(state.detokenizer):
                update = state.detokenizer.update
                state.detokenizer.update = lambda new, stopped, update=update: update(new, stopped, 1)
        return process(self, outputs, *args, **options)

    monkeypatch.setattr(OutputProcessor, "process_outputs", calling)


@harmless
def detokenizers_are_made_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    own = vars(IncrementalDetokenizer)["from_new_request"].__func__
    monkeypatch.setattr(
        output_processor, "IncrementalDetokenizer", type("Other", (), {"from_new_request": classmethod(own)})
    )


@refused
def min_tokens_counts_the_token_that_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    update = BaseIncrementalDetokenizer.update

    def sooner(self: Any, *args: Any) -> Any:
        least, self.min_tokens = self.min_tokens, max(self.min_tokens - 1, 0)
        try:
            return update(self, *args)
        finally:
            self.min_tokens = least

    monkeypatch.setattr(BaseIncrementalDetokenizer, "update", sooner)


@refused
def the_longest_stop_wins_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    check = detokenizer.check_stop_strings

    def longest(output_text: str, new_char_count: int, stop: list[str], include_in_output: bool) -> Any:
        return check(output_text, new_char_count, sorted(stop, key=len, reverse=True), include_in_output)

    monkeypatch.setattr(detokenizer, "check_stop_strings", longest)


@refused
def held_text_is_dropped_when_the_client_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    made = RequestState.make_request_output

    def dropping(
        self: Any, new: Any, pooling: Any = None, finish_reason: Any = None, *args: Any, **options: Any
    ) -> Any:
        if finish_reason is FinishReason.ABORT and isinstance(self.detokenizer, BaseIncrementalDetokenizer):
            self.detokenizer.output_text = self.detokenizer.output_text[: self.detokenizer._last_output_text_offset]
        options.update(pooling_output=options.pop("pooling_output", pooling))
        return made(self, options.pop("new_token_ids", new), finish_reason=finish_reason, **options)

    def named(self: Any, new_token_ids: Any, *args: Any, **options: Any) -> Any:
        if args:
            return made(self, new_token_ids, *args, **options)
        return dropping(self, new_token_ids, **options)

    monkeypatch.setattr(RequestState, "make_request_output", named)


@refused
def the_end_is_told_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestState, "_completion", RequestState._new_completion_output, raising=False)
    monkeypatch.delattr(RequestState, "_new_completion_output")
    rename(RequestState.make_request_output, "_new_completion_output", "_completion", monkeypatch)


@refused
def a_class_of_the_test_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(parallel_sampling, "ParentRequest")


@harmless
def one_more_attribute_of_a_request_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made = RequestState._new_completion_output

    def reading(self: Any, *args: Any) -> Any:
        detokenizer = self.detokenizer
        assert detokenizer.tokenizer is not None or detokenizer.min_tokens == 0
        assert (detokenizer.skip_special_tokens, detokenizer.include_stop_str_in_output, detokenizer.stop) is not None
        return made(self, *args)

    def with_text(self: Any, *args: Any) -> Any:
        return (reading if isinstance(self.detokenizer, BaseIncrementalDetokenizer) else made)(self, *args)

    monkeypatch.setattr(RequestState, "_new_completion_output", with_text)


@harmless
def one_more_argument_with_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    own = vars(IncrementalDetokenizer)["from_new_request"].__func__
    more = lambda cls, tokenizer, request, more=None: own(cls, tokenizer, request)  # noqa: E731
    monkeypatch.setattr(IncrementalDetokenizer, "from_new_request", classmethod(more))


@harmless
def one_more_required_argument_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    init = OutputProcessor.__init__

    def make(self: Any, tokenizer: Any, *, log_stats: bool, stream_interval: int = 1, more: Any) -> None:
        init(self, tokenizer, log_stats=log_stats, stream_interval=stream_interval)

    monkeypatch.setattr(OutputProcessor, "__init__", make)


@harmless
def another_order_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    own = InputProcessor.process_inputs
    monkeypatch.setattr(InputProcessor, "process_inputs", lambda self, *args, **options: own(self, *args, **options))


@pytest.mark.parametrize("name", UPGRADES)
def test_an_upgrade_that_does_not_fit_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    UPGRADES[name](monkeypatch)
    with pytest.raises(RuntimeError, match=r"^stopscan does not fit vLLM [\d.]+: "):
        install()
    monkeypatch.undo()
    assert patched() == before


@pytest.mark.parametrize("name", HARMLESS)
def test_an_upgrade_that_changes_nothing_is_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    HARMLESS[name](monkeypatch)
    install()
    assert patched() != before
    uninstall()


def test_the_self_test_leaves_vllm_as_it_was() -> None:
    before = patched()
    assert _selftest.problems(_install._standing) == []
    assert patched() == before


# The functions that have hooks. A new release of vLLM may change one. Then the hook must still see the request, or
# `install` must refuse.
HOOKED = {f"{owner.__name__}.{name}": (owner, name) for owner, name in FUNCTIONS}


def wrapped(owner: type, name: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces a function by ``change(function)``. If the function is a class method, the new one is too."""
    original = vars(owner)[name]
    function = getattr(original, "__func__", original)
    changed = wraps(function)(change(function))
    monkeypatch.setattr(owner, name, changed if function is original else type(original)(changed))


@pytest.mark.parametrize("name", HOOKED)
def test_a_function_that_is_gone_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(*HOOKED[name])
    before = patched()
    with pytest.raises(RuntimeError, match=rf"^stopscan does not fit vLLM [\d.]+: .*{HOOKED[name][1]}"):
        install()
    assert patched() == before


@pytest.mark.parametrize("name", HOOKED)
def test_a_function_with_one_more_argument_is_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    more = lambda own: lambda *args, more=None, **options: own(*args, **options)  # noqa: E731
    wrapped(*HOOKED[name], more, monkeypatch)
    install()


def coroutine(own: Any) -> Any:
    async def made(*args: Any, **options: Any) -> Any:
        return own(*args, **options)

    return made


def pair(own: Any) -> Any:
    return lambda *args, **options: (own(*args, **options), None)


def frozen(own: Any) -> Any:
    """Imitates a vLLM whose function ``own`` returns an object of another type. The attributes of this object cannot
    be set."""

    class Params:
        __slots__ = ("_params",)

        def __init__(self, params: Any) -> None:
            object.__setattr__(self, "_params", params)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._params, name)

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"can't set {name}")

    return lambda *args, **options: Params(own(*args, **options))


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("change", [coroutine, pair, frozen])
@pytest.mark.parametrize("owner", [ChatCompletionRequest, ResponsesRequest])
def test_parameters_of_another_type_are_refused(owner: Any, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped(owner, "to_sampling_params", change, monkeypatch)
    with pytest.raises(RuntimeError, match=r"^stopscan does not fit vLLM [\d.]+: "):
        install()


def test_request_with_unknown_tool_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Request:
        def __init__(self, request: Any) -> None:
            self._request = request

        def __getattr__(self, name: str) -> Any:
            if name == "tool_choice":
                raise AttributeError(name)
            return getattr(self._request, name)

    own = vars(ChatCompletionRequest)["to_sampling_params"]
    monkeypatch.setattr(_install.Adapter, "params_made", wrap_second(_install.Adapter.params_made, Request))
    hooks = [(path, name, _install.Adapter.params_made if after.__name__ == "params_made" else after)
             for path, name, after in _install.HOOKS]  # fmt: skip
    monkeypatch.setattr(_install, "HOOKS", hooks)
    with pytest.raises(RuntimeError, match=r"^stopscan does not fit vLLM [\d.]+: "):
        install()
    assert vars(ChatCompletionRequest)["to_sampling_params"] is own


def wrap_second(function: Any, change: Any) -> Any:
    return wraps(function)(
        lambda self, result, request, *args, **options: function(self, result, change(request), *args, **options)
    )


@pytest.mark.parametrize("name", ["reasoning_parser_cls", "tool_parser_cls"])
def test_a_parser_that_names_its_parts_otherwise_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(own: Any) -> Any:
        def made(*args: Any, **options: Any) -> Any:
            parser = own(*args, **options)
            return type("Parser", (), {each: getattr(parser, each) for each in PARTS if each != name})

        return made

    wrapped(ParserManager, "get_parser", without, monkeypatch)
    with pytest.raises(RuntimeError, match=r"^stopscan does not fit vLLM [\d.]+: a chat: "):
        install()


PARTS = ("reasoning_parser_cls", "tool_parser_cls")


@pytest.mark.parametrize(
    ("module", "call"), _selftest.CALLS, ids=[f"{module} {call}" for module, call in _selftest.CALLS]
)
def test_a_route_that_calls_another_function_is_refused(
    module: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new vLLM may no longer call the wrapped function in a route. The self-test's own calls would still reach the
    hook, but the calls of the route would not. So `install` must refuse this vLLM."""
    own = _selftest.source_of
    assert re.search(call, own(f"vllm.{module}"))
    changed = lambda name: re.sub(call, "self._make(", own(name)) if name == f"vllm.{module}" else own(name)  # noqa: E731
    monkeypatch.setattr(_selftest, "source_of", changed)
    with pytest.raises(RuntimeError, match=r"does not call"):
        install()


def test_an_engine_whose_configuration_moved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    for config, processor in (
        (SimpleNamespace(), SimpleNamespace(tokenizer=None)),
        (SimpleNamespace(structured_outputs_config=SimpleNamespace(reasoning_parser="")), SimpleNamespace()),
    ):
        with pytest.raises(_install.UnfitError, match="stopscan cannot use the engine"):
            _install._adapter.engine_made(None, processor, config)
