"""How many examples hypothesis tries, and which. `tests/python/conftest.py` and `clients/tests/conftest.py` import this
module.

By default, hypothesis tries the same examples in each run, and keeps no database in the working tree.
"""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

# Hypothesis also tries mutations of earlier examples. To find mutations that are new, it repeats many choices, which
# took up to four fifths of a test's time. Hypothesis mutates only the examples of its own generator, not those of
# another one. So register the generator again, under another name.
AVAILABLE_PROVIDERS["random"] = f"{HypothesisProvider.__module__}.{HypothesisProvider.__name__}"

COMMON = {"database": None, "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("stopscan", max_examples=60, derandomize=True, backend="random", **COMMON)
# New examples in each run. A failure prints how to reproduce it.
settings.register_profile("nightly", derandomize=False, print_blob=True, max_examples=1_000, **COMMON)
# Few examples, for a busy machine.
settings.register_profile("quick", max_examples=10, derandomize=True, backend="random", **COMMON)
settings.load_profile("stopscan")
