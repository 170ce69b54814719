"""What the tests of real transformers share: a loaded model whose steps are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from stopscan.transformers import Stops
from stopscan.transformers._stops import ASKS_OF_DRAFTS

needs_true_drafts = pytest.mark.skipif(ASKS_OF_DRAFTS, reason="assisted decoding needs transformers 5.18")

# One thread is enough. The steps are too small to divide, and CI's machine runs other programs at the same time.
torch.set_num_threads(1)


class Pieces:
    """A streamer that records the texts that it gets."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.ends = 0

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        assert not self.ends
        self.texts.append(text)
        self.ends += stream_end


@dataclass
class Engine:
    model: Any
    tokenizer: Any
    draft: Any  # the same model again, as the draft model; its steps are not counted
    steps: list[tuple[int, ...]] = field(default_factory=list)

    @classmethod
    def load(cls, checkpoint: Path) -> Engine:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
        tokenizer.pad_token = tokenizer.eos_token
        model, draft = (AutoModelForCausalLM.from_pretrained(checkpoint) for _ in range(2))
        engine = cls(model, tokenizer, draft)
        engine.model.register_forward_pre_hook(engine._count, with_kwargs=True)
        return engine

    def _count(self, _model: Any, _args: Any, options: dict[str, Any]) -> None:
        self.steps.append(tuple(options["input_ids"].shape))

    @contextmanager
    def counted(self) -> Iterator[list[tuple[int, ...]]]:
        """Yields a list. Each step of the model in the ``with`` block appends the shape of its input tokens to the
        list."""
        self.steps.clear()
        yield self.steps

    def generate(self, prompts: str | Sequence[str], stops: Stops, *, streamed: bool = True, **options: Any) -> Any:
        """Calls the model's ``generate`` with ``stops`` as its criterion and, if ``streamed``, also as its streamer."""
        inputs = self.tokenizer(
            [prompts] if isinstance(prompts, str) else list(prompts), return_tensors="pt", padding=True
        )
        options = {"max_new_tokens": 200, "streamer": stops if streamed else None, **options}
        return self.model.generate(**inputs, stopping_criteria=[stops], **options)

    def text(self, prompt: str, *args: Any, streamed: bool = True, generation: Any = None, **options: Any) -> str:
        """The text that the model writes after one prompt, with the stops that ``args`` and ``options`` describe."""
        stops = Stops(self.tokenizer, *args, **options)
        self.generate(prompt, stops, streamed=streamed, **(generation or {}))
        (text,) = stops.texts
        return text
