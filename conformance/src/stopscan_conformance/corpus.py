"""Scripts that are made: long texts, in which a stop may be anywhere, and texts with what is nearly a stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count

# A text that has `near` before the stop, which only looks like it, or hides its beginning.
NEAR: Mapping[str, tuple[str, str]] = {
    "quotes": ("say \u201cit\u201d", 'say "it"'),
    "space": ("a\u00a0b", "a b"),
    "wide-space": ("a\u3000b", "a b"),
    "dash": ("x\u2013y", "x-y"),
    "minus": ("5\u22122", "5-2"),
    "selector": ("\u2602\ufe0f!", "\u2602!"),
    "text-selector": ("\u2602\ufe0e!", "\u2602!"),
    "direction": ("st\u200fop", "stop"),
    "left-to-right": ("st\u200eop", "stop"),
    "joiner": ("st\u200dop", "stop"),
    "non-joiner": ("st\u200cop", "stop"),
    "zero-width": ("st\u200bop", "stop"),
    "line-end": ("a\r\nb", "a\nb"),
    "wide-letters": ("\uff25\uff2e\uff24", "END"),
    "ligature": ("\ufb01n", "fin"),
    "composed": ("caf\u00e9!", "cafe\u0301!"),
    "decomposed": ("cafe\u0301!", "caf\u00e9!"),
    "accent": ("r\u00e9sum\u00e9", "resume"),
    "case": ("the End", "the END"),
    "dotless": ("\u0131f", "if"),
    "sharp": ("Stra\u00dfe", "Strasse"),
    "backslash": ("a\nb", "a\\nb"),
    "backslash-tab": ("a\tb", "a\\tb"),
    "percent": ("A B", "A%20B"),
    "entity": ("a&b", "a&amp;b"),
    "nul": ("ab", "a\0b"),
    "nul-first": ("END", "\0END"),
    "break-first": ("END", "\nEND"),
    "break-last": ("END ", "END\n"),
    "breaks-first": ("\nEND", "\n\nEND"),
    "blank-first": ("-END", " END"),
    "blank-last": ("END-", "END "),
    "dot": ("axb", "a.b"),
    "star": ("aab", "a*b"),
    "borders": ("aabaaa", "aabaab"),
    "nested-borders": ("ababab", "ababac"),
    "run": ("aaa", "aaab"),
    "special": ("<|eo|>", "<|end|>"),
    "special-name": ("<eos>", "<|eos |>"),
    "digit": ("4", "42"),
    "letter": ("y", "#"),
    "emoji": ("\U0001f6d1\ufe0f", "\U0001f6d1!"),
    "family": ("\U0001f469\u200d\U0001f4bb", "\U0001f469\U0001f4bb"),
    "plane": ("\U00020000", "\U00020001"),
}
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
