from __future__ import annotations

import pytest
from families import load
from vocabularies import Vocabulary


@pytest.fixture(scope="module")
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    """The vocabulary with which the decorator `families.over` runs the test."""
    return load(request.param)
