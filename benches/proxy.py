"""Times a thousand streams at once, through the proxy and directly from the server, and measures the proxy's memory.

    python benches/proxy.py [STREAMS]

The server and the proxy run in separate processes. A stream has 50 events of a chat, one a second, and a stop in the
40th event. The streams run through the proxy three times: its memory must not grow after the first time.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "clients" / "tests"))

from replay import sse
from report import heading, markdown, options
from running import free_port, running
from wire import chat_choice, chat_chunk

EVENTS, STOP_AT, PAUSE = 50, 40, 1.0
BEGIN = 10  # seconds: the streams begin one after the other in this time
TEXTS = [f"word {number} " if number != STOP_AT else "END" for number in range(1, EVENTS + 1)]
PIECES = [sse(chat_chunk([chat_choice(content=text)])) for text in TEXTS]
BODY = json.dumps({"stream": True, "stop": "END"}).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(HEAD)
            for piece in PIECES:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
                await asyncio.sleep(PAUSE)
            writer.write(b"0\r\n\r\n")
            await reader.read(len(BODY))
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def serve(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=4096)
    async with server:
        await server.serve_forever()


async def ask(port: int, wait: float) -> tuple[float, float, bytes]:
    """Sends a request after ``wait`` seconds. Returns the seconds to the first text and to the end, and the answer."""
    await asyncio.sleep(wait)
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    body, first = b"", 0.0
    while not body.endswith(b"0\r\n\r\n"):
        piece = await reader.read(65536)
        assert piece, f"the connection was closed before the end: {body!r}"
        first = first or (b"word" in piece and time.monotonic() - begun) or 0.0
        body += piece
    writer.close()
    return first, time.monotonic() - begun, body


async def round_of(port: int, count: int) -> list[tuple[float, float, bytes]]:
    return await asyncio.gather(*[ask(port, BEGIN * number / count) for number in range(count)])


def resident(pid: int) -> float:
    """The memory of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def row(name: str, answers: list[tuple[float, float, bytes]], memory: str) -> tuple[str, ...]:
    firsts, ends = (sorted(column) for column in list(zip(*answers, strict=True))[:2])
    middle = len(answers) // 2
    return name, f"{firsts[middle]:.2f}", f"{firsts[-1]:.2f}", f"{ends[middle]:.1f}", f"{ends[-1]:.1f}", memory


def main(count: int) -> None:
    head = (
        "",
        "first text: median",
        "first text: the last stream",
        "end: median",
        "end: the last stream",
        "memory in MB: before the first round, after this round",
    )
    rows = [head]
    port = free_port()
    upstream = subprocess.Popen([sys.executable, __file__, "serve", str(port)])
    try:
        with running(f"http://127.0.0.1:{port}") as proxy:
            own = int(proxy.url.rpartition(":")[2])
            asyncio.run(round_of(own, 1))
            before = resident(proxy.process.pid)
            answers = asyncio.run(round_of(port, count))
            rows.append(row("the server alone, all 50 events", answers, ""))
            for number in range(1, 4):
                answers = asyncio.run(round_of(own, count))
                leaked = sum(b"END" in body.replace(b'"matched_stop":"END"', b"") for _, _, body in answers)
                ended = sum(b'"matched_stop":"END"' in body for _, _, body in answers)
                assert (leaked, ended) == (0, count), "each is cut, and none leaks"
                memory = f"{before:.0f}, {resident(proxy.process.pid):.0f}"
                rows.append(row(f"through the proxy, round {number}", answers, memory))
    finally:
        upstream.kill()
        upstream.wait()
    print(heading(f"{count:,} streams at once through the proxy", ["httpx", "uvicorn", "starlette"]), end="\n\n")
    print(markdown(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(int(sys.argv[2])))
    else:
        parser = options(__doc__)
        parser.add_argument("streams", nargs="?", type=int, default=1000)
        main(parser.parse_args().streams)
