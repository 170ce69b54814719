"""The matrix: what is recited, where it may stop, and what has to come of it. The vectors add theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from stopscan.testing.reciter import THINKING, Script

CODER = "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}"

# More than the longest script has.
MAX_TOKENS = 200


class Scenario(NamedTuple):
    """`text` comes of `tokens` tokens, the one that ends the answer included.

    `fires` is the stop that ends it, or of a stop token the index of its piece in the script; with None it is EOS, or
    the limit if that is `tokens`. `stop_pieces` are such indexes, too.
    """

    name: str
    script: str
    text: str
    tokens: int
    fires: str | int | None = None
    stop: tuple[str, ...] = ()
    stop_pieces: tuple[int, ...] = ()
    max_tokens: int = MAX_TOKENS

    @property
    def reason(self) -> str:
        """As a `Finish` has it."""
        if self.fires is None:
            return "length" if self.tokens == self.max_tokens else "eos"
        return "stop_sequence" if isinstance(self.fires, str) else "stop_token"


# The pieces of "count" by index: 4 "3 hel", 5 "lo wor", 6 "ld 4", 8 "5", 10 "6".
SCENARIOS = (
    Scenario("one-token", "count", "1, 2, 3 hello world 4, 5, ", 11, "6", ("6",)),
    Scenario("three-tokens", "count", "1, 2, 3 ", 7, "hello world", ("hello world",)),
    Scenario("first-of-three", "count", "1, 2, 3 hello world 4, ", 9, "5", ("7", "6", "5")),
    Scenario("as-encoded", "alphabet", "abcde", 8, "fgh", ("fgh",)),
    Scenario("split", "split", "This is the ", 6, "END", ("END",)),
    Scenario("inside", "inside", "The path W", 3, "END", ("END",)),
    Scenario("begins-twice", "straddle", "AbcXYZW EN", 6, "END", ("END",)),
    Scenario("repeated-pieces", "echo", "ha", 4, "haha!", ("haha!",)),
    Scenario("nested", "nested", "xa", 3, "b", ("abc", "b")),
    Scenario("after-a-run", "runs-end", "aaaaaa", 9, "aab", ("aab",)),
    Scenario("long", "late", "The quick brown fox jumps over the lazy dog and runs to far green hills", 19,
             "<|end_of_document|>", ("<|end_of_document|>",)),
    Scenario("line-break", "lines", "One", 3, "\n\n", ("\n\n",)),
    Scenario("spaces", "spaces", " lead", 3, "  ", ("  ",)),
    Scenario("spaces-at-eos", "spaces", " lead  gap  tail ", 8, None, ("STOP",)),
    Scenario("ids", "count", "1, 2, 3 hello world 4, ", 9, 8, (), (8, 10)),
    Scenario("string-6-id-5", "count", "1, 2, 3 hello world 4, ", 9, 8, ("6",), (8,)),
    Scenario("string-5-id-6", "count", "1, 2, 3 hello world 4, ", 9, "5", ("5",), (10,)),
    Scenario("string-5-id-5", "count", "1, 2, 3 hello world 4, ", 9, "5", ("5",), (8,)),
    Scenario("three-tokens-id-after", "count", "1, 2, 3 ", 7, "hello world", ("hello world",), (8,)),
    Scenario("three-tokens-id-within", "count", "1, 2, 3 hel", 6, 5, ("hello world",), (5,)),
    Scenario("never", "title", "Intro\n## Title\nText", 7, None, ("###",)),
    Scenario("never-in-a-run", "runs", "aaaaaaaaaaaaaaaa", 17, None, ("ab",)),
    Scenario("held-at-eos", "held", "Please do not STO", 7, None, ("STOP",)),
    Scenario("held-at-the-limit", "held", "Please do not ST", 5, None, ("STOP",), (), 5),
    Scenario("held-whole-piece-at-the-limit", "count", "1, 2, 3 hello wor", 6, None, ("hello world",), (), 6),
    Scenario("stop-in-the-last-token", "split", "This is the ", 6, "END", ("END",), (), 6),
    Scenario("id-in-the-last-token", "count", "1, 2, 3 hello world 4, ", 9, 8, (), (8,), 9),
    Scenario("no-stop", "count", "1, 2, 3 hello world 4, 5, 6, 7, 8", 16),
    Scenario("no-stop-limit", "count", "1, 2, 3 hel", 5, None, (), (), 5),
    Scenario("no-text", "empty", "", 1, None, ("END",)),
    Scenario("think", "think", "<think>Is it END?</think>It is 5 or 6 ", 16, "END", ("END",)),
    Scenario("think-unclosed", "unclosed", "<think>Still END thinking", 7, None, ("END",)),
    Scenario("half-characters", "accents", "café na", 6, "ï", ("ï",)),
    Scenario("emoji-stop", "emoji", "Go 🚀 then ", 6, "🛑", ("🛑",)),
    Scenario("emoji-joined", "emoji", "Go 🚀 then 🛑 now ", 11, CODER, (CODER,)),
    Scenario("emoji-same-first-bytes", "emoji", f"Go 🚀 then 🛑 now {CODER}.", 12, None, ("🚗",)),
    Scenario("cjk", "cjk", "你好、", 6, "世界", ("世界",)),
    Scenario("half-a-character-at-eos", "broken", "half \N{REPLACEMENT CHARACTER}", 3, None, ("END",)),
)  # fmt: skip


def load_vectors(folder: str | Path | None, /) -> tuple[dict[str, Script], tuple[Scenario, ...]]:
    """The scripts and scenarios of the vectors in `folder` that a request can state; nothing without a folder.

    A server is only fed, and protects no regions but the model's reasoning; the rest is for who holds a scanner.
    """
    if folder is None:
        return {}, ()
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        raise ValueError(f"no vectors in {folder}")
    vectors = [vector for file in files for vector in json.loads(file.read_text(encoding="utf-8")) if _is_plain(vector)]
    scripts: dict[str, Script] = {vector["name"]: [text for text in _fed(vector) if text] for vector in vectors}
    return scripts, tuple(map(_scenario, vectors))


def _fed(vector: Mapping[str, Any]) -> list[str]:
    return [step["text"] for step in vector["steps"] if step["op"] == "feed"]


def _is_plain(vector: Mapping[str, Any]) -> bool:
    operations = [step["op"] for step in vector["steps"]]
    return (
        not vector["visible"]
        and not vector["include_stop"]
        and not vector["start_protected"]
        and vector["protect"] in ([], [[*THINKING]])
        and set(operations[:-1]) <= {"feed"}
        and operations[-1] in ("feed", "flush")
        and not any(marker in "".join(_fed(vector)) for marker in THINKING if not vector["protect"])
    )


def _scenario(vector: Mapping[str, Any]) -> Scenario:
    pieces = [text for text in _fed(vector) if text]
    match = vector["match"]
    text = "".join(step["out"] for step in vector["steps"]) + vector["steps"][-1]["held"]
    ends = list(accumulate(map(len, pieces)))
    tokens = next(count for count, end in enumerate(ends, 1) if end >= match["end"]) if match else len(pieces) + 1
    stops = tuple(dict.fromkeys(vector["stop"]))
    return Scenario(vector["name"], vector["name"], text, tokens, match and match["sequence"], stops)
