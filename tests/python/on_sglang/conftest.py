"""Fixtures for tests with real sglang on a CPU. The model is tiny and writes out known texts. ``ci/sglang-env`` makes
the environment."""

from __future__ import annotations

import os
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
pytest.register_assert_rewrite("sglang_harness")


@pytest.fixture(scope="session")
def reciter() -> Any:
    """A model that writes out fixed texts (scripts): the default ones, and one that repeats itself."""
    from stopscan_conformance import Reciter
    from stopscan_conformance.scripts import default_scripts

    return Reciter({**default_scripts(), "loop": ["Say:", *["no", ", "] * 40]})
