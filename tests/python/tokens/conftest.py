from __future__ import annotations

import pytest
from families import load
from vocabularies import Vocabulary


@pytest.fixture(scope="module")
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    """The vocabulary that `families.over` names."""
    return load(request.param)
