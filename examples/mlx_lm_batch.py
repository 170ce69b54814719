"""Generates answers in one batch of mlx-lm 0.31 or later. The loop removes a row as soon as the row has a finish.

With mlx-lm 0.32 or later, you can pass a ``RowScanner`` as the row's ``stop_sequences`` instead, and mlx-lm removes the
row.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from typing import Any

import mlx_lm
from mlx_lm.generate import BatchGenerator

from stopscan.finish import to_anthropic
from stopscan.mlx_lm import RowScanner
from stopscan_conformance.reciter import Reciter


def answers(model: Any, tokenizer: Any, asked: list[tuple[str, list[str]]], max_tokens: int = 100) -> list[Any]:
    """Answers the prompts in one batch. Each prompt has its own stops. Returns the answers as Anthropic's messages."""
    with closing(BatchGenerator(model)) as generator:
        prompts = [tokenizer.encode(prompt) for prompt, _ in asked]
        uids = generator.insert(prompts, [max_tokens] * len(prompts))
        rows = {
            uid: RowScanner(tokenizer, stop, max_tokens=max_tokens, prompt=prompt)
            for uid, prompt, (_, stop) in zip(uids, prompts, asked, strict=True)
        }
        texts = dict.fromkeys(uids, "")
        running = {*uids}
        while running:
            for response in generator.next_generated():
                row = rows[response.uid]
                texts[response.uid] += row.feed(response.token)  # safe to send
                if row.finish is not None:
                    running.remove(response.uid)
                    if response.finish_reason is None:  # if there is a reason, mlx-lm itself has removed the row
                        generator.remove([response.uid])
    return [
        {
            "content": [{"type": "text", "text": texts[uid]}],
            **to_anthropic(rows[uid].finish),
            "usage": {"output_tokens": rows[uid].tokens_seen},
        }
        for uid in uids
    ]


def main() -> None:
    reciter = Reciter({"story": ["Once", " upon a", " time. E", "ND of", " it"]})
    with tempfile.TemporaryDirectory() as directory:
        model, tokenizer = mlx_lm.load(str(reciter.write(directory)))
    asked = [("[story]", ["END"]), ("[story]", ["\n\nHuman:"]), ("[story]", ["upon", "END"])]
    for message in answers(model, tokenizer, asked):
        print(json.dumps(message))


if __name__ == "__main__":
    main()
