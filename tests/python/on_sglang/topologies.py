"""Sends 300 random requests to each arrangement of sglang's processes. Compares the answers with a brute-force search.

    "$(ci/sglang-env)/bin/python" tests/python/on_sglang/topologies.py [NAME ...]

Each server takes half a minute or more to start, so CI runs only one arrangement (`test_serve.py`).
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from faults import install
from sglang_harness import Answer, expected, load, served

from stopscan_conformance import Reciter
from stopscan_conformance.scripts import SCRIPTS

FAULTS = "faults injected"
TOPOLOGIES: dict[str, tuple[list[str], dict[str, str]]] = {
    "one process set": ([], {}),
    "msgpack": ([], {"SGLANG_USE_PICKLE_IPC": "0"}),
    "2 + 2 workers": (
        ["--tokenizer-worker-num", "2", "--detokenizer-worker-num", "2"],
        {"SGLANG_UVICORN_WORKER_HEALTHCHECK_TIMEOUT": "120"},  # seconds; a busy machine is slow
    ),
    "dp 2": (["--dp-size", "2"], {"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}),
    "retraction forced": ([], {"SGLANG_TEST_RETRACT": "1"}),
    FAULTS: ([], {}),
}
THINKING = [
    name
    for name in SCRIPTS
    if (text := Reciter().text(name)).startswith("<think>")
    and [text.count(mark) for mark in ("<think>", "</think>")] == [1, 1]
]
PATTERNS = ["E[A-Z]D", "[0-9], [0-9]", "[a-z]{3} [a-z]", "[^a-zA-Z ]{2}", "(o|a)[a-z]? "]
REQUESTS = 300


class Request:
    """A random request, and the answer that is expected."""

    def __init__(self, reciter: Reciter, random: Random, *, faults: bool = False) -> None:
        plain = [name for name in SCRIPTS if name != "harmony" and SCRIPTS[name]]
        if faults:
            # After a fault, sglang's own search for stops takes over. After a token with half a character, this search
            # sends the beginning of a stop, which stopscan would hold. So scripts with half characters are left out.
            plain = [name for name in plain if not any(isinstance(piece, bytes) for piece in SCRIPTS[name])]
        script = random.choice(THINKING if random.random() < 0.2 else plain)
        text, ids = reciter.text(script), reciter.token_ids(script)
        begins = [random.randrange(len(text)) for _ in range(random.randint(0, 4))]
        fields: dict[str, Any] = {
            "stops": [stop for stop in (text[at : at + random.randint(1, 5)] for at in begins) if "\ufffd" not in stop],
            "patterns": random.sample(PATTERNS, random.choice([0, 0, 1, 2])),
            "stop_ids": random.sample(ids, random.choice([0, 0, 1])),
        }
        if faults:
            # After a fault, sglang's own search takes over. It may find another stop than stopscan, unless the request
            # has a single stop.
            fields |= {"stops": fields["stops"][:1], "stop_ids": []}
        if random.random() < 0.3:
            fields["limit"] = random.randint(1, len(ids))
        protects = script in THINKING and not faults
        if protects:
            fields["protect"] = ("<think>", "</think>")
        pieces = [piece if isinstance(piece, bytes) else piece.encode() for piece in SCRIPTS[script]]
        self.expected = expected(ids, pieces, reciter.eos_token_id, **fields)
        self.may_abort = faults and bool(fields["patterns"])
        self.stream, self.count = random.random() < 0.5, random.choice([1, 1, 1, 2])
        sampling = {
            "temperature": 0,
            "stop": fields["stops"],
            "stop_regex": fields["patterns"],
            "stop_token_ids": fields["stop_ids"],
            "max_new_tokens": fields.get("limit", 200),
            "n": self.count,
        }
        if protects:
            sampling["custom_params"] = {"stopscan_protect": list(fields["protect"])}
        self.body = {"text": reciter.prompt(script), "sampling_params": sampling, "stream": self.stream}

    def wrong(self, server: httpx.Client) -> str | None:
        """Asks a server. Returns what is wrong with its answer, or ``None``."""
        objects = self._objects(server)
        aborted = [one for one in objects if "stopscan failed in this request" in json.dumps(one)]
        if self.may_abort and aborted:
            return None
        got = {_answer(one) for one in objects}
        return None if got == {self.expected} else f"{self.body}: {got} and not {self.expected}"

    def _objects(self, server: httpx.Client) -> list[dict[str, Any]]:
        if not self.stream:
            answer = server.post("/generate", json=self.body).json()
            return answer if isinstance(answer, list) else [answer]
        last: dict[int, dict[str, Any]] = {}
        with server.stream("POST", "/generate", json=self.body) as response:
            for line in response.iter_lines():
                if line.startswith("data: {"):
                    event = json.loads(line[6:])
                    if "error" in event:
                        return [event]
                    place = event.get("index", 0)
                    if place in last and not event["text"].startswith(last[place]["text"]):
                        raise AssertionError(f"{self.body}: {event['text']!r} after {last[place]['text']!r}")
                    last[place] = event
        return list(last.values())


def _answer(answer: dict[str, Any]) -> Answer:
    info = answer["meta_info"]
    return Answer(answer["text"], info["finish_reason"].get("matched"), info["completion_tokens"])


def main(names: list[str]) -> int:
    reciter, wrong = Reciter(), 0
    with TemporaryDirectory() as folder:
        checkpoint = reciter.write(Path(folder, "reciter"))
        for name in names or TOPOLOGIES:
            options, environment = TOPOLOGIES[name]
            random = Random(name)
            faults = name == FAULTS
            if faults:
                environment = install(Path(folder, "faults"))
            requests = [Request(reciter, random, faults=faults) for _ in range(REQUESTS)]
            log = Path(folder, "log")
            with served(checkpoint, log, *options, environment=environment, faults=faults) as server:
                began = time.perf_counter()
                with ThreadPoolExecutor(24) as pool:
                    found = list(filter(None, pool.map(lambda one: one.wrong(server), requests)))
                took = time.perf_counter() - began
                time.sleep(1)
                retracted = log.read_text().count("retracted")
                print(f"{name}: {len(found)} of {REQUESTS} wrong, {took:.0f} s, after: {load(server)}, {retracted=}")
            print(*found[:5], sep="\n", flush=True)
            wrong += len(found)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
