"""``python -m stopscan_clients.proxy UPSTREAM``: runs the proxy in front of any server."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from stopscan.command_line import add_pairs, add_stops, stop_set
from stopscan_clients.native import LIMITS
from stopscan_clients.proxy import Limits, proxy
from stopscan_clients.proxy._server import serve

# The options for limits: name, field of `Limits`, unit and help.
LIMITED = (
    ("--timeout", "read", "SECONDS", "how long the server may be silent"),
    ("--request-timeout", "request", "SECONDS", "how long a client may take to send a request or to read the answer"),
    ("--max-connections", "connections", "N", "how many clients may be connected"),
    ("--max-body", "body", "BYTES", "the longest body of a request"),
    ("--max-stops", "stops", "N", "the most stops of a request"),
    ("--max-patterns", "patterns", "N", "the most patterns of a request"),
    ("--max-text", "bytes", "BYTES", "the most text in a request's stops and patterns, and in its markers"),
    ("--max-regions", "regions", "N", "the most regions of a request"),
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "stopscan-proxy",
        description="Passes requests to a server, and ends answers at the stops of the command line and the request.",
    )
    made.add_argument("upstream", help="the URL of the server without its paths, such as http://127.0.0.1:8000")
    made.add_argument("--host", default="127.0.0.1", help="the address to listen at (%(default)s)")
    made.add_argument("--port", type=int, default=8080, help="the port to listen at (%(default)s)")
    add_stops(made)
    add_pairs(made)
    made.add_argument("--drain", action="store_true", help="after a stop, read the rest of the answer for the usage")
    made.add_argument("--api", choices=sorted(LIMITS), help="the server's API; none: send no stops to the server")
    made.add_argument("--lenient", dest="strict", action="store_false", help="pass streams of unknown APIs unchanged")
    made.add_argument("--grace", type=int, default=30, metavar="SECONDS", help="to end after a SIGTERM (%(default)s)")
    for option, name, unit, text in LIMITED:
        most = getattr(Limits(), name)
        made.add_argument(option, dest=name, type=type(most), default=most, metavar=unit, help=f"{text} (%(default)s)")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    made = parser()
    options = made.parse_args(argv)
    for option, name, *_ in (("--port", "port"), ("--grace", "grace"), *LIMITED):
        if not 0 <= getattr(options, name) <= (65535 if name == "port" else sys.maxsize):  # also true for NaN
            made.error(f"argument {option}: {getattr(options, name)} is out of range")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    limits = Limits(**{name: getattr(options, name) for _, name, _, _ in LIMITED})
    passed = {name: getattr(options, name) for name in ("api", "include_stop", "drain", "strict")}
    try:
        app = proxy(options.upstream, stop_set(options, options.protect), limits=limits, **passed)
    except ValueError as error:
        made.error(str(error))
    return serve(app, limits, host=options.host, port=options.port, grace=options.grace)


if __name__ == "__main__":
    sys.exit(main())
