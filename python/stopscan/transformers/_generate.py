"""``generate`` takes prompts and returns their answers."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import torch

from stopscan.finish import Finish
from stopscan.segments import Segment
from stopscan.transformers._options import OPTIONS, Stop
from stopscan.transformers._stops import Stops

# The entries of a tokenizer's result that only concern text. A result with other entries, such as images, is refused.
TEXT_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "special_tokens_mask", "offset_mapping", "length"}


@dataclass(frozen=True)
class Answer:
    """One answer of ``generate``: its text up to the stop, why it ended, and its segments if the stop is a
    ``SegmentSet``.
    """

    text: str
    finish: Finish
    segments: list[Segment] | None = None


def generate(model: Any, tokenizer: Any, prompts: Any, /, stop: Stop = (), **options: Any) -> list[Answer]:
    """Returns the answers of ``model.generate`` to ``prompts``, cut at their stops: an ``Answer`` for each prompt and
    returned sequence.

    A text, token ids (a list, a tensor or an array), or a list of messages is one prompt. A list of these has several
    prompts, and so has a tensor or an array of two dimensions. The result of the tokenizer, or of its
    ``apply_chat_template``, is also accepted: its padding is removed. Messages go through the tokenizer's chat
    template. If the last message is the assistant's, the answer continues that message.

    The options of ``Stops`` are taken from ``options``. The other options go to ``model.generate``. Shorter prompts are
    padded.

    Raises ``TypeError`` for any other ``prompts``, and for a prompt without tokens.

    >>> [answer.text for answer in generate(model, tokenizer, ["Count: 1,", "Once"], ["END"], max_new_tokens=50)]
    >>> generate(model, tokenizer, [{"role": "user", "content": "Count to 9."}], "6", max_new_tokens=50)[0].text
    """
    streamer = options.pop("streamer", None)
    own: Any = {name: options.pop(name) for name in OPTIONS if name in options}
    stops = Stops(tokenizer, stop, streamer=streamer, **own)
    rows = _rows(stops.tokenizer, prompts)
    if not rows:
        return []
    options["stopping_criteria"] = [*(options.get("stopping_criteria") or ()), stops]
    if streamer is not None:  # pass `stops` as the streamer only if needed, because beam search refuses streamers
        options["streamer"] = stops
    try:
        # Call `trim`, although its result is not used: only `trim` finds which beams of a beam search are the results.
        stops.trim(model.generate(**_inputs(model, stops.tokenizer, rows), **options))
    except BaseException:
        stops.close()
        raise
    segments: Sequence[Any] = stops.segments if stops.tells_segments else [None] * len(stops.texts)
    return [Answer(*row) for row in zip(stops.texts, stops.finishes, segments, strict=True)]


def _rows(tokenizer: Any, prompts: Any) -> list[list[int]]:
    """Returns the token ids of each prompt."""
    prompts = _plain(prompts)
    several = isinstance(prompts, list) and not (prompts and (isinstance(prompts[0], int) or _is_message(prompts[0])))
    return [_ids(tokenizer, prompt) for prompt in (prompts if several else [prompts])]


def _plain(given: Any) -> Any:
    """Returns prompts as plain lists: turns tensors, arrays and iterables into lists, and removes a tokenizer's
    padding."""
    if isinstance(given, Mapping) and "input_ids" in given:
        if extra := given.keys() - TEXT_INPUTS:
            names = ", ".join(sorted(extra))
            raise TypeError(f"generate takes prompts of tokens alone, not {names}: pass a Stops to model.generate")
        ids, mask = _plain(given["input_ids"]), _plain(given.get("attention_mask"))
        if mask is None:
            return ids
        rows = zip(ids, mask, strict=True) if ids and isinstance(ids[0], list) else [(ids, mask)]
        return [[*compress(row, kept)] for row, kept in rows]
    if hasattr(given, "tolist"):
        return given.tolist()
    listed = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    return [_plain(each) for each in given] if listed else given


def _ids(tokenizer: Any, prompt: Any) -> list[int]:
    """Returns the token ids of one prompt. Raises ``TypeError`` if it is not a prompt or has no tokens."""
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], list):  # a batch of one
        (prompt,) = prompt
    ids: Any = prompt
    if isinstance(prompt, str):
        ids = tokenizer(prompt).input_ids
        # A text that a chat template made often begins with the BOS. The tokenizer adds a second BOS, which is removed
        # here.
        ids = ids[1:] if ids[:2] == [tokenizer.bos_token_id] * 2 else ids
    elif isinstance(prompt, list) and prompt and all(map(_is_message, prompt)):
        goes_on = prompt[-1]["role"] == "assistant"
        ids = tokenizer.apply_chat_template(
            prompt, add_generation_prompt=not goes_on, continue_final_message=goes_on, return_dict=True
        )["input_ids"]
    if not isinstance(ids, list) or any(type(each) is not int for each in ids):
        raise TypeError(
            "a prompt is a text, token ids or messages; pass one prompt, a list of prompts, or what the tokenizer "
            f"returned for them, not {reprlib.repr(prompt)}"
        )
    if not ids:
        raise TypeError("a prompt has no tokens: pass at least one, such as the tokenizer's bos_token")
    return ids


def _is_message(prompt: Any) -> bool:
    return isinstance(prompt, Mapping) and "role" in prompt


def _inputs(model: Any, tokenizer: Any, rows: list[list[int]]) -> dict[str, Any]:
    """Returns ``rows`` (the token ids of each prompt) as tensors. Shorter rows are padded on the left, but for
    encoder-decoder models on the right."""
    length = max(map(len, rows))
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0

    def padded(row: list[int], filler: int) -> list[int]:
        padding = [filler] * (length - len(row))
        return [*row, *padding] if model.config.is_encoder_decoder else [*padding, *row]

    tensors = {
        "input_ids": [padded(row, pad) for row in rows],
        "attention_mask": [padded([1] * len(row), 0) for row in rows],
    }
    return {name: torch.tensor(values, dtype=torch.long, device=model.device) for name, values in tensors.items()}
