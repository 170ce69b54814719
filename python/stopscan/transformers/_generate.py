"""``generate`` takes prompts and returns their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stopscan.finish import Finish
from stopscan.segments import Segment
from stopscan.transformers._options import OPTIONS, Stop
from stopscan.transformers._stops import Stops


@dataclass(frozen=True)
class Answer:
    """The answer of one row: its text up to the stop, why the row ended, and its segments if the stop is a
    ``SegmentSet``.
    """

    text: str
    finish: Finish
    segments: list[Segment] | None = None


def generate(model: Any, tokenizer: Any, prompts: Any, /, stop: Stop = (), **options: Any) -> list[Answer]:
    """Returns the answers of ``model.generate`` to ``prompts``, cut at their stops: an ``Answer`` for each prompt and
    returned sequence.

    A text, a list of token ids, or a list of messages is one prompt. A list of these has several prompts. Messages go
    through the tokenizer's chat template. If the last message is the assistant's, the answer continues that message.

    The options of ``Stops`` are taken from ``options``. The other options go to ``model.generate``. Shorter prompts are
    padded.

    >>> [answer.text for answer in generate(model, tokenizer, ["Count: 1,", "Once"], ["END"], max_new_tokens=50)]
    >>> generate(model, tokenizer, [{"role": "user", "content": "Count to 9."}], "6", max_new_tokens=50)[0].text
    """
    streamer = options.pop("streamer", None)
    own: Any = {name: options.pop(name) for name in OPTIONS if name in options}
    stops = Stops(tokenizer, stop, streamer=streamer, **own)
    inputs = _inputs(model, stops.tokenizer, [_ids(stops.tokenizer, prompt) for prompt in _several(prompts)])
    if not len(inputs["input_ids"]):
        return []
    options["stopping_criteria"] = [*(options.get("stopping_criteria") or ()), stops]
    if streamer is not None:  # otherwise pass none, because beam search refuses any streamer
        options["streamer"] = stops
    try:
        # Call `trim`, although its result is not used: only `trim` finds which beams of a beam search are the results.
        stops.trim(model.generate(**inputs, **options))
    except BaseException:
        stops.close()
        raise
    segments: Sequence[Any] = stops.segments if stops.tells_segments else [None] * len(stops.texts)
    return [Answer(*row) for row in zip(stops.texts, stops.finishes, segments, strict=True)]


def _several(prompts: Any) -> list[Any]:
    """Returns ``prompts`` as a list, even if it is a single prompt."""
    one = isinstance(prompts, str) or (len(prompts) and isinstance(prompts[0], int | Mapping))
    return [prompts] if one else list(prompts)


def _ids(tokenizer: Any, prompt: Any) -> list[int]:
    """Returns the token ids of a prompt."""
    if not isinstance(prompt, str):
        kinds = {Mapping if isinstance(each, Mapping) else type(each) for each in prompt}
        if kinds == {Mapping}:
            goes_on = prompt[-1]["role"] == "assistant"
            made = tokenizer.apply_chat_template(
                prompt, add_generation_prompt=not goes_on, continue_final_message=goes_on, return_dict=True
            )
            return list(made["input_ids"])
        if kinds - {int}:
            raise TypeError(f"a prompt is a text, token ids or messages, not {prompt!r}")
        return list(prompt)
    ids: list[int] = tokenizer(prompt).input_ids
    # The text of a chat template often begins with the BOS, and the tokenizer adds a second one.
    return ids[1:] if ids[:2] == [tokenizer.bos_token_id] * 2 else ids


def _inputs(model: Any, tokenizer: Any, rows: list[list[int]]) -> dict[str, Any]:
    """Returns ``rows`` as tensors. Shorter rows are padded on the left, but for encoder-decoder models on the right."""
    length = max(map(len, rows), default=0)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0
    ids, mask = [], []
    for row in rows:
        padding, known = [pad] * (length - len(row)), [1] * len(row)
        none = [0] * len(padding)
        at_right = model.config.is_encoder_decoder
        ids.append([*row, *padding] if at_right else [*padding, *row])
        mask.append([*known, *none] if at_right else [*none, *known])
    tensors = {"input_ids": ids, "attention_mask": mask}
    return {name: torch.tensor(values, dtype=torch.long, device=model.device) for name, values in tensors.items()}
