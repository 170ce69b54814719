"""Loops from bug reports, rebuilt as tokens. This module computes without a scanner where each loop must end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from looping import pieces

from stopscan import Repeat, StopMatch

DEFAULT = Repeat()


@dataclass(frozen=True)
class Report:
    """A model that writes ``before`` and then ``block`` again and again, in tokens of ``size`` characters."""

    before: str
    block: str
    size: int
    repeat: Repeat = DEFAULT

    @cached_property
    def script(self) -> list[str]:
        copies = max(self.end, 400) // len(self.block) + 3
        return [*pieces(self.before, 7), *pieces(self.block * copies, self.size)]

    @property
    def end(self) -> int:
        """The offset at which the loop is complete. The loop begins with the first ``block``. If ``before`` ended with
        the last character of ``block``, the loop would already begin with this character, so this is not allowed."""
        assert self.before[-1] != self.block[-1]
        return len(self.before) + max(self.repeat.count * len(self.block), self.repeat.min_length)

    @property
    def tokens(self) -> int:
        """The number of tokens up to the one that proves the loop."""
        return len(pieces(self.before, 7)) + -(-(self.end - len(self.before)) // self.size)

    @property
    def match(self) -> StopMatch:
        text, start = "".join(self.script), len(self.before)
        return StopMatch(text[start : self.end], start, period=len(self.block))

    @property
    def streamed(self) -> str:
        return "".join(self.script)[: self.end]

    @property
    def once(self) -> str:
        """The text that ``StopSet.truncate`` must return: the text before the loop, and one copy of the block."""
        return self.before + self.block


# A whole file, 92 lines, as a coding agent writes it.
FILE = "".join(f"    def test_case_{number}(self): self.check({number}, {number * 37 % 101})\n" for number in range(92))
CALL = '<tool_call>{"name": "read_file", "arguments": {"path": "src/items.py"}}</tool_call>\n'

REPORTS = {
    # Qwen3 VL, asked about pictures, repeats a sentence until the token limit.
    "vllm-35451": Report("The picture shows a receipt. ", "The total is at the bottom of the receipt.\n", 9),
    # Gemma 4 with a JSON schema repeats a word within a string, so that the string never ends.
    "vllm-40097": Report('{"description": "The sun dips low, casting a path of amber', " own", 4),
    # Qwen3-Coder-Next repeats a block of 92 lines 32 times. The block is too long for the default `max_period`.
    "llama.cpp-26039": Report("Here is the file:\n```python", "\n" + FILE[:-1], 61, Repeat(max_period=8192)),
    # DeepSeek with 400,000 tokens of context repeats a character in its reasoning.
    "hermes-agent-94224": Report("<think>The cost is shown twice, so", "\uff01", 3),
    # A request sets the limits itself: 3 copies that have at least 32 characters together are a loop.
    "dynamo-10939": Report("The request goes to the router", ", which asks the cache", 5, Repeat(3, min_length=32)),
    # Qwen3.8 repeats a word. Before that, it writes the same few words in changing order, which is not a loop.
    "vllm-mlx-723": Report("The its items itemsThe items its itemsThe", " items", 6),
    # Qwen3.8 makes the same tool call again and again.
    "vllm-mlx-723-calls": Report("Let me read the file.", CALL, 11),
}
