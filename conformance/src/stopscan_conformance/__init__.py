"""Tests the stop sequences of a server end to end: compares what a client gets with what it should get.

The server runs a checkpoint that recites known texts; `stopscan-conformance reciter DIR` writes the checkpoint.
`stopscan-conformance URL` prints the rules that the server breaks. A test suite can use the same cases, one by one, or
as parameters of pytest (`stopscan_conformance.pytest`):

    server = Server("http://127.0.0.1:8000")
    for case in cases("openai-chat"):
        print(case, case.run(server).outcome)
"""

from stopscan_conformance._version import __version__
from stopscan_conformance.apis import APIS
from stopscan_conformance.cases import Case, Result, cases
from stopscan_conformance.client import Server
from stopscan_conformance.judge import COLUMNS, RULES
from stopscan_conformance.reciter import Reciter

__all__ = ["APIS", "COLUMNS", "RULES", "Case", "Reciter", "Result", "Server", "__version__", "cases"]
