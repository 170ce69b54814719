"""Streams real prose and code through a real tokenizer's decoder and a StopScanner.

The text is the Python manual's page on `pass` and the source of `json.scanner`. The vocabulary is from the package
litellm. The example prints text as soon as it is safe, and a summary on standard error.
"""

from __future__ import annotations

import json.scanner
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from stopscan import StopScanner

STOPS = ("\n\nHuman:", "</answer>", "raise StopIteration", "except KeyError:\n    pass", "<|end_of_document|>")


def real_tokenizer() -> Tokenizer:
    package = find_spec("litellm")
    if package is None or package.origin is None:
        sys.exit("this example needs the package litellm, which ships a vocabulary: pip install '.[examples]'")
    path = Path(package.origin).parent / "litellm_core_utils" / "tokenizers" / "anthropic_tokenizer.json"
    return Tokenizer.from_file(str(path))


def deltas(tokenizer: Tokenizer, text: str) -> Iterator[str]:
    """Yields the text of each token, as a generator loop decodes it: an incomplete character waits for its other
    bytes."""
    stream = DecodeStream(skip_special_tokens=True)
    for token_id in tokenizer.encode(text).ids:
        yield stream.step(tokenizer, token_id) or ""


def main() -> None:
    text = topics["pass"] + Path(json.scanner.__file__).read_text(encoding="utf-8")
    scanner = StopScanner(STOPS)
    fixed_buffer = max(map(len, STOPS)) - 1
    withheld, withheld_fixed, length = [], [], 0
    for delta in deltas(real_tokenizer(), text):
        print(scanner.feed(delta), end="", flush=True)
        if scanner.match is not None:
            break
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
