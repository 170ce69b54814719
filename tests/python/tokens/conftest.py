from __future__ import annotations

import pytest
from families import load
from vocabularies import Vocabulary


@pytest.fixture(scope="module")
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    """The vocabulary of the test's parameter, which the decorator `families.over` sets."""
    return load(request.param)
