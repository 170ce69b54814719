"""Streams the answer of a model up to a stop, and prints why the answer ended. The default is a tiny model that writes
a fixed text.

python examples/mlx_lm_stream.py [MODEL PROMPT STOP ...]
"""

from __future__ import annotations

import sys
import tempfile

import mlx_lm

from stopscan.mlx_lm import stream_generate
from stopscan_conformance.reciter import Reciter


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        if len(sys.argv) > 1:
            path, prompt, *stops = sys.argv[1:]
        else:
            # The model writes "1, 2, 3 hello world 4 ...". "hello world" spans three tokens: "3 hel", "lo wor", "ld 4".
            path, prompt, stops = str(Reciter().write(directory)), "[count]", ["hello world", "6"]
        model, tokenizer = mlx_lm.load(path)
    protect = "reasoning" if tokenizer.has_thinking else ()
    for response in stream_generate(model, tokenizer, prompt, stop=stops, max_tokens=500, protect=protect):
        print(response.text, end="", flush=True)
    print(f"\n{response.finish_reason}: {response.match or 'no stop'}, {response.generation_tokens} tokens")


if __name__ == "__main__":
    main()
