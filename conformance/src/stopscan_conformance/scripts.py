"""The scripts of the default checkpoint: the texts that the kit's model recites. They come from `scripts.json`
and `named/`. `made_scripts` adds long texts, and texts that almost contain a stop."""

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


def written(file: Path) -> Any:
    """Returns the content of a data file of the kit."""
    return json.loads(file.read_text(encoding="utf-8"))


def _piece(text: str) -> str | bytes:
    """Returns a piece of a script as text, or as bytes if it begins or ends inside a character. The JSON cannot contain
    bytes, so lone surrogates stand for the bytes of half a character."""
    return text if text.isascii() or text == text.encode(errors="replace").decode() else _encoded(text)


def _encoded(piece: str | bytes) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode(errors="surrogateescape")


SCRIPTS: Mapping[str, Script] = {
    name: [*map(_piece, one["pieces"])] for name, one in written(FOLDER / "scripts.json").items()
}


@cache
def named() -> list[dict[str, Any]]:
    """Returns the scripts of `named/` with their cases, each as a dict. The value of `pieces` is a tuple of bytes."""
    files = sorted((FOLDER / "named").glob("*.json"))
    read = [{"topic": file.stem, **script} for file in files for script in written(file)]
    own = {one["script"]: one["pieces"] * one.get("times", 1) for one in read if "pieces" in one}
    return [{**one, "pieces": tuple(map(_encoded, {**SCRIPTS, **own}[one["script"]]))} for one in read]


@cache
def default_scripts() -> Mapping[str, Script]:
    """Returns all scripts of the default checkpoint, by name."""
    staged = {one["script"]: one["pieces"] for one in named()}
    return {**SCRIPTS, **{name: pieces for name, pieces in staged.items() if name not in SCRIPTS}, **made_scripts()}


# Pairs by name: a text that nearly contains a stop, and that stop.
NEAR: Mapping[str, tuple[str, str]] = {
    name: (near, stop) for name, (near, stop) in written(FOLDER / "near.json").items()
}
LETTERS = "aeioulnrstdmkpgb"
FOREIGN = ("é", "ß", "你", "好", "世", "Ж", "д", "ש", "\U0001f680", "\U0001f468", "ñ", "†")
BORDER = 128
LONG, WIDE = 4400, 1300


@cache
def made_scripts() -> Mapping[str, tuple[bytes, ...]]:
    """Returns the scripts that this module makes, by name."""
    looks = {f"looks-{name}": _looks(near, stop) for name, (near, stop) in NEAR.items()}
    return {
        "deep": _deep(LONG),  # many small tokens; at each multiple of 128 tokens, a character is split in two
        "wide-deep": _wide(WIDE),  # tokens of 53 characters or more, and 70,000 characters in all
        "thought": (b"<think>", *_deep(60)[3:], b"</think>", *_deep(200)[100:]),
        "paced": _deep(560)[240:],  # for the cases that compare times
        **looks,
    }


def _looks(near: str, stop: str) -> tuple[bytes, ...]:
    """Returns a script in which a text that is similar to the stop (`near`) comes before the stop. In both, each
    character is a token."""
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
        "".join([" ", *(LETTERS[next(draws) % 16] for _ in range(52 + next(draws) % 4))]).encode()
        for _ in range(tokens)
    )


def _draws(seed: int) -> Iterator[int]:
    """Yields pseudorandom integers, which are the same in every release of Python."""
    state = seed
    for _ in count():
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33
