"""``python -m stopscan_clients.proxy UPSTREAM``: exact stops before any server."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from stopscan.command_line import add_pairs, add_stops, stop_set
from stopscan_clients.native import LIMITS
from stopscan_clients.proxy import Limits, proxy
from stopscan_clients.proxy._server import serve

# The options that are limits, and their fields.
LIMITED = (
    ("--timeout", "read", "SECONDS", "of a silent server"),
    ("--request-timeout", "request", "SECONDS", "of a client that sends half a request, or reads nothing"),
    ("--max-connections", "connections", "N", "of clients"),
    ("--max-body", "body", "BYTES", "of a request"),
    ("--max-stops", "stops", "N", "stops of a request"),
    ("--max-patterns", "patterns", "N", "patterns of a request"),
    ("--max-text", "bytes", "BYTES", "of a request's stops and patterns, and of its markers"),
    ("--max-regions", "regions", "N", "regions of a request"),
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "stopscan-proxy",
        description="Passes requests on, and ends answers at stops: those of the command line, and each request's own.",
    )
    made.add_argument("upstream", help="the URL of the server without its paths, such as http://127.0.0.1:8000")
    made.add_argument("--host", default="127.0.0.1", help="the address to listen at (%(default)s)")
    made.add_argument("--port", type=int, default=8080, help="the port to listen at (%(default)s)")
    add_stops(made)
    add_pairs(made)
    made.add_argument("--drain", action="store_true", help="read on after a stop, for the usage")
    made.add_argument("--api", choices=sorted(LIMITS), help="whose limits hold for stops that go on; none: no stop")
    made.add_argument("--lenient", dest="strict", action="store_false", help="pass streams of APIs that are not known")
    made.add_argument("--grace", type=int, default=30, metavar="SECONDS", help="after SIGTERM (%(default)s)")
    for option, name, unit, text in LIMITED:
        default = getattr(Limits(), name)
        made.add_argument(
            option, dest=name, type=type(default), default=default, metavar=unit, help=f"{text} (%(default)s)"
        )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    limits = Limits(**{name: getattr(options, name) for _, name, _, _ in LIMITED})
    passed = {name: getattr(options, name) for name in ("api", "include_stop", "drain", "strict")}
    try:
        app = proxy(options.upstream, stop_set(options, options.protect), limits=limits, **passed)
    except ValueError as error:
        parser().error(str(error))
    return serve(app, limits, host=options.host, port=options.port, grace=options.grace)


if __name__ == "__main__":
    sys.exit(main())
