"""Tests the stop sequences of a server end to end: compares what a client gets with what it should get.

The server runs a checkpoint that recites known texts; `stopscan-conformance reciter DIR` writes the checkpoint.
`stopscan-conformance URL` prints the rules that the server breaks. A test suite can use the same cases:

    SERVER = Server("http://127.0.0.1:8000")

    # `timed` cases need the server for themselves: run them separately, without `pytest -n`.
    @pytest.mark.parametrize("case", [case for case in cases("openai-chat") if not case.timed], ids=str)
    def test_stops(case: Case) -> None:
        result = case.run(SERVER)
        if result.outcome == "not supported":
            pytest.skip(result.detail)
        assert result.outcome == "pass", result.detail
"""

from stopscan_conformance._version import __version__
from stopscan_conformance.apis import APIS
from stopscan_conformance.cases import Case, Result, cases
from stopscan_conformance.client import Server
from stopscan_conformance.judge import COLUMNS, RULES
from stopscan_conformance.reciter import Reciter

__all__ = ["APIS", "COLUMNS", "RULES", "Case", "Reciter", "Result", "Server", "__version__", "cases"]
