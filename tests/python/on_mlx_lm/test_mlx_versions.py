"""If the installed mlx-lm lacks a function that stopscan needs, the error names the function."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

import mlx_lm
from mlx_harness import NEW
from mlx_lm import server

from stopscan.mlx_lm import _versions, batch_generate

generate = sys.modules["mlx_lm.generate"]  # the attribute `mlx_lm.generate` is a function, not this module
new = pytest.mark.skipif(not NEW, reason=f"mlx-lm {mlx_lm.__version__} is before 0.32")
old = pytest.mark.skipif(NEW, reason=f"mlx-lm {mlx_lm.__version__} is not before 0.32")


@old
def test_before_032_a_batch_is_refused() -> None:
    with pytest.raises(ImportError, match=f"batch_generate needs mlx-lm 0.32.0 .*; mlx-lm {mlx_lm.__version__} has no"):
        batch_generate(None, None, [])


@old
def test_before_032_the_server_is_refused() -> None:
    with pytest.raises(ImportError, match=f"server needs mlx-lm 0.32.0 or later.*; mlx-lm {mlx_lm.__version__} has no"):
        importlib.import_module("stopscan.mlx_lm.server")


@new
@pytest.mark.parametrize(
    ("module", "owner", "attribute"),
    [
        (generate, None, "StopSequences"),
        (generate, "StopSequences", "matcher"),
        (generate, "BatchGenerator", "next_generated"),
        (server, None, "_run_http_server"),
    ],
)
def test_a_missing_part_is_named(
    monkeypatch: pytest.MonkeyPatch, module: object, owner: str | None, attribute: str
) -> None:
    monkeypatch.delattr(getattr(module, owner) if owner else module, attribute)
    with pytest.raises(ImportError, match=f"0.32.0 or later.*; mlx-lm {mlx_lm.__version__} has no .*{attribute}"):
        _versions.require("server")


@new
def test_a_missing_parameter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def insert(self: object, prompts: object, state_machines: object) -> None:
        """Has the parameters of this method in mlx-lm 0.31."""

    monkeypatch.setattr(generate.BatchGenerator, "insert", insert)
    with pytest.raises(ImportError, match=r"has no .*stop_sequences in mlx_lm.generate.BatchGenerator.insert"):
        batch_generate(None, None, [])


@new
def test_mlx_lm_that_ignores_row_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An mlx-lm whose batches no longer call ``advance`` must be refused, because it would silently ignore every stop.
    mlx-lm#1830, which reworks ``StopSequences`` and ``Matcher``, may remove the call."""

    def asks_another(self: Any, *_: object) -> object:
        return self.automaton.step(1)

    monkeypatch.setattr(generate.GenerationBatch, "next", asks_another)
    with pytest.raises(ImportError, match=r"has no .*advance.* in mlx_lm.*GenerationBatch.next"):
        _versions.require("server")
