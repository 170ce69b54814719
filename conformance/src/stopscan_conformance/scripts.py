"""What the default checkpoint recites: the scripts here, those of `named/`, what the vectors feed, and scripts that are
made: long texts, in which a stop may be anywhere, and texts with what is nearly a stop."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

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
def named() -> list[dict[str, Any]]:
    """The scripts of `named/` and the cases of each: `topic`, `script`, `pieces` as bytes, `why` and `cases`."""
    files = sorted((FOLDER / "named").glob("*.json"))
    read = [{"topic": file.stem, **script} for file in files for script in _read(file)]
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
    staged = {one["script"]: one["pieces"] for one in named()} | {one["name"]: one["pieces"] for one in plain_vectors()}
    return {**SCRIPTS, **{name: pieces for name, pieces in staged.items() if name not in SCRIPTS}, **made_scripts()}


def _read(file: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return content


def _pieces(script: Mapping[str, Any]) -> Script:
    pieces: list[str] = script["pieces"] * script.get("times", 1)
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


# A text that has `near` before the stop, which only looks like it, or hides its beginning.
NEAR: Mapping[str, tuple[str, str]] = {
    "quotes": ("say \u201cit\u201d", 'say "it"'), "space": ("a\u00a0b", "a b"), "wide-space": ("a\u3000b", "a b"),
    "dash": ("x\u2013y", "x-y"), "minus": ("5\u22122", "5-2"), "selector": ("\u2602\ufe0f!", "\u2602!"),
    "text-selector": ("\u2602\ufe0e!", "\u2602!"), "direction": ("st\u200fop", "stop"),
    "left-to-right": ("st\u200eop", "stop"), "joiner": ("st\u200dop", "stop"), "non-joiner": ("st\u200cop", "stop"),
    "zero-width": ("st\u200bop", "stop"), "line-end": ("a\r\nb", "a\nb"),
    "wide-letters": ("\uff25\uff2e\uff24", "END"), "ligature": ("\ufb01n", "fin"),
    "composed": ("caf\u00e9!", "cafe\u0301!"), "decomposed": ("cafe\u0301!", "caf\u00e9!"),
    "accent": ("r\u00e9sum\u00e9", "resume"), "case": ("the End", "the END"), "dotless": ("\u0131f", "if"),
    "sharp": ("Stra\u00dfe", "Strasse"), "backslash": ("a\nb", "a\\nb"), "backslash-tab": ("a\tb", "a\\tb"),
    "percent": ("A B", "A%20B"), "entity": ("a&b", "a&amp;b"), "nul": ("ab", "a\0b"), "nul-first": ("END", "\0END"),
    "break-first": ("END", "\nEND"), "break-last": ("END ", "END\n"), "breaks-first": ("\nEND", "\n\nEND"),
    "blank-first": ("-END", " END"), "blank-last": ("END-", "END "), "dot": ("axb", "a.b"), "star": ("aab", "a*b"),
    "borders": ("aabaaa", "aabaab"), "nested-borders": ("ababab", "ababac"), "run": ("aaa", "aaab"),
    "special": ("<|eo|>", "<|end|>"), "special-name": ("<eos>", "<|eos |>"), "digit": ("4", "42"),
    "letter": ("y", "#"), "emoji": ("\U0001f6d1\ufe0f", "\U0001f6d1!"),
    "family": ("\U0001f469\u200d\U0001f4bb", "\U0001f469\U0001f4bb"), "plane": ("\U00020000", "\U00020001"),
}  # fmt: skip
LETTERS = "aeioulnrstdmkpgb"
FOREIGN = ("é", "ß", "你", "好", "世", "Ж", "д", "ש", "\U0001f680", "\U0001f468", "ñ", "†")
BORDER = 128
LONG, WIDE = 4400, 4300


@cache
def made_scripts() -> Mapping[str, tuple[bytes, ...]]:
    """The scripts by name.

    `deep` has many small tokens, with half a character across each multiple of 128; the tokens of `wide` have sixteen
    characters or more, 70,000 in all; `thought` thinks first, `paced` is for a look at the clock,
    and `looks-…` are the texts of `NEAR`.
    """
    looks = {f"looks-{name}": _looks(near, stop) for name, (near, stop) in NEAR.items()}
    return {
        "deep": _deep(LONG),
        "wide-deep": _wide(WIDE),
        "thought": (b"<think>", *_deep(60)[3:], b"</think>", *_deep(200)[100:]),
        "paced": _deep(560)[240:],
        **looks,
    }


def _looks(near: str, stop: str) -> tuple[bytes, ...]:
    """What is near to the stop, then the stop, each in the tokens of its characters."""
    return tuple(
        piece.encode() for piece in ("It ", "is: ", *near, " and", " then: ", *stop, " but", " there", " is", " more.")
    )


def _deep(tokens: int) -> tuple[bytes, ...]:
    draws = _draws(5)
    pieces: list[bytes] = []
    while len(pieces) < tokens:
        if (len(pieces) + 1) % BORDER == 0:
            letter = FOREIGN[next(draws) % 10].encode()
            half = 1 + next(draws) % (len(letter) - 1)
            pieces += [letter[:half], letter[half:]]
            continue
        word = "".join(LETTERS[next(draws) % 16] for _ in range(1 + next(draws) % 5))
        if next(draws) % 11 == 0:
            word += FOREIGN[next(draws) % len(FOREIGN)]
        pieces.append(f"{'' if next(draws) % 3 else ' '}{word}".encode())
    return tuple(pieces[:tokens])


def _wide(tokens: int) -> tuple[bytes, ...]:
    draws = _draws(11)
    return tuple(
        "".join([" ", *(LETTERS[next(draws) % 16] for _ in range(15 + next(draws) % 4))]).encode()
        for _ in range(tokens)
    )


def _draws(seed: int) -> Iterator[int]:
    """Whole numbers, the same in every release of Python."""
    state = seed
    for _ in count():
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33
