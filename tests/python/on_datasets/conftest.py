"""Runs ``examples/dataset.py`` with the libraries ``ray`` and ``datasets``; ``ci/datasets-env`` installs both."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
EXAMPLES = str(Path(__file__).parents[3] / "examples")
sys.path.insert(0, EXAMPLES)


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    import ray

    # Ray sends its workers the code of the main program only. They import all other code from this path.
    environment = {"env_vars": {"PYTHONPATH": EXAMPLES}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    yield
    ray.shutdown()
