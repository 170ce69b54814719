"""All cases of all APIs, made once for the test files that need them."""

from stopscan_conformance import APIS, cases

EVERY = cases(*APIS, deep=True)
BY_NAME = {str(case): case for case in EVERY}
