"""Streams real prose and code through a tokenizer's decoder and a StopScanner, and shows which text is held, and when.

The text is the Python manual's page on `pass` and the source of `json.scanner`. The vocabulary is a byte-level BPE, as
most models have it, and is trained on the manual when the program starts. Text comes out as soon as it is safe. On a
terminal, held text is yellow until it comes out or turns into a stop, which is red. Elsewhere, text that was held is
printed in « ». A summary follows on standard error.
"""

from __future__ import annotations

import json.scanner
import sys
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from time import sleep

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.decoders import DecodeStream

from stopscan import StopScanner

STOPS = ("\n\nHuman:", "</answer>", "raise StopIteration", "except KeyError:\n    pass", "<|end_of_document|>")

TERMINAL = sys.stdout.isatty()
YELLOW, RED, PLAIN = "\33[30;43m", "\33[97;41m", "\33[0m"
SAVE_CURSOR, ERASE_FROM_IT = "\33" + "7", "\33" + "8\33[J"


def trained_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=8_000, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(topics.values(), trainer)
    return tokenizer


def deltas(tokenizer: Tokenizer, text: str) -> Iterator[str]:
    """Yields the text of each token. If a character has several tokens, its text comes with the last of them."""
    stream = DecodeStream(skip_special_tokens=True)
    for token_id in tokenizer.encode(text).ids:
        yield stream.step(tokenizer, token_id) or ""


def show(released: str, safe: str, held: str, colour: str = YELLOW) -> None:
    """Prints ``released`` (text that was held, and is safe now), ``safe`` (text that was never held) and, on a
    terminal, ``held`` in the given colour."""
    if TERMINAL:
        held = held.replace("\n", "⏎")  # the cursor cannot go back over the end of a line
        print(f"{ERASE_FROM_IT}{released}{safe}{SAVE_CURSOR}{colour}{held}{PLAIN}", end="", flush=True)
        sleep(0.02)  # to look at, at a model's pace
    else:
        print(f"«{released}»{safe}" if released else safe, end="")


def main() -> None:
    text = topics["pass"] + Path(json.scanner.__file__).read_text(encoding="utf-8")
    scanner = StopScanner(STOPS)
    fixed_buffer = max(map(len, STOPS)) - 1
    withheld, withheld_fixed, length = [], [], 0
    print(SAVE_CURSOR if TERMINAL else "", end="")
    for delta in deltas(trained_tokenizer(), text):
        held = len(scanner.held)
        out = scanner.feed(delta)
        if scanner.match is not None:
            show(out[:held], out[held:], scanner.match.sequence if TERMINAL else "", RED)
            break
        show(out[:held], out[held:], scanner.held)
        length += len(delta)
        withheld.append(len(scanner.held))
        withheld_fixed.append(min(length, fixed_buffer))
    print(scanner.flush(), flush=True)

    print(f"\n{scanner.match!r} after {len(withheld)} tokens, {length} characters", file=sys.stderr)
    for name, counts in (("stopscan", withheld), ("a buffer of max(len) - 1", withheld_fixed)):
        mean = sum(counts) / len(counts)
        print(f"withheld by {name}: {mean:.2f} characters on average, {max(counts)} at most", file=sys.stderr)


if __name__ == "__main__":
    main()
