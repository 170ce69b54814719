"""Answers in which a test model repeats itself, as lists of tokens, and where ``Repeat`` must end them."""

from __future__ import annotations

from stopscan import Repeat, StopMatch, StopSet

SENTENCE = "Wait, let me check the sum again. "
LINES = "".join(f"    total += values[{number}] * weights[{number}]\n" for number in range(7))


def pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


# Each string is a token. In each copy of the repeated text, the tokens are cut at different places.
LOOPS = {
    "sentence": ["Let me think. ", *pieces(SENTENCE * 20, 9)],
    "lines": ["def dot(values, weights):\n", *pieces(LINES * 8, 13)],
    "thoughts": ["<think>", "Hm. ", *pieces(SENTENCE * 20, 7), "</think>", "5"],
}


def ended(name: str, repeat: Repeat | None = None) -> tuple[str, int, StopMatch]:
    """Returns where `Repeat` must end the answer ``name``: its text up to the character that completes the loop, the
    number of tokens that have this text, and the match."""
    script = LOOPS[name]
    match = StopSet(repeat=repeat or Repeat()).find("".join(script))
    assert match is not None
    assert match.period is not None
    tokens = next(count for count in range(len(script)) if len("".join(script[:count])) >= match.end)
    assert tokens < len(script) - 10, "much of the script is left when the loop is proven"
    return "".join(script)[: match.end], tokens, match
