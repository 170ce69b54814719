"""Tests that stopscan refuses a sglang that does not fit. Patches imitate future releases of sglang."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from pkgutil import resolve_name
from typing import Any

import pytest

pytest.importorskip("sglang", reason="sglang is not installed; ci/sglang-env makes its environment")

from stopscan.engines import Defaults, Failures
from stopscan.sglang import _plugin, _selftest
from stopscan.sglang._plugin import hooks

pytestmark = pytest.mark.sglang


@pytest.fixture(autouse=True)
def _serving(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hooks of the routes are there only in a process that serves HTTP."""
    monkeypatch.setattr(_plugin, "_serves", lambda: True)


def problems() -> list[str]:
    return _selftest.problems(lambda failures: hooks(Defaults(), failures))


def changed(target: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    owner, _, name = target.rpartition(".")
    own = resolve_name(target)
    monkeypatch.setattr(resolve_name(owner), name, change(own))


TARGETS = [*_selftest.ROUTES]


def test_this_sglang_fits() -> None:
    assert problems() == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_that_is_gone_is_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, _, name = target.rpartition(".")
    monkeypatch.delattr(resolve_name(owner), name)
    if target.endswith("_convert_to_internal_request"):  # the base class has an abstract method of this name
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
    kind, _ = _selftest.ROUTES[target]
    changed(target, as_coroutine if kind is None else as_function, monkeypatch)
    assert any("runs otherwise" in problem for problem in problems())


@pytest.mark.parametrize("target", [target for target in TARGETS if _selftest.ROUTES[target][1]])
def test_a_parameter_with_another_name_is_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, (name, *_) = _selftest.ROUTES[target]
    names = [each for each in resolve_name(target).__code__.co_varnames if each != name]

    def renamed(own: Any) -> Any:
        arguments = ", ".join(names[: own.__code__.co_argcount - 1])
        prefix = "" if kind is None else "async "
        body = "yield" if kind is _selftest.isasyncgenfunction else "return None"
        made: dict[str, Any] = {}
        exec(f"{prefix}def made({arguments}, other): {body}", made)
        return made["made"]

    changed(target, renamed, monkeypatch)
    assert any(f"has no {name}" in problem for problem in problems())


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
