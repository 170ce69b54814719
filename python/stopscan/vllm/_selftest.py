"""Whether vLLM's texts with stopscan are what they must be: streams through vLLM's own output processor, both ways.

No engine, no model, no configuration: a tokenizer that is made on the spot, and what an engine core would send, by
hand. What is equal without and with stopscan proves little where vLLM no longer asks stopscan, so that some streams
have an answer which vLLM alone cannot give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stopscan.vllm import _requests as requests
from stopscan.vllm._detokenizer import ScanningDetokenizer, failures
from stopscan.vllm._streams import Host


def problems(place: Callable[[], None], remove: Callable[[], None]) -> list[str]:
    """What is wrong with stopscan in this vLLM; nothing if all is right."""
    host = Host()
    alone = {stream.name: host.run(stream) for stream in host.streams if stream.expected is None}
    before, failures.count = (failures.count, failures.LIMIT), 0
    failures.LIMIT = len(host.streams)  # two streams fail on purpose
    logs, failures._logger.disabled = failures._logger.disabled, True
    wrong = []
    try:
        place()
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
    finally:
        remove()
        failures.count, failures.LIMIT = before
        failures._logger.disabled = logs
        requests.engines.clear()
    return wrong


def _break(detokenizer: Any) -> None:
    """A fault of ours in the stream's next step."""
    if not isinstance(detokenizer, ScanningDetokenizer):
        raise TypeError(f"vLLM has {type(detokenizer).__name__} in the place of stopscan's detokenizer")

    class Faulty:
        def feed(self, token_id: int) -> str:
            raise LookupError("a fault on purpose")

    detokenizer._scanner = Faulty()  # type: ignore[attr-defined]
