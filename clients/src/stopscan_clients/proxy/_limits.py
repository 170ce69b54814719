"""What a client may ask of the proxy."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException

STOPS = ("stop", "stop_sequences", "stopSequences", "patterns")  # what the APIs call a request's stops


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the proxy.

    - ``connect``: seconds to connect to the upstream server.
    - ``read``: seconds for which the upstream server may be silent.
    - ``request``: seconds for a client to send the body of a request. In the command, also for the head of a request,
      and for reading what waits.
    - ``connections``: how many clients may be connected. Only the command counts them.
    - ``body``: bytes of a request's body.
    - ``stops``: how many stops and patterns a request may have.
    - ``stop_length``: how many characters its stops and patterns may have together.
    """

    connect: float = 10
    read: float = 600
    request: float = 60
    connections: int = 4096
    body: int = 1 << 26
    stops: int = 1024
    stop_length: int = 1 << 16

    def check(self, body: bytes | bytearray) -> None:
        """Raises ``HTTPException`` for a request with more stops than are allowed."""
        stops: list[Any] = []

        def collect(fields: list[tuple[str, Any]]) -> None:
            stops.extend(one for name, value in fields if name in STOPS and isinstance(value, list) for one in value)

        with suppress(RecursionError, ValueError):  # the transport passes on what is no JSON
            if b"stop" in body:
                json.loads(body, object_pairs_hook=collect)
        if len(stops) > self.stops:
            raise HTTPException(400, f"{len(stops):,} stops are more than the {self.stops:,} that are allowed")
        if sum(len(one) for one in stops if isinstance(one, str)) > self.stop_length:
            raise HTTPException(400, f"the stops have more than {self.stop_length:,} characters")
