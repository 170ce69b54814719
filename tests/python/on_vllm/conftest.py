"""Fixtures for tests with real vLLM on a CPU. The model is tiny and writes out known texts. ``ci/vllm-env`` makes the
environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.register_assert_rewrite("vllm_streams")


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each failure of stopscan raise. Otherwise vLLM's own stops would take over and hide the failure."""
    from stopscan.engines import Failures

    monkeypatch.setattr(Failures, "strict", True)


@pytest.fixture(autouse=True)
def _tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips the self-test in each `install`. Files that test the self-test override this fixture."""
    from stopscan.vllm import _selftest

    monkeypatch.setattr(_selftest, "problems", lambda standing: [])


@pytest.fixture(autouse=True)
def _uninstalled() -> Iterator[None]:
    yield
    if installed := sys.modules.get("stopscan.vllm._install"):
        installed.uninstall()
        # Without this call, the adapter would keep this test's parser for later tests.
        installed._adapter.parser_made(None, None)


@pytest.fixture(scope="module", params=["fast", "slow"])
def tokenizer(request: pytest.FixtureRequest, checkpoint: Any) -> Any:
    from vllm.tokenizers import get_tokenizer
    from vllm_harness import SlowTokenizer

    fast = get_tokenizer(str(checkpoint))
    return fast if request.param == "fast" else SlowTokenizer(fast)


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tokenizer that has the markers of all of vLLM's parsers as tokens."""
    from vllm.tokenizers import get_tokenizer
    from vllm_parsers import MARKERS

    from stopscan_conformance.reciter import Reciter

    reciter = Reciter(
        {"pieces": ["a", " t", "hink", " </", "</", "think", ">", "<", "final"]}, added_tokens=MARKERS.split()
    )
    return get_tokenizer(str(reciter.write(tmp_path_factory.mktemp("markers"))))


@pytest.fixture
def start(marked: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a function that makes the ``InputProcessor`` of an engine. The function first installs stopscan. With
    ``protect=None``, it does not install stopscan."""
    from vllm.v1.engine.input_processor import InputProcessor

    from stopscan.vllm import install, uninstall

    made = []  # keeps the engines alive, because stopscan has only weak references

    def init(self: Any, vllm_config: Any, renderer: Any = None) -> None:
        self.renderer = renderer
        made.append(self)

    def make(protect: Any, reasoning_parser: str = "", tokenizer: Any = marked, *, keywords: bool = False) -> None:
        if protect is not None:
            install(protect=protect)
        config = SimpleNamespace(structured_outputs_config=SimpleNamespace(reasoning_parser=reasoning_parser))
        arguments = {"vllm_config": config, "renderer": SimpleNamespace(tokenizer=tokenizer)}
        InputProcessor(**arguments) if keywords else InputProcessor(*arguments.values())

    monkeypatch.setattr(InputProcessor, "__init__", init)
    yield make
    uninstall()


@pytest.fixture(params=["off", "on"])
def stopscan(request: pytest.FixtureRequest) -> str:
    """Runs the test twice: with vLLM as it is ("off"), and with stopscan installed ("on")."""
    from stopscan.vllm import install

    if request.param == "on":
        install()
    return request.param
