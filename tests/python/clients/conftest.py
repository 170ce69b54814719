from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or its import looks for a list of prices on the network

from replay import Replay, replaying


@pytest.fixture(scope="session")
def server() -> Iterator[Replay]:
    with replaying() as replay:
        yield replay
