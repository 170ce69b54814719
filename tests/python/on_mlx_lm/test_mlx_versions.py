"""A version of mlx-lm that does not fit is refused by name."""

from __future__ import annotations

import importlib
import sys

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

import mlx_lm
from mlx_lm import server

import stopscan.mlx_lm.server
from stopscan.mlx_lm import _versions

generate = sys.modules["mlx_lm.generate"]  # `mlx_lm.generate` is the function


@pytest.mark.parametrize(
    ("module", "owner", "attribute"),
    [
        (generate, None, "StopSequences"),
        (generate, "StopSequences", "matcher"),
        (generate, "BatchGenerator", "next_generated"),
        (server, "ResponseGenerator", "_make_state_machine"),
        (server, None, "_run_http_server"),
    ],
)
def test_a_missing_part_is_named(
    monkeypatch: pytest.MonkeyPatch, module: object, owner: str | None, attribute: str
) -> None:
    monkeypatch.delattr(getattr(module, owner) if owner else module, attribute)
    with pytest.raises(ImportError, match=f"0.32.0 and later.* this is mlx-lm {mlx_lm.__version__}, .*{attribute}"):
        _versions.require(_versions.LOOPS | _versions.SERVER)


def test_a_missing_parameter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def insert(self: object, prompts: object, state_machines: object) -> None:
        """As in 0.31."""

    monkeypatch.setattr(generate.BatchGenerator, "insert", insert)
    with pytest.raises(ImportError, match=r"without mlx_lm.generate.BatchGenerator.insert: stop_sequences"):
        _versions.require(_versions.LOOPS)


def test_the_checks_run_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(generate, "StopSequences")
    with pytest.raises(ImportError, match="StopSequences"):
        importlib.reload(_versions)
    monkeypatch.undo()
    monkeypatch.delattr(server.APIHandler, "_validate")
    with pytest.raises(ImportError, match="APIHandler: _validate"):
        importlib.reload(stopscan.mlx_lm.server)
