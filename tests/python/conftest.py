"""For all tests: settings of hypothesis, and a tiny model that recites given texts, for tests that run an engine.

By default, hypothesis tries the same examples in each run, and keeps no database in the working tree.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "stopscan", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# `pytest --hypothesis-profile=nightly` tries new examples in each run, and prints how to reproduce a failure.
settings.register_profile(
    "nightly",
    derandomize=False,
    print_blob=True,
    max_examples=1_000,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("stopscan")

# While pytest collects 9,000 tests, a million objects are made, and all stay alive. The garbage collector would search
# them again and again. Without it, the collection takes 8 s instead of 12 s (AMD EPYC, CPython 3.11.7, 2026-11-28).
gc.disable()


def pytest_collection_finish() -> None:
    """Freezes the objects made so far, so that the garbage collector skips them during the tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Makes HTTP clients load only one root certificate. To load all 140 takes 20 ms for each client, and no test needs
    a certificate."""
    try:
        import certifi
    except ImportError:
        return  # without certifi there are no HTTP clients either
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    one = tmp_path_factory.mktemp("certificates") / "one.pem"
    one.write_text(first + end)
    os.environ["SSL_CERT_FILE"] = str(one)


@pytest.fixture(scope="session")
def reciter() -> Any:
    from stopscan_conformance import Reciter

    return Reciter()


@pytest.fixture(scope="session")
def checkpoint(reciter: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reciter.write(tmp_path_factory.mktemp("reciter"))
