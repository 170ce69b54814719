"""``python -m stopscan.proxy UPSTREAM``: exact stops before any server."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

import uvicorn

from stopscan import StopSet
from stopscan.clients._native import LIMITS
from stopscan.proxy import Limits, proxy
from stopscan.repeats import add_repeat


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "python -m stopscan.proxy", description="Passes requests on, and ends answers at stops."
    )
    many = {"action": "append", "default": [], "metavar": "TEXT"}
    made.add_argument("upstream", help="the URL of the server, such as http://127.0.0.1:8000")
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=8080)
    made.add_argument("--stop", **many, help="a stop of every request, beside its own")  # type: ignore[arg-type]
    made.add_argument("--visible", **many, help="one that stays in the text")  # type: ignore[arg-type]
    made.add_argument("--pattern", **many, help="a regular expression as a stop")  # type: ignore[arg-type]
    made.add_argument(
        "--protect",
        nargs=2,
        action="append",
        default=[],
        metavar=("OPEN", "CLOSE"),
        help="markers of text without stops",
    )
    made.add_argument("--include-stop", action="store_true", help="keep every stop in the text")
    made.add_argument("--drain", action="store_true", help="read on after a stop, for the usage")
    add_repeat(made)
    made.add_argument(
        "--api",
        choices=sorted(LIMITS),
        help="whose limits hold for the stops of whole answers that go on to the server; none: no stop goes on",
    )
    made.add_argument("--lenient", action="store_true", help="pass streams of APIs that are not known, stops and all")
    made.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds that the server may be silent")
    made.add_argument("--grace", type=int, default=30, metavar="S", help="seconds for open answers after SIGTERM")
    made.add_argument("--max-body", type=int, default=Limits().body, metavar="BYTES", help="of a request")
    made.add_argument("--max-stops", type=int, default=Limits().stops, metavar="N", help="of a request")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    try:
        protect = [(opening, closing) for opening, closing in options.protect]
        stops = StopSet(
            options.stop,
            visible=options.visible,
            patterns=options.pattern,
            protect=protect,
            repeat=options.repeat,
        )
        app = proxy(
            options.upstream,
            stops,
            api=options.api,
            include_stop=options.include_stop,
            drain=options.drain,
            strict=not options.lenient,
            limits=Limits(read=options.timeout, body=options.max_body, stops=options.max_stops),
        )
    except ValueError as error:
        parser().error(str(error))
    # No access log: paths have keys in them (Gemini's `?key=`).
    uvicorn.run(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        date_header=False,  # the upstream's
        server_header=False,
        timeout_graceful_shutdown=options.grace,
        backlog=2048,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
