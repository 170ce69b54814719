"""Streams the answer of a model up to a stop, and prints why the answer ended. The default is a tiny model that writes
a fixed text.

python examples/transformers_generate.py [MODEL PROMPT STOP ...]
"""

from __future__ import annotations

import sys
from threading import Thread
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    TextIteratorStreamer,
)

from stopscan.engines.selftest import Tokenizer
from stopscan.transformers import Stops

# "hello world" spans three tokens.
WORDS = ["1, ", "2, ", "3 hel", "lo wor", "ld 4", ", 5"]


def counting() -> tuple[Any, Any]:
    """Returns a model that writes ``WORDS`` after any prompt, and its tokenizer."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WORDS, ["<eos>"]).backend, eos_token="<eos>")
    size = len(tokenizer)  # 256 bytes, the words, the EOS
    sizes = {"vocab_size": size, "hidden_size": size, "num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 2}
    model = LlamaForCausalLM(LlamaConfig(**sizes, bos_token_id=None, eos_token_id=size - 1, pad_token_id=size - 1))
    for weights in model.parameters():
        weights.data.zero_()
    model.model.embed_tokens.weight.data += torch.eye(size)
    model.model.norm.weight.data += 1
    model.lm_head.weight.data += torch.eye(size).roll(1, 0)  # after a word, the model writes the next word
    model.lm_head.weight.data[256, :256] = 2  # after a byte, which ends the prompt, the model writes the first word
    return model, tokenizer


def main() -> None:
    if len(sys.argv) > 1:
        path, prompt, *stop = sys.argv[1:]
        model, tokenizer = AutoModelForCausalLM.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    else:
        (model, tokenizer), prompt, stop = counting(), "Count:", ["hello world", "6"]
    streamer = TextIteratorStreamer(tokenizer)
    stops = Stops(tokenizer, stop, streamer=streamer)

    def generate() -> None:
        try:
            inputs = tokenizer(prompt, return_tensors="pt")
            model.generate(**inputs, max_new_tokens=500, stopping_criteria=[stops], streamer=stops)
        finally:
            stops.close()  # also after an error: otherwise the loop over `streamer` would wait for ever

    thread = Thread(target=generate)
    thread.start()
    for text in streamer:
        print(text, end="", flush=True)
    thread.join()
    print(f"\n{stops.finishes[0].reason}: {stops.finishes[0].match or 'no stop'}, {stops.tokens_seen[0]} tokens")


if __name__ == "__main__":
    main()
