"""Fixtures for tests with real mlx-lm. The model is tiny and writes out known texts. ``ci/mlx-env`` makes an
environment for each supported version of mlx-lm."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True)
def _unchecked() -> None:
    """Makes stopscan look again whether mlx-lm has what it needs."""
    if versions := sys.modules.get("stopscan.mlx_lm._versions"):
        versions.require.cache_clear()


@pytest.fixture(scope="session")
def mlx(checkpoint: Path) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    from mlx_harness import load

    return load(checkpoint)


@pytest.fixture(scope="module")
def ours(checkpoint: Path) -> Iterator[Any]:
    """A running ``stopscan.mlx_lm.server``."""
    from mlx_harness import serving

    from stopscan.mlx_lm import server

    with serving(server.main, "--model", checkpoint) as running:
        yield running
