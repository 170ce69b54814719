"""``python -m stopscan_clients.proxy UPSTREAM``: exact stops before any server."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import sys
from collections.abc import Sequence
from socket import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from stopscan._command_line import add_pairs, add_stops, stop_set
from stopscan_clients.native import LIMITS
from stopscan_clients.proxy import Limits, proxy


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "python -m stopscan_clients.proxy",
        description="Passes requests on, and ends answers at stops: those of the command line, and each request's own.",
    )
    made.add_argument("upstream", help="the URL of the server without its paths, such as http://127.0.0.1:8000")
    made.add_argument("--host", default="127.0.0.1", help="the address to listen at (%(default)s)")
    made.add_argument("--port", type=int, default=8080, help="the port to listen at (%(default)s)")
    add_stops(made)
    add_pairs(made)
    made.add_argument("--drain", action="store_true", help="read on after a stop, for the usage")
    made.add_argument(
        "--api",
        choices=sorted(LIMITS),
        help="whose limits hold for the stops of whole answers that go on to the server; none: no stop goes on",
    )
    made.add_argument("--lenient", action="store_true", help="pass streams of APIs that are not known, stops and all")
    seconds: dict[str, Any] = {"metavar": "SECONDS"}
    limit = Limits()
    made.add_argument("--timeout", type=float, default=limit.read, **seconds, help="of a silent server (%(default)g)")
    made.add_argument("--grace", type=int, default=30, **seconds, help="for open answers after SIGTERM (%(default)s)")
    made.add_argument("--max-body", type=int, default=limit.body, metavar="BYTES", help="of a request (%(default)s)")
    made.add_argument("--max-stops", type=int, default=limit.stops, metavar="N", help="of a request (%(default)s)")
    return made


class Server(uvicorn.Server):
    """Says where it listens, and lets the answers that it cancels at the end say so."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in self.servers[:1]:
            host, port, *_ = listening.sockets[0].getsockname()
            print(
                f"stopscan_clients.proxy listens at http://{f'[{host}]' if ':' in host else host}:{port}",
                file=sys.stderr,
            )

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        await super().shutdown(sockets)
        if cancelled := {*self.server_state.tasks}:
            await asyncio.wait(cancelled, timeout=2)


def ending_quietly(app: ASGIApp) -> ASGIApp:
    """The same application, which returns where it was cancelled at the end: its answer has said so."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return run


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    try:
        app = proxy(
            options.upstream,
            stop_set(options, options.protect),
            api=options.api,
            include_stop=options.include_stop,
            drain=options.drain,
            strict=not options.lenient,
            limits=Limits(read=options.timeout, body=options.max_body, stops=options.max_stops),
        )
    except ValueError as error:
        parser().error(str(error))
    # No access log: paths have keys in them (Gemini's `?key=`).
    config = uvicorn.Config(
        ending_quietly(app),
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        date_header=False,  # the upstream's
        server_header=False,
        timeout_graceful_shutdown=options.grace,
        backlog=2048,
    )
    server = Server(config)
    with contextlib.suppress(KeyboardInterrupt):  # as uvicorn.run does
        server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
