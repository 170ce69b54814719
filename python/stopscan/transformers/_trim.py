from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

# The fields of generate's output that have an entry for each step.
STEPS = (
    "scores",
    "logits",
    "attentions",
    "hidden_states",
    "decoder_attentions",
    "decoder_hidden_states",
    "cross_attentions",
)


def trimmed(output: Any, prompt_length: int, lengths: Sequence[int], pad_token_id: int) -> Any:
    """Returns ``output`` of ``generate``. Each row keeps the prompt and as many tokens after it as ``lengths`` says."""
    if isinstance(output, torch.Tensor):
        return _cut(output, prompt_length, lengths, pad_token_id)
    fields = dict(output)
    steps = max(lengths, default=0)
    fields["sequences"] = _cut(output.sequences, prompt_length, lengths, pad_token_id)
    for name in STEPS:
        if fields.get(name) is not None:
            fields[name] = fields[name][:steps]
    if fields.get("beam_indices") is not None:
        fields["beam_indices"] = _cut(fields["beam_indices"], 0, lengths, -1)
    return type(output)(**fields)


def _cut(sequences: Any, prompt_length: int, lengths: Sequence[int], filler: int) -> Any:
    cut = sequences[:, : prompt_length + max(lengths, default=0)].clone()
    for row, length in zip(cut, lengths, strict=True):
        row[prompt_length + length :] = filler
    return cut
