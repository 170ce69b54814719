"""Times how sglang's scheduler and detokenizer find stops, without and with stopscan, in one run.

    "$(ci/sglang-env)/bin/python" benches/sglang_costs.py

sglang's own functions run in this process, with a tokenizer that is made here, and without a model or a server. Each
line has the CPU time per token of a request. The scheduler's times do not include what a request without stops takes.
The detokenizer's times include decoding. Each message to the detokenizer has one token for each of 32 requests.
"""

from __future__ import annotations

import gc
import platform
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date
from time import thread_time_ns
from typing import Any

import sglang
from report import options

from stopscan.engines import Defaults
from stopscan.sglang._plugin import hooks
from stopscan.sglang._selftest import Host, installed

TOKENS, ROWS, ROUNDS = 300, 32, 8
PIECES = ["hello", " world", " x", "STO", "N", " ", "e", "nd", "."]
FOUR = ["\n\nHuman:", "### Instruction", "<|end|>", "STOP"]
CASES: dict[str, dict[str, Any]] = {
    "no stops": {},
    "1 stop": {"stop": FOUR[:1]},
    "4 stops": {"stop": FOUR},
    "32 stops": {"stop": [f"\nstop number {number}:" for number in range(32)]},
    "a regex": {"stop_regex": [r"User [0-9]{1,4}:"]},
}


def main() -> None:
    options(__doc__).parse_args()
    host = Host()
    ids = (host.ids(PIECES) * TOKENS)[:TOKENS]
    ways: dict[str, Callable[[], Any]] = {"sglang": nullcontext, "with stopscan": lambda: installed(hooks(Defaults()))}
    print(f"{date.today()}, Python {platform.python_version()}, sglang {sglang.__version__}; CPU ns a token")
    for what, measured in (("scheduler", scheduler), ("detokenizer", detokenizer)):
        times = {(name, way): float("inf") for name in CASES for way in ways}
        # Each round runs all cases, so that other work on the machine disturbs all lines of the table, not only one.
        for _ in range(ROUNDS):
            for name, way in times:
                with ways[way]():
                    # The first run does not count. `installed` has just changed sglang's classes, and CPython must
                    # adapt its bytecode to the new ones.
                    measured(host, ids, CASES[name])
                    times[name, way] = min(times[name, way], measured(host, ids, CASES[name]))
        print(f"\n| {what} | sglang | with stopscan | times |\n|---|---:|---:|---:|")
        for name in CASES:
            net = measured is scheduler and name != "no stops"
            theirs, ours = (times[name, way] - net * times["no stops", way] for way in ways)
            print(f"| {name}{', net' * net} | {theirs:,.0f} | {ours:,.0f} | {theirs / ours:.1f} |", flush=True)


def scheduler(host: Host, ids: list[int], params: dict[str, Any]) -> float:
    """Returns the time in ns to append a token id to a request and to check whether the request is finished."""
    req = host._request("r", {"max_new_tokens": 1 << 20, **params})
    gc.collect()
    began = thread_time_ns()
    for token_id in ids:
        req.output_ids.append(token_id)
        req.update_finish_state(1)
    took = thread_time_ns() - began
    assert not req.finished()
    return took / len(ids)


def detokenizer(host: Host, ids: list[int], params: dict[str, Any]) -> float:
    """Returns the time in ns that the detokenizer takes per token. A message has the newest token of each request."""
    reqs = [host._request(str(row), {"max_new_tokens": 1 << 20, **params}) for row in range(ROWS)]
    times = []
    for token_id in ids[:30]:
        for req in reqs:
            req.output_ids.append(token_id)
            req.update_finish_state(1)
        message = host._message(reqs)
        if message is not None:
            began = thread_time_ns()
            host.detokenizer._decode_batch_token_id_output(message)
            times.append((thread_time_ns() - began) / len(message.rids))
    host.detokenizer.decode_status.clear()
    return sum(times) / len(times)


if __name__ == "__main__":
    main()
