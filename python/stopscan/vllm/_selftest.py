"""Whether vLLM's texts with stopscan are what they must be: streams through vLLM's own output processor, both ways.

No engine, no model, no configuration: a tokenizer that is made on the spot, and what an engine core would send, by
hand. What is equal without and with stopscan proves little where vLLM no longer asks stopscan, so that some streams
have an answer which vLLM alone cannot give.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stopscan._engine.circuit import NOT_OURS, Circuit
from stopscan._engine.environment import Settings
from stopscan.vllm import _hooks
from stopscan.vllm._adapter import Adapter
from stopscan.vllm._detokenizer import ScanningDetokenizer
from stopscan.vllm._streams import Host, Outcome


class Silent(Circuit):
    """Counts, and neither logs nor gives up: one stream fails on purpose."""

    def __init__(self) -> None:
        self.failures = 0

    @property
    def closed(self) -> bool:
        return True

    def note(self, error: BaseException, outcome: str) -> None:
        if isinstance(error, NOT_OURS):
            raise error
        self.failures += 1


def problems() -> list[str]:
    """What is wrong with stopscan in this vLLM, most telling first; nothing if all is right."""
    try:
        host = Host()
        alone = [host.run(stream) for stream in host.streams if stream.expected is None]
    except Exception as error:
        return [f"nothing can be told, because vLLM alone fails in the test: {error!r}"]
    adapter = Adapter(Settings())
    adapter.circuit = Silent()
    _hooks.apply(adapter)
    try:
        return list(_compare(host, iter(alone), adapter))
    finally:
        _hooks.revert()


def _compare(host: Host, alone: Iterator[Outcome], adapter: Adapter) -> Iterator[str]:
    for stream in host.streams:
        theirs = next(alone) if stream.expected is None else None
        try:
            ours = host.run(stream, _break if stream.breaks else None)
        except Exception as error:
            yield f"{stream.name}: {error!r}"
            continue
        problem = ours.against(theirs) if theirs else ours.as_expected(stream)
        if problem:
            yield f"{stream.name}: {problem}"
    if adapter.circuit.failures != sum(stream.breaks for stream in host.streams):
        yield "stopscan failed in a stream and was replaced by vLLM"


def _break(detokenizer: Any) -> None:
    """A fault of ours in the stream's next step."""
    if not isinstance(detokenizer, ScanningDetokenizer):
        raise TypeError(f"vLLM has {type(detokenizer).__name__} in the place of stopscan's detokenizer")

    def fail(token_id: int) -> str:
        raise LookupError("a fault on purpose")

    detokenizer._feed = fail
