"""Tests that stopscan refuses a sglang that does not fit. Patches imitate future releases of sglang."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from inspect import getsource
from pkgutil import resolve_name
from textwrap import dedent
from typing import Any

import pytest

pytest.importorskip("sglang", reason="sglang is not installed; ci/sglang-env makes its environment")

from stopscan.engines import Defaults, Failures
from stopscan.sglang import _plugin, _selftest
from stopscan.sglang._plugin import hooks

pytestmark = pytest.mark.sglang


@pytest.fixture(autouse=True)
def _serving(monkeypatch: pytest.MonkeyPatch) -> None:
    """stopscan hooks the routes only in a process that serves HTTP. This fixture makes the test's process count as
    one."""
    monkeypatch.setattr(_plugin, "_serves", lambda: True)


def problems() -> list[str]:
    return _selftest.problems(lambda failures: hooks(Defaults(), failures))


def changed(target: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    owner, _, name = target.rpartition(".")
    own = resolve_name(target)
    monkeypatch.setattr(resolve_name(owner), name, change(own))


ENTRY = _selftest.ENTRY
CHAT = f"{ENTRY}openai.serving_chat.OpenAIServingChat"
ANTHROPIC = f"{ENTRY}anthropic.serving.AnthropicServing"
# The functions of sglang's routes that stopscan hooks. A test writes another function in place of each. Each value has
# what the test needs for this: the word before `def`, the statement that gives the result, and the parameter that the
# hook reads.
ROUTES = {
    f"{ENTRY}http_server.serve_generate_request": ("async ", "return None", "obj"),
    f"{CHAT}._convert_to_internal_request": ("", "return None", "request"),
    f"{CHAT}._generate_stream_content": ("async ", "yield", "content"),
    f"{ENTRY}openai.protocol.ResponsesRequest.to_sampling_params": ("", "return None", "self"),
    f"{ANTHROPIC}._convert_response": ("", "return None", "response"),
    f"{ANTHROPIC}._generate_anthropic_stream": ("async ", "yield", "processed_request"),
}
# Each key is a method of sglang that handles requests. Its value is the method that it calls and that stopscan hooks.
CALLERS = {
    f"{ENTRY}openai.serving_base.OpenAIServingBase.handle_request": f"{CHAT}._convert_to_internal_request",
    f"{CHAT}._generate_chat_stream": f"{CHAT}._generate_stream_content",
    f"{ANTHROPIC}._handle_non_streaming": f"{ANTHROPIC}._convert_response",
    f"{ANTHROPIC}._handle_streaming": f"{ANTHROPIC}._generate_anthropic_stream",
}
TARGETS = [*ROUTES]


def test_this_sglang_fits() -> None:
    assert problems() == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_that_is_gone_is_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, _, name = target.rpartition(".")
    monkeypatch.delattr(resolve_name(owner), name)
    if target.endswith("_convert_to_internal_request"):  # the base class's abstract method remains
        assert problems()
        return
    with pytest.raises(RuntimeError, match=r"^this sglang has no sglang\.srt\."):
        _plugin._fitting(Defaults())


def as_coroutine(own: Any) -> Any:
    @wraps(own)
    async def made(*args: Any, **options: Any) -> Any:
        return own(*args, **options)

    return made


def as_function(own: Any) -> Any:
    return wraps(own)(lambda *args, **options: own(*args, **options))


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("target", TARGETS)
def test_a_function_that_runs_otherwise_is_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failures, "strict", False)
    changed(target, as_function if ROUTES[target][:2] == ("async ", "return None") else as_coroutine, monkeypatch)
    assert problems()


@pytest.mark.parametrize("target", TARGETS)
def test_a_parameter_with_another_name_is_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix, body, name = ROUTES[target]
    monkeypatch.setattr(Failures, "strict", False)

    def renamed(own: Any) -> Any:
        names = [each for each in own.__code__.co_varnames[: own.__code__.co_argcount] if each != name]
        made: dict[str, Any] = {}
        exec(f"{prefix}def made({', '.join([*names, 'other'])}): {body}", made)
        return made["made"]

    changed(target, renamed, monkeypatch)
    assert problems()


@pytest.mark.parametrize("caller", CALLERS)
def test_route_holding_old_reference_is_refused(caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = CALLERS[caller].rpartition(".")[2]
    monkeypatch.setattr(Failures, "strict", False)

    def other(own: Any) -> Any:
        source = dedent(getsource(own))
        assert f"self.{name}" in source
        made = {**own.__globals__, "taken": resolve_name(CALLERS[caller])}
        exec(source.replace(f"self.{name}", "taken.__get__(self)"), made)
        return made[own.__name__]

    changed(caller, other, monkeypatch)
    assert problems()


@pytest.mark.parametrize(("module", "call"), _selftest.CALLS, ids=[call for _, call in _selftest.CALLS])
def test_a_module_that_calls_another_function_is_refused(
    module: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = _selftest.source_of
    assert re.search(call, own(f"sglang.{module}"))
    other = lambda name: re.sub(call, "self._other(", own(name)) if name == f"sglang.{module}" else own(name)  # noqa: E731
    monkeypatch.setattr(_selftest, "source_of", other)
    assert any("does not call" in problem for problem in problems())


def test_parameters_of_another_type_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    target = "sglang.srt.entrypoints.openai.protocol.ResponsesRequest.to_sampling_params"
    monkeypatch.setattr(Failures, "strict", False)
    changed(target, lambda own: wraps(own)(lambda *args, **options: (own(*args, **options), None)), monkeypatch)
    assert any("a request to Responses" in problem for problem in problems())
