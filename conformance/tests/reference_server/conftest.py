from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture(scope="session")
def url(reciter: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from server_harness import Engine, served

    with served(Engine(str(reciter.write(tmp_path_factory.mktemp("model") / "reciter")))) as url:
        yield url


@pytest.fixture(scope="session")
def client(url: str) -> SimpleNamespace:
    from server_harness import clients

    return clients(url)


@pytest.fixture(scope="session")
def harmony(checkpoint: Path) -> Iterator[SimpleNamespace]:
    """The official clients of a server whose model writes in the channels of Harmony, the format of gpt-oss."""
    from server_harness import Engine, clients, served

    with served(Engine(str(checkpoint)), "harmony") as url:
        yield clients(url)
