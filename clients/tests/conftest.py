"""Shared by the tests: one root certificate for all clients, and a server that replays streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import certifi
import hypothesis_profiles  # noqa: F401 (the import sets how many examples Hypothesis tries)
import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise the import of litellm downloads a list of prices

from replay import Replay, replaying


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
