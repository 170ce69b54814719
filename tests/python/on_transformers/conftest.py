"""Fixtures for tests with real transformers on a CPU. The model is tiny and writes out known texts.
``ci/transformers-env`` makes the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.register_assert_rewrite("transformers_harness")


@pytest.fixture(scope="session")
def engine(checkpoint: Path) -> Any:
    """The model and its tokenizer, which pads on the left."""
    pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")
    from transformers_harness import Engine

    return Engine.load(checkpoint)
