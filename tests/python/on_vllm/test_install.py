"""Installs and uninstalls stopscan in vLLM, also together with other plugins."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

import vllm
from vllm.exceptions import VLLMValidationError
from vllm.parser import ParserManager
from vllm.sampling_params import SamplingParams
from vllm.v1.engine.output_processor import RequestState
from vllm_harness import ANSWER, patched, text

from stopscan.vllm import install, uninstall

pytestmark = pytest.mark.vllm


def test_install_twice_and_uninstall_leave_vllm_as_it_was() -> None:
    before = patched()
    install()
    install()
    assert all(new is not old for new, old in zip(patched(), before, strict=True))
    uninstall()
    assert all(new is old for new, old in zip(patched(), before, strict=True))
    uninstall()


def test_a_forked_process_has_nothing_of_ours() -> None:
    before = patched()
    install()
    child = os.fork()
    if child == 0:
        os._exit(0 if patched() == before else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert patched() != before


@pytest.mark.parametrize("protect", ["<think>", ["<think>"], [("<think>",)], 5])
def test_malformed_regions_are_refused_at_once(protect: Any) -> None:
    before = patched()
    with pytest.raises(ValueError, match=r"^protect"):
        install(protect=protect)
    assert patched() == before


def test_the_version_alone_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "__version__", "0.99.0")
    install()


def note(monkeypatch: pytest.MonkeyPatch) -> tuple[type, list[str]]:
    """Another plugin: its wrapper of ``from_new_request`` records each request's id, then calls the original."""
    found, seen = RequestState.from_new_request.__func__, []

    def noting(cls: type, tokenizer: Any, request: Any, *args: Any, **options: Any) -> Any:
        seen.append(request.request_id)
        return found(cls, tokenizer, request, *args, **options)

    monkeypatch.setattr(RequestState, "from_new_request", classmethod(noting))
    return RequestState, seen


@pytest.mark.parametrize("first", [True, False], ids=["before stopscan", "after stopscan"])
def test_another_plugins_wrapper_stays(
    tokenizer: Any, reciter: Any, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not first:
        install()
    _, seen = note(monkeypatch)
    original = vars(RequestState)["from_new_request"]
    think, stops = [("<think>", "</think>")], {"stop": ["END"]}
    install()
    install(protect=think)
    assert text(tokenizer, reciter, "think", **stops) == (ANSWER, "END")
    assert seen.count("r") == 1
    uninstall()
    assert vars(RequestState)["from_new_request"] is original
    assert text(tokenizer, reciter, "think", **stops) == ("<think>Is it ", "END")
    install(protect=think)
    assert text(tokenizer, reciter, "think", **stops) == (ANSWER, "END")
    assert seen.count("r") == 3
    uninstall()
    monkeypatch.undo()


def test_install_again_after_another_plugin() -> None:
    before = patched()
    install()
    RequestState.from_new_request = before[0]
    install()
    assert all(new is not old for new, old in zip(patched(), before, strict=True))
    uninstall()
    assert all(new is old for new, old in zip(patched(), before, strict=True))


def test_vllms_own_checks_and_parsers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> tuple[type, type]:
        with pytest.raises(VLLMValidationError, match="temperature"):
            SamplingParams(temperature=-1)
        parser = ParserManager.get_parser("hermes", "deepseek_r1", enable_auto_tools=True)
        return parser.tool_parser_cls, parser.reasoning_parser_cls

    before = check()
    install()
    assert check() == before
    found = ParserManager.get_parser.__func__
    original = classmethod(lambda cls, *args, **options: found(cls, *args, **options))
    monkeypatch.setattr(ParserManager, "get_parser", original)
    uninstall()
    assert check() == before
    monkeypatch.undo()
    uninstall()
