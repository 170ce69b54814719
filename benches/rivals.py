"""What people and projects do instead: each is an iterator of safe text over deltas, written from a description.

They take hidden stops and end at the first that fires. The time of a method is not the time of the program it comes
from: llama.cpp is C++, and vLLM's front end does more around each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def buffer_loop(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """The loop that most people write: search a buffer, keep back as much as the longest stop could need."""
    keep = max(map(len, stop)) - 1
    buffer = ""
    for delta in deltas:
        buffer += delta
        for sequence in stop:
            if sequence in buffer:
                yield buffer[: buffer.index(sequence)]
                return
        if len(buffer) > keep:
            yield buffer[: len(buffer) - keep]
            buffer = buffer[len(buffer) - keep :]
    yield buffer


def endswith_loop(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """The careful loop: keep back only what still may become a stop, found by trying each prefix."""
    buffer = ""
    for delta in deltas:
        buffer += delta
        for sequence in stop:
            if sequence in buffer:
                yield buffer[: buffer.index(sequence)]
                return
        held = max(pending(buffer, sequence) for sequence in stop)
        yield buffer[: len(buffer) - held]
        buffer = buffer[len(buffer) - held :]
    yield buffer


def pending(text: str, sequence: str) -> int:
    for length in range(min(len(sequence) - 1, len(text)), 0, -1):
        if text.endswith(sequence[:length]):
            return length
    return 0


def vllm(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """vLLM: find each stop in the newest part of the whole text, emit all but the last `max(len) - 1` characters."""
    keep = max(map(len, stop)) - 1
    text = ""
    emitted = 0
    for delta in deltas:
        text += delta
        found = vllm_check(text, len(delta), stop)
        if found is not None:
            yield text[emitted : found[1]]
            return
        safe = len(text) - keep
        if emitted < safe:
            yield text[emitted:safe]
            emitted = safe
    yield text[emitted:]


def vllm_check(text: str, new: int, stop: list[str]) -> tuple[str, int] | None:
    """The stop that ends first in the last `new` characters, and where it begins."""
    if not new or not stop:
        return None
    best = None
    best_end = len(text) + 1
    for sequence in stop:
        length = len(sequence)
        start = text.find(sequence, 1 - new - length)
        if start != -1 and start + length < best_end:
            best = sequence, start
            best_end = start + length
    return best


def mlx_engine(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """mlx-engine: search the buffer; keep all of it while its end begins a stop."""
    buffer = ""
    for delta in deltas:
        buffer += delta
        starts = [start for sequence in stop if (start := buffer.find(sequence)) != -1]
        if starts:
            yield buffer[: min(starts)]
            return
        if not any(pending(buffer, sequence) for sequence in stop):
            yield buffer
            buffer = ""
    yield buffer


def llama_cpp(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """llama.cpp: search a window of the whole text; send nothing while its end begins a stop."""
    text = ""
    sent = 0
    for delta in deltas:
        text += delta
        starts = []
        for sequence in stop:
            start = text.find(sequence, max(len(text) - len(sequence) - len(delta), sent))
            if start != -1:
                starts.append(start)
        if starts:
            yield text[sent : min(starts)]
            return
        if not any(pending_from_last(text, sequence) for sequence in stop):
            yield text[sent:]
            sent = len(text)
    yield text[sent:]


def pending_from_last(text: str, sequence: str) -> bool:
    """Whether `text` ends with the start of `sequence`; compared only where the last character stands."""
    last = text[-1]
    return any(
        sequence[index] == last and text.endswith(sequence[: index + 1]) for index in range(len(sequence) - 2, -1, -1)
    )


class MlxLm:
    """mlx-lm: an automaton of dicts reads each character; the text is held until it is back at its root."""

    def __init__(self, stop: list[str]) -> None:
        self.root: dict[str, Any] = {}
        for sequence in stop:
            node = self.root
            for character in sequence:
                node = node.setdefault(character, {})
            node["match"] = sequence
        level = [child for key, child in self.root.items() if key != "match"]
        for child in level:
            child["fail"] = self.root
        for node in level:  # it grows while it is read: breadth first
            for character, child in node.items():
                if character not in ("match", "fail"):
                    child["fail"] = self.next(node["fail"], character)
                    child.setdefault("match", child["fail"].get("match"))
                    level.append(child)

    def next(self, node: dict[str, Any], character: str) -> dict[str, Any]:
        while character not in node and node is not self.root:
            node = node["fail"]
        return node.get(character, self.root)  # type: ignore[no-any-return]

    def step(self, state: tuple[dict[str, Any], str], delta: str) -> tuple[tuple[dict[str, Any], str], str, str | None]:
        """The new state, the text to emit, and the stop that completed."""
        node, buffer = state
        read = len(buffer)
        buffer += delta
        safe = 0
        for at in range(read, len(buffer)):
            node = self.next(node, buffer[at])
            match = node.get("match")
            if match is not None:
                return (self.root, ""), buffer[: at + 1 - len(match)], match
            if node is self.root:
                safe = at + 1
        return (node, buffer[safe:]), buffer[:safe], None

    def __call__(self, deltas: Iterable[str]) -> Iterator[str]:
        state = (self.root, "")
        for delta in deltas:
            state, text, match = self.step(state, delta)
            yield text
            if match is not None:
                return
        yield state[1]


def mlx_lm(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    return MlxLm(stop)(deltas)


def mlx_lm_installed(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """The `TextStateMachine` of the mlx-lm that is installed."""
    from mlx_lm.generate import TextStateMachine

    state = TextStateMachine({"normal": [(sequence, None) for sequence in stop]}).make_state()
    return mlx_lm_steps(TextStateMachine.step, TextStateMachine.flush, state, deltas)


def mlx_lm_steps(step: Any, flush: Any, state: Any, deltas: Iterable[str]) -> Iterator[str]:
    for delta in deltas:
        state, text, name = step(state, delta)
        yield text
        if name is None:
            return
    yield flush(state)[1]
