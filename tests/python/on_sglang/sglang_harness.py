"""Starts sglang's server on a CPU with stopscan's plugin. Also computes, by brute force, the answers that the server
must give."""

from __future__ import annotations

import codecs
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

COMMAND = (
    "--device cpu --attention-backend torch_native --sampling-backend pytorch --disable-radix-cache "
    "--skip-server-warmup --mem-fraction-static 0.1 --dtype float32 --max-total-tokens 16384 "
    "--served-model-name reciter"
)


@contextmanager
def served(
    checkpoint: Path,
    log: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
    faults: bool = False,
    patience: float = 600,
) -> Iterator[httpx.Client]:
    """Starts a server, and yields a client of it. At the end, checks whether stopscan has failed in the server: with
    ``faults`` it must have failed, and without ``faults`` never."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(checkpoint), "--port", str(port)]
    command += [*COMMAND.split(), *options]
    surroundings = {**os.environ, "STOPSCAN_SGLANG": "1", **(environment or {})}
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=surroundings)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300, limits=httpx.Limits(max_connections=None))
    try:
        deadline = time.monotonic() + patience
        while not _healthy(client):
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield client
        assert ("stopscan failed" in log.read_text()) == faults
        assert process.poll() is None, log.read_text()[-3000:]
    finally:
        client.close()
        process.terminate()
        process.wait(120)


def _healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def load(server: httpx.Client) -> list[tuple[int, int]]:
    """For each scheduler: the number of requests that run now, and the number of tokens in the cache."""
    cores = server.get("/v1/loads", params={"include": "core"}).json()["loads"]
    return [(core["num_running_reqs"], core["num_used_tokens"]) for core in cores]


def first_stop(text: str, stops: Sequence[str], patterns: Sequence[str]) -> tuple[int, int, str] | None:
    """The stop that completes first, as (beginning, end, the stop or pattern). If several complete at the same place,
    the one that begins first."""
    for end in range(1, len(text) + 1):
        for begin in range(end):
            for stop in stops:
                if text[begin:end] == stop:
                    return begin, end, stop
            for pattern in patterns:
                if re.fullmatch(pattern, text[begin:end]):
                    return begin, end, pattern
    return None


class Answer(NamedTuple):
    """The text of an answer, the stop or token that ended it (`None`: the token limit), and the number of generated
    tokens."""

    text: str
    matched: str | int | None
    tokens: int


def expected(
    ids: Sequence[int],
    pieces: Sequence[bytes],
    eos: int,
    *,
    stops: Sequence[str] = (),
    patterns: Sequence[str] = (),
    stop_ids: Sequence[int] = (),
    limit: int = 1 << 30,
    protect: tuple[str, str] = ("", ""),
) -> Answer:
    """The correct answer of a server that generates ``ids`` and then EOS. ``pieces`` are the bytes of the tokens.

    At the end of a stream, half a character becomes U+FFFD, which may complete a stop. The text of an end token (EOS or
    a stop token) is not part of the answer, but a stop that equals this text fires.

    With ``protect``, this function is right only for a text that begins with the opening marker and contains the
    closing marker once. No stop fires before the end of the closing marker, except inside an opening marker of several
    tokens.
    """
    opening, closing = protect
    before = 0 if pieces[:1] == [opening.encode()] else max(0, len(opening) - 1)
    for count, token_id in enumerate([*ids, eos], 1):
        ends = token_id in {*stop_ids, eos}
        final = ends or count == limit
        text = _text(pieces[: count - ends], final=final)
        start = text.find(closing) + len(closing) if closing in text else len(text)
        if found := first_stop(text[:before], stops, patterns):
            return Answer(text[: found[0]], found[2], count)
        if found := first_stop(text[start:], stops, patterns):
            return Answer(text[: start + found[0]], found[2], count)
        whole = _text(pieces[count - 1 : count], final=True) if ends and closing in text else ""
        if whole in stops:
            return Answer(text, whole, count)
        if final:
            return Answer(text, token_id if ends else None, count)
    raise AssertionError("the last of them is EOS")


def _text(pieces: Sequence[bytes], *, final: bool = False) -> str:
    """The text of ``pieces``. Half a character at the end is left out, or becomes U+FFFD if ``final``."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(b"".join(pieces), final)
