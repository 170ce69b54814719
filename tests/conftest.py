"""One hypothesis profile for everybody: the same examples in every run, and no database in the working tree."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "stopscan", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("stopscan")
