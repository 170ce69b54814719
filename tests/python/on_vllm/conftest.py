"""Real vLLM on a CPU with the reciting checkpoint; ``ci/vllm-env`` makes the environment that these tests need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.register_assert_rewrite("vllm_streams")


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switches the way back off, because it hides the faults that it helps over."""
    from stopscan._engine.circuit import Circuit

    monkeypatch.setattr(Circuit, "strict", True)


@pytest.fixture(autouse=True)
def _uninstalled() -> Iterator[None]:
    yield
    if "stopscan.vllm" in sys.modules:
        sys.modules["stopscan.vllm"].uninstall()


@pytest.fixture(params=["off", "on"])
def stopscan(request: pytest.FixtureRequest) -> str:
    """vLLM as it is, and with stopscan installed."""
    from stopscan.vllm import install

    if request.param == "on":
        install()
    return request.param
