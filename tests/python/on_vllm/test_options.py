"""Compares ``_reportable`` with a simpler version. ``_reportable`` returns the stops that vLLM can report: vLLM never
reports a stop that ends with an earlier stop of the list."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from hypothesis import given
from hypothesis import strategies as st

from stopscan.vllm._adapter import _reportable

pytestmark = pytest.mark.vllm


@given(st.lists(st.text("ab", min_size=1, max_size=4), max_size=12))
def test_of_stops_that_end_alike_the_first_is_reported(stops: list[str]) -> None:
    assert _reportable(stops) == [
        stop for place, stop in enumerate(stops) if not any(stop.endswith(earlier) for earlier in stops[:place])
    ]
