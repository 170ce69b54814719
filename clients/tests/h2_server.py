"""An HTTP/2 server without TLS that streams the given pieces and records whether a client has reset a stream."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import h2.config
import h2.connection
import h2.events


class H2Server:
    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self.pieces = pieces
        self.reset = threading.Event()
        self.sent = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.connections = 0

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        # A thread waits in `accept`. Without the shutdown, it would take a connection that is meant for the next server
        # on this port.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self, connection: socket.socket) -> None:
        state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        state.initiate_connection()
        connection.sendall(state.data_to_send())
        streams: dict[int, Iterator[bytes]] = {}
        connection.settimeout(0.02)
        while True:
            try:
                data = connection.recv(65536)
                if not data:
                    return
            except TimeoutError:
                data = b""
            except OSError:
                return
            for event in state.receive_data(data) if data else ():
                if isinstance(event, h2.events.StreamEnded):
                    headers = [(":status", "200"), ("content-type", "text/event-stream")]
                    state.send_headers(event.stream_id, headers)
                    streams[event.stream_id] = self.pieces()
                elif isinstance(event, h2.events.StreamReset):
                    streams.pop(event.stream_id, None)
                    self.reset.set()
            for number, pieces in list(streams.items()):
                piece = next(pieces, None)
                if piece is None:
                    state.end_stream(number)
                    del streams[number]
                elif state.local_flow_control_window(number) > len(piece):
                    state.send_data(number, piece)
                    self.sent += 1
            connection.sendall(state.data_to_send())


@contextmanager
def h2_serving(pieces: Callable[[], Iterator[bytes]]) -> Iterator[H2Server]:
    server = H2Server(pieces)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        server.close()
