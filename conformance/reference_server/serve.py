"""uvicorn, with limits of time: for clients that do not go on with a request or do not read, and for the end."""

from __future__ import annotations

import asyncio
import logging
import socket
from struct import pack
from typing import Any

import h11
import uvicorn
from engine import Engine
from sse_starlette.sse import AppStatus
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger("uvicorn.error")
LAST_EVENTS = 2.0  # seconds: how long the clients have to read why their answers were cut


class Connection(H11Protocol):
    """A connection whose client has so many seconds to send the head of a request, and to read what waits for it.
    The body of a request has its limit in the app."""

    head_seconds = 30.0
    read_seconds = 60.0
    kernel_bytes = 16 * 1024  # for a client that does not read; the kernel would keep megabytes for each
    # Of a request at a time: h11 takes 2 ms for so many bytes in chunks of a byte, or in lines of a head.
    step_bytes = 1024
    head_bytes, head_lines = 16 * 1024, 100

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.max_size = self.step_bytes
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.kernel_bytes)
        self._head = self.loop.call_later(self.head_seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # IDLE: of the next request there is only a part of the head.
        begun = self.conn.trailing_data[0] if self.conn.their_state is h11.IDLE else b""
        if begun.count(b"\n") > self.head_lines:
            self.send_400_response("the head has too many lines")
        elif self.conn.their_state is not h11.IDLE:
            self._head = _cancelled(self._head)
            if not self.transport.get_write_buffer_size():  # the answer before was read
                self._reader = _cancelled(self._reader)
        elif self._head is None and begun:
            self._head = self.loop.call_later(self.head_seconds, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader = self._reader or self.loop.call_later(self.read_seconds, self._unread)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.cycle.response_complete:
            self._reader = _cancelled(self._reader)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size():  # which `close` would wait for, however long it takes
            self._reader = self._reader or self.loop.call_later(self.read_seconds, self._unread)
        else:
            self._reader = _cancelled(self._reader)

    def _unread(self) -> None:
        if self.transport.get_write_buffer_size():
            # The kernel, too, is to forget what was not read.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
            self.transport.abort()
        self._reader = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._head, self._reader = _cancelled(self._head), _cancelled(self._reader)
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """After SIGTERM answers have `grace` seconds. Those that are not through are then ended in their API's form."""

    def __init__(self, app: Any, engine: Engine, grace: float, **options: Any) -> None:
        AppStatus.disable_automatic_graceful_drain()  # streams, too, have the time of grace
        # uvicorn gives an idle connection up after 5 seconds, which is when clients of a busy machine come back.
        kept = int(Connection.head_seconds)
        config = uvicorn.Config(
            app,
            http=Connection,
            access_log=False,
            loop="asyncio",
            timeout_keep_alive=kept,
            h11_max_incomplete_event_size=Connection.head_bytes,
            **options,
        )
        super().__init__(config)
        self._engine = engine
        self._grace = grace

    async def shutdown(self, sockets: Any = None) -> None:
        ending = asyncio.create_task(self._end())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    async def _end(self) -> None:
        await asyncio.sleep(self._grace)
        if self.server_state.tasks:
            log.warning("The time of grace is over: %d answers are cut", len(self.server_state.tasks))
        await asyncio.to_thread(self._engine.close)
        await asyncio.sleep(LAST_EVENTS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # who does not read would be waited for


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
