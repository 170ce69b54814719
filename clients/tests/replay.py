"""A server that replays events in the wire forms of the APIs, one at a time, and notes when a client leaves.

The `model` of a request names the recording to replay. The wire forms follow the references of the APIs and the types
of the official clients.
"""

from __future__ import annotations

import json
import select
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Event = dict[str, Any]


@dataclass
class Recording:
    """The answer to the requests for one model. After `pause` events the server waits up to 20 seconds for the client
    to leave, where a real server would continue to send. `sent` counts the events that were sent."""

    events: list[Event] = field(default_factory=list)
    whole: Event | None = None  # the answer to a request that asks for no stream
    pause: int | None = None  # after this number of events the server waits
    broken: bool = False  # whether the connection is lost after the last event
    sent: int = 0
    gone: threading.Event = field(default_factory=threading.Event)
    requests: list[Event] = field(default_factory=list)


Answer = Recording | Callable[[str, Event], Recording]  # a function is called with the path and the body of the request


def sse(event: Event) -> bytes:
    name = f"event: {event['type']}\n" if isinstance(event.get("type"), str) else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def line(event: Event) -> bytes:
    return json.dumps(event).encode() + b"\n"


def aws(event: Event) -> bytes:
    """Returns an event of Converse in AWS's binary event stream: prelude, headers, payload, checksums."""
    ((name, payload),) = event.items()
    data = json.dumps(payload).encode()
    headers = b""
    for key, value in ((":event-type", name), (":content-type", "application/json"), (":message-type", "event")):
        headers += bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    prelude = struct.pack(">II", len(headers) + len(data) + 16, len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + data
    return message + struct.pack(">I", zlib.crc32(message))


def elements() -> Callable[[Event], bytes]:
    """Returns a function that writes each event as the next element of a JSON array. It does not write the end of the
    array."""
    before = iter([b"["])
    return lambda event: next(before, b",\r\n") + json.dumps(event).encode()


class Replay(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # more waiting connections would be reset; a test opens 300 at once

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.recordings: dict[str, Answer] = {}
        self.default: Answer = Recording()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def record(self, answer: Answer) -> str:
        """Adds an answer, and returns the name of a model that gives it."""
        name = f"model-{len(self.recordings)}"
        self.recordings[name] = answer
        return name

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing: in these tests clients leave on purpose."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # buffered, so that the headers and the first event are sent together
    server: Replay

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        answer = self.server.recordings.get(body.get("model") or _model_in(path), self.server.default)
        recording = answer if isinstance(answer, Recording) else answer(path, body)
        recording.requests.append(body)
        streamed = "stream" in path or body.get("stream", path.startswith("/api/"))
        if not streamed:
            self._whole(recording.whole)
        elif path.endswith("/converse-stream"):
            self._stream("application/vnd.amazon.eventstream", recording, aws)
        elif path.startswith("/api/"):
            self._stream("application/x-ndjson", recording, line)
        elif path.endswith(":streamGenerateContent") and "alt=sse" not in self.path:
            self._stream("application/json", recording, elements())
        else:
            self._stream("text/event-stream", recording, sse, b"data: [DONE]\n\n" if _ends_with_done(path) else b"")

    def _whole(self, answer: Event | None) -> None:
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _stream(self, media: str, recording: Recording, form: Callable[[Event], bytes], last: bytes = b"") -> None:
        self.send_response(200)
        self.send_header("content-type", media)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for number, event in enumerate(recording.events):
                if number == recording.pause and self._client_left(20):
                    raise ConnectionError
                self._send(form(event))
                recording.sent += 1
        except ConnectionError:
            recording.gone.set()
            self.close_connection = True
            return
        if recording.broken:
            self.close_connection = True
            return
        if last:
            self._send(last)
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _send(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _client_left(self, seconds: float) -> bool:
        readable, _, _ = select.select([self.connection], [], [], seconds)
        try:
            return bool(readable) and self.connection.recv(1) == b""
        except OSError:
            return True


def _model_in(path: str) -> str:
    return path.rpartition("models/")[2].partition(":")[0] if "models/" in path else path.split("/")[2]


def _ends_with_done(path: str) -> bool:
    return path.endswith("completions")


@contextmanager
def replaying() -> Iterator[Replay]:
    with Replay() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
