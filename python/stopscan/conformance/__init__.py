"""Stop sequences of a server, end to end: what the official clients get, against what they should.

The server runs the reciting checkpoint, which `python -m stopscan.testing.reciter DIR` writes. `python -m
stopscan.conformance URL` prints a table; a test suite takes the same cases:

    SERVER = Server("http://127.0.0.1:8000")

    @pytest.mark.parametrize("case", cases("openai-chat", "anthropic"), ids=str)
    def test_stops(case: Case) -> None:
        result = case.run(SERVER)
        assert result.outcome == "pass", result.detail
"""

from stopscan.conformance._apis import APIS
from stopscan.conformance._cases import Case, Result, cases
from stopscan.conformance._judge import COLUMNS
from stopscan.conformance._server import Server

__all__ = ["APIS", "COLUMNS", "Case", "Result", "Server", "cases"]
