"""How people and other projects find stops. Each function takes deltas, and yields the text before the first stop.

`mlx_lm` runs mlx-lm's own code. The other functions imitate programs in plain Python. The programs themselves take
different times: llama.cpp is written in C++, and vLLM's front end does more in each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def buffer_loop(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """The loop that most people write: search a buffer, and hold back one character less than the longest stop has."""
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


def vllm(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """vLLM: search the newest part of the text for each stop, and emit all but the last `max(len) - 1` characters."""
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
    """Returns the stop that ends first in the last `new` characters, and the place where it begins."""
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


def llama_cpp(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """llama.cpp: search a window at the end of the text; send nothing while the text ends with the start of a stop."""
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
    """Whether `text` ends with a beginning of `sequence` that is shorter than `sequence`. For speed, first compares the
    last character of each beginning with the last character of `text`."""
    last = text[-1]
    return any(
        sequence[index] == last and text.endswith(sequence[: index + 1]) for index in range(len(sequence) - 2, -1, -1)
    )


def mlx_lm(deltas: Iterable[str], stop: list[str]) -> Iterator[str]:
    """mlx-lm: the `TextStateMachine` of the installed version."""
    from mlx_lm.generate import TextStateMachine

    state = TextStateMachine({"normal": [(sequence, None) for sequence in stop]}).make_state()
    for delta in deltas:
        state, text, name = TextStateMachine.step(state, delta)
        yield text
        if name is None:
            return
    yield TextStateMachine.flush(state)[1]
