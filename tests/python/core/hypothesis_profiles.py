"""How many examples hypothesis tries, and which. `tests/python/conftest.py` and `clients/tests/conftest.py` import this
module.

By default, hypothesis tries the same examples in each run, and keeps no database in the working tree.
"""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

# Switches mutations off. Hypothesis also tries mutations of earlier examples, which takes half of the time: with them
# `test_agrees_with_re` took 9 s, without them 4 s (hypothesis 6.170, CPython 3.11.7, AMD EPYC, 2 shared cores,
# 2026-11-28). It mutates examples only if its generator has the name "hypothesis". So the same generator gets a second
# name here.
AVAILABLE_PROVIDERS["random"] = f"{HypothesisProvider.__module__}.{HypothesisProvider.__name__}"

COMMON = {"database": None, "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("stopscan", max_examples=60, derandomize=True, backend="random", **COMMON)
# With this profile, hypothesis tries new examples in each run. A failure prints how to reproduce it.
settings.register_profile("nightly", derandomize=False, print_blob=True, max_examples=1_000, **COMMON)
settings.load_profile("stopscan")
