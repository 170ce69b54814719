"""What all tests share: one hypothesis profile, with the same examples in every run and no database in the working
tree, and the reciting checkpoint for those that run an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "stopscan", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("stopscan")


@pytest.fixture(scope="session")
def reciter() -> Any:
    from stopscan.testing.reciter import Reciter

    return Reciter()


@pytest.fixture(scope="session")
def checkpoint(reciter: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reciter.write(tmp_path_factory.mktemp("reciter"))
