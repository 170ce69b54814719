from __future__ import annotations

from collections.abc import Iterator

import pytest
from replay import Replay, replaying


@pytest.fixture(scope="session")
def server() -> Iterator[Replay]:
    with replaying() as replay:
        yield replay
