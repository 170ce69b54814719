from __future__ import annotations

from collections.abc import Sequence
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


def generate(
    model: Any, tokenizer: Any, prompts: str | Sequence[str], stop: Stop = (), /, **options: Any
) -> list[Answer]:
    """Returns the answers of ``model.generate`` to ``prompts``, cut at their stops: an ``Answer`` for each prompt and
    returned sequence.

    ``generate`` takes the options of ``Stops`` out of ``options``. The other options go to ``model.generate``. Shorter
    prompts are padded. The default of ``eos_token_ids`` is in the configuration of the generation.

    >>> [answer.text for answer in generate(model, tokenizer, ["Count: 1,", "Once"], ["END"], max_new_tokens=50)]
    """
    own = {name: options.pop(name) for name in ("streamer", *OPTIONS) if name in options}
    config = options.get("generation_config") or model.generation_config
    stops = Stops(tokenizer, stop, **{"eos_token_ids": config.eos_token_id, **own})
    inputs = _inputs(model, stops.tokenizer, [prompts] if isinstance(prompts, str) else list(prompts))
    if not len(inputs["input_ids"]):
        return []
    criteria = [*options.pop("stopping_criteria", ()), stops]
    beams = options.get("num_beams", config.num_beams) or 1
    # Beam search takes no streamer.
    streamer = stops if beams == 1 else None
    try:
        output = model.generate(**inputs, stopping_criteria=criteria, streamer=streamer, **options)
    except BaseException:
        stops.close()
        raise
    if beams > 1:
        stops.trim(output)  # which tells which of the beams are the results
    segments: Sequence[Any] = stops.segments if stops.tells_segments else [None] * len(stops.texts)
    return [Answer(*row) for row in zip(stops.texts, stops.finishes, segments, strict=True)]


def _inputs(model: Any, tokenizer: Any, prompts: list[str]) -> dict[str, Any]:
    """The prompts as tensors, all of one length: decoders go on at the right, so that they are padded on the left."""
    rows = tokenizer(prompts).input_ids if prompts else []
    length = max(map(len, rows), default=0)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0
    fillers = [length - len(row) for row in rows]
    ids, mask = [], []
    for row, filler in zip(rows, fillers, strict=True):
        padding, text = ([pad] * filler, [0] * filler), (row, [1] * len(row))
        first, last = (text, padding) if model.config.is_encoder_decoder else (padding, text)
        ids.append([*first[0], *last[0]])
        mask.append([*first[1], *last[1]])
    tensors = {"input_ids": ids, "attention_mask": mask}
    return {name: torch.tensor(values, dtype=torch.long, device=model.device) for name, values in tensors.items()}
