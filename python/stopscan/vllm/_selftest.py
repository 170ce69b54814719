"""Whether vLLM's texts with stopscan are what they must be: streams through vLLM's own output processor, both ways.

No engine, no model, no configuration: a tokenizer that is made on the spot, and what an engine core would send, by
hand. What is equal without and with stopscan proves little if vLLM no longer asks stopscan, so some streams have an
answer that vLLM alone cannot give.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from logging import Logger
from typing import Any

from stopscan.engines import Defaults, Failures
from stopscan.vllm._adapter import Adapter
from stopscan.vllm._streams import Host


def problems(standing: Callable[[Adapter], AbstractContextManager[None]]) -> list[str]:
    """Returns what is wrong with stopscan in this vLLM; nothing if all is right. ``standing`` puts it there."""
    host = Host()
    alone = {stream.name: host.run(stream) for stream in host.streams if stream.expected is None}
    silent = Logger("stopscan self-test")
    silent.disabled = True
    failures = Failures(silent)
    failures.LIMIT, failures.strict = len(host.streams), False  # two streams fail on purpose
    wrong = []
    with standing(Adapter(Defaults(), failures)):
        for stream in host.streams:
            try:
                ours = host.run(stream, _break if stream.breaks else None)
            except Exception as error:
                wrong.append(f"{stream.name}: {error!r}")
                continue
            theirs = alone.get(stream.name)
            if problem := ours.against(theirs) if theirs else ours.as_expected(stream):
                wrong.append(f"{stream.name}: {problem}")
    if failures.count != sum(stream.breaks for stream in host.streams):
        wrong.append("stopscan failed in a stream and was replaced by vLLM")
    return wrong


def _break(detokenizer: Any) -> None:
    """Makes stopscan fail in the stream's next step."""

    class Faulty:
        def feed(self, token_id: int) -> str:
            raise LookupError("a fault on purpose")

    if not hasattr(detokenizer, "scanner"):
        raise TypeError(f"vLLM has {type(detokenizer).__name__} in the place of stopscan's detokenizer")
    detokenizer.scanner = Faulty()
