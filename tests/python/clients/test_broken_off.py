"""What comes out where a stream breaks off, or cannot be scanned: a test for each defect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
import wire
from memory import Server, packages, read_all, text_in
from replay import sse

from stopscan.clients import StopTransport, scan_events


@packages
def test_closing_events_that_never_came_were_left_out_of_a_stream_that_is_drained(package: Any) -> None:
    def broken() -> Iterator[bytes]:
        yield from map(sse, wire.chat(["one END", "two"])[:3])
        raise package.ReadError("gone")

    client = package.Client(transport=StopTransport("END", transport=Server(package, broken()), drain=True))
    seen: list[bytes] = []
    with pytest.raises(package.ReadError):
        read_all(client, seen)
    read = b"".join(seen)
    assert text_in(read) == "one "
    assert read.count(b'"matched_stop":"END"') == 1


def test_an_echo_of_token_ids_was_scanned() -> None:
    chunks = [{"id": "1", "object": "text_completion", "choices": [{"index": 0, "text": "Q: END A: 4"}]}]
    server = Server(httpx, map(sse, chunks))
    client = openai.OpenAI(base_url="http://server/v1", api_key="none", http_client=httpx.Client(transport=server))
    stream = client.completions.create(model="m", prompt=[1, 2], echo=True, stream=True)
    with pytest.raises(ValueError, match="echo with a prompt of token ids"):
        list(scan_events(stream, "END"))
