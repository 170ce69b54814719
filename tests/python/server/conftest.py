from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stopscan.conformance import Server
from stopscan.testing.reciter import Reciter


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from server_harness import Engine, served

    with served(Engine(str(Reciter().write(tmp_path_factory.mktemp("model") / "reciter")))) as url:
        yield url


@pytest.fixture(scope="session")
def client(url: str) -> Any:
    return Server(url)
