"""What the default checkpoint recites: the scripts here, those of `stagings/`, and what the vectors feed.

A staging is a script and what a server is asked of it; the conformance kit reads the second half.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from stopscan_conformance.corpus import made_scripts

Script = Sequence[str | bytes]

THINKING = ("<think>", "</think>")
HARMONY = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>")

FOLDER = Path(__file__).parent

# The comments say which stops, cuts or ends a script is for.
_SCRIPTS: dict[str, Script] = {
    "alphabet": "abcdefghijklmnopqrstuvwxyz",  # every token as `encode` gives it
    "count": ["1", ", ", "2", ", ", "3 hel", "lo wor", "ld 4", ", ", "5",
              ", ", "6", ", ", "7", ", ", "8"],  # "hello world", "6", the ids of 5 and 6
    "split": ["This", " is", " the", " ", "E", "ND", " of", " it"],  # "END" in tokens that `encode` does not give
    "inside": ["The", " path", " WENDS", " on"],  # "END" with text around it in its token
    "straddle": ["Abc", "XYZW", " E", "N", "E", "ND!", " go"],  # "XYZ"; "END" that begins twice; min_tokens within it
    "held": ["Please", " do", " not", " ", "ST", "O"],  # "STOP": EOS and max_tokens within it
    "title": ["Intro", "\n", "##", " Title", "\n", "Text"],  # "###" that does not come
    "nested": ["x", "a", "b", "c", "d", " y"],  # "abc" and "b"
    "runs": ["a"] * 16,  # "ab" that does not come
    "runs-end": [*["a"] * 8, "b", " tail"],  # "aab"
    "echo": ["ha", "ha", "ha", "!", " ", "ha", "ha", "!"],  # pieces that repeat
    "spaces": [" lead", " ", " ", "gap", "  ", "tail", " "],  # spaces that detokenizers trim or delay
    "lines": ["One", "\n", "\n", "Two", "\r", "\n", "\t", "Three"],
    "late": ["The", " quick", " brown", " fox", " jumps", " over", " the", " lazy", " dog", " and", " runs", " to",
             " far", " green", " hills", "<|end", "_of_", "document", "|>", " more"],  # "<|end_of_document|>"
    "think": ["<think>", "Is", " it", " ", "E", "ND", "?", "</think>",
              "It", " is", " 5", " or", " 6", " ", "E", "ND", " here"],
    "unclosed": ["<think>", "Still", " ", "E", "ND", " thinking"],
    "harmony": ["<|channel|>", "analysis", "<|message|>", "Is", " it", " ", "E", "ND", "?", "<|end|>",
                "<|start|>", "assistant", "<|channel|>", "final", "<|message|>",
                "It", " is", " 5", " or", " 6", " ", "E", "ND", " here"],
    "accents": ["caf", b"\xc3", b"\xa9", " na", b"\xc3", b"\xafve", " end"],  # half characters
    "emoji": ["Go ", b"\xf0\x9f", b"\x9a\x80", " then ", b"\xf0\x9f\x9b", b"\x91", " now ",
              "👩", b"\xe2\x80", b"\x8d\xf0\x9f\x92", b"\xbb."],
    "cjk": [b"\xe4\xbd", b"\xa0\xe5\xa5", b"\xbd", "、", b"\xe4\xb8\x96\xe7", b"\x95\x8c", "。", "再见"],
    "broken": ["half ", b"\xf0\x9f\x98"],  # EOS within a character
    "empty": [],
}  # fmt: skip


def harmony(script: Script, /) -> Script:
    """The script in Harmony's channels: it is the reasoning, and then the answer."""
    return ["<|channel|>", "analysis", "<|message|>", *script, "<|end|>",
            "<|start|>", "assistant", "<|channel|>", "final", "<|message|>", *script]  # fmt: skip


# Each of those that has no reasoning of its own is there in channels, too.
SCRIPTS: Mapping[str, Script] = _SCRIPTS | {
    f"harmony-{name}": harmony(script)
    for name, script in _SCRIPTS.items()
    if name not in ("think", "unclosed", "harmony")
}


@cache
def stagings() -> list[dict[str, Any]]:
    """The stagings, their pieces as bytes: `topic`, `script`, `pieces`, `why` and `asks`."""
    files = sorted((FOLDER / "stagings").glob("*.json"))
    read = [{"topic": file.stem, **staging} for file in files for staging in _read(file)]
    known: dict[str, Script] = {**SCRIPTS, **{one["script"]: _pieces(one) for one in read if "pieces" in one}}
    return [{**one, "pieces": tuple(map(_encoded, known[one["script"]]))} for one in read]


@cache
def plain_vectors() -> list[dict[str, Any]]:
    """The scanner's vectors that a server can be asked for, with `pieces`: it is only fed, and protects no regions but
    the model's reasoning."""
    read = [vector for file in sorted((FOLDER / "vectors").glob("*.json")) for vector in _read(file)]
    return [{**one, "pieces": tuple(text.encode() for text in _fed(one) if text)} for one in read if _is_plain(one)]


@cache
def default_scripts() -> Mapping[str, Script]:
    """All that the default checkpoint recites, by name."""
    staged = {one["script"]: one["pieces"] for one in stagings()} | {
        one["name"]: one["pieces"] for one in plain_vectors()
    }
    return {**SCRIPTS, **{name: pieces for name, pieces in staged.items() if name not in SCRIPTS}, **made_scripts()}


def _read(file: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return content


def _pieces(staging: Mapping[str, Any]) -> Script:
    pieces: list[str] = staging["pieces"] * staging.get("times", 1)
    return pieces


def _encoded(piece: str | bytes) -> bytes:
    # JSON has no bytes: half a character is written as `surrogateescape` decodes it.
    return piece if isinstance(piece, bytes) else piece.encode(errors="surrogateescape")


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
