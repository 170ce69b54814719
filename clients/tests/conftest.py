"""Shared by the tests: a hypothesis profile (the same examples in every run, no database in the working tree), one
certificate for all clients, and a server that replays streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from hypothesis import HealthCheck, settings

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise the import of litellm downloads a list of prices

from replay import Replay, replaying

settings.register_profile(
    "stopscan", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# Few examples, for a busy machine: `pytest --hypothesis-profile=quick`.
settings.register_profile("quick", max_examples=10, derandomize=True, database=None, deadline=None)
settings.load_profile("stopscan")


@pytest.fixture(scope="session", autouse=True)
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Makes clients trust only one certificate authority. Each new client usually reads 140 authorities, which takes 20
    ms. No test connects to a server that needs more of them."""
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    pem = tmp_path_factory.mktemp("certificates") / "one.pem"
    pem.write_text(first + end)
    os.environ["SSL_CERT_FILE"] = str(pem)


@pytest.fixture(scope="session")
def server() -> Iterator[Replay]:
    with replaying() as replay:
        yield replay
