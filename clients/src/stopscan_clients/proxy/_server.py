"""Runs the proxy with uvicorn. Closes the connections of slow clients, and limits the time of the shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
from functools import partial
from socket import socket
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from stopscan_clients.proxy._app import Limits, full


class Connection(H11Protocol):
    """A client's connection. It closes if the client takes too long to send the head of a request or to read the
    answer. The app limits the time for the body of a request."""

    def __init__(self, *args: Any, limits: Limits, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` is called as soon as any data waits
        if len(self.connections) > self._limits.connections:
            self.app = cast("Any", full)
        self._time("head", True)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time("head", self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0]))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._time("unread", True)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._time("unread", False)

    def _time(self, what: str, waits: bool) -> None:
        """If the connection ``waits`` for the client, starts the timer named ``what``, otherwise stops it. When a timer
        expires, the connection closes."""
        if waits and what not in self._timers:
            self._timers[what] = self.loop.call_later(self._limits.request, self.transport.abort)
        elif not waits and what in self._timers:
            self._timers.pop(what).cancel()


class Server(uvicorn.Server):
    """A server that prints its address at the start. At the end, it gives cancelled answers time to send an error."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        host, port, *_ = self.servers[0].sockets[0].getsockname()
        host = f"[{host}]" if ":" in host else host
        print(f"stopscan_clients.proxy listens at http://{host}:{port}", file=sys.stderr)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        await super().shutdown(sockets)
        if cancelled := {*self.server_state.tasks}:
            await asyncio.wait(cancelled, timeout=2)


def is_fault(record: logging.LogRecord) -> bool:
    """Returns whether a record of uvicorn's log reports a fault of the proxy. uvicorn also reports each answer that
    ends early. This is not a fault of the proxy: either the proxy shuts down, or the upstream server has failed. The
    proxy logs a failure of the upstream server in one line."""
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, asyncio.CancelledError) or "without completing response" in record.getMessage())


def serve(app: ASGIApp, limits: Limits, *, host: str, port: int, grace: int) -> int:
    """Serves until SIGTERM or Ctrl-C. Returns the exit status."""
    # No access log, because URLs may contain keys (Gemini's `?key=`).
    config = uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", partial(Connection, limits=limits)),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        date_header=False,  # the upstream server sends it
        server_header=False,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=math.ceil(limits.request),
    )
    logging.getLogger("uvicorn.error").addFilter(is_fault)
    server = Server(config)
    with contextlib.suppress(KeyboardInterrupt):  # as in uvicorn.run
        server.run()
    return 0 if server.started else 1
