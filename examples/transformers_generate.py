"""Streams the answer of a model up to a stop, and prints why the answer ended. The default is a tiny model that writes
a fixed text.

python examples/transformers_generate.py [MODEL PROMPT STOP ...]
"""

from __future__ import annotations

import sys
import tempfile
from threading import Thread

from transformers import AutoModelForCausalLM, AutoTokenizer, TextIteratorStreamer

from stopscan.transformers import Stops
from stopscan_conformance.reciter import Reciter


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        if len(sys.argv) > 1:
            path, prompt, *stop = sys.argv[1:]
        else:
            # The model writes "1, 2, 3 hello world 4 ...". "hello world" spans three tokens: "3 hel", "lo wor", "ld 4".
            path, prompt, stop = str(Reciter().write(directory)), "[count]", ["hello world", "6"]
        model, tokenizer = AutoModelForCausalLM.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    streamer = TextIteratorStreamer(tokenizer)
    stops = Stops(tokenizer, stop, streamer=streamer)

    def generate() -> None:
        try:
            inputs = tokenizer(prompt, return_tensors="pt")
            model.generate(**inputs, max_new_tokens=500, stopping_criteria=[stops], streamer=stops)
        finally:
            stops.close()  # so that the reader does not wait for ever after an error

    thread = Thread(target=generate)
    thread.start()
    for text in streamer:
        print(text, end="", flush=True)
    thread.join()
    print(f"\n{stops.finishes[0].reason}: {stops.finishes[0].match or 'no stop'}, {stops.tokens_seen[0]} tokens")


if __name__ == "__main__":
    main()
