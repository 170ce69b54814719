"""What mlx-lm's generation thread cannot take. An exception there ends all answers of the server, and a token id beyond
the model's ends the process, so that each is refused before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Larger ones overflow in mlx, or mean no limit at all.
MOST = 2**31 - 1
COUNTS = (
    "max_tokens",
    "max_completion_tokens",
    "top_k",
    "num_draft_tokens",
    "repetition_context_size",
    "presence_context_size",
    "frequency_context_size",
)
NUMBERS = (
    "temperature",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "xtc_probability",
    "xtc_threshold",
)
MOST_SEED = 2**64 - 1


def check_body(body: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` for a request that mlx-lm would take and then fail with, naming the field."""
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("the request has a lone surrogate, which is no text") from None
    for name in (*COUNTS, *NUMBERS, "top_logprobs", "seed"):
        if isinstance(body.get(name), bool):  # which Python takes for a number, and mlx does not
            raise ValueError(f"{name} must be a number, not a boolean")
    for name in COUNTS:
        value = body.get(name)
        if isinstance(value, int) and value > MOST:
            raise ValueError(f"{name} must be at most {MOST}")
    for name in NUMBERS:
        value = body.get(name)
        if isinstance(value, int | float) and not abs(value) <= MOST:
            raise ValueError(f"{name} must be a finite number, at most {MOST}")
    seed = body.get("seed")
    if isinstance(seed, int) and not 0 <= seed <= MOST_SEED:
        raise ValueError(f"seed must be from 0 to {MOST_SEED}")
    if body.get("n") not in (None, 1):  # mlx-lm passes it over, and gives one answer
        raise ValueError(f"n must be 1, not {body['n']!r}: this server gives one answer to a request")
    draft = body.get("draft_model")
    if draft is not None and not isinstance(draft, str):
        raise ValueError(f"draft_model must be a string, not {type(draft).__name__}")
    bias = body.get("logit_bias")
    if isinstance(bias, Mapping) and not all(abs(float(value)) <= MOST for value in bias.values()):
        raise ValueError(f"logit_bias must have finite numbers, at most {MOST}")


def check_text_prompt(body: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` for a prompt of /v1/completions that is no text, or that is empty."""
    prompt = body.get("prompt")
    if not isinstance(prompt, str):
        raise ValueError(
            f"prompt must be a string, not {type(prompt).__name__}: this server answers one prompt at once"
        )
    if not prompt:
        raise ValueError("prompt is empty")


def check_ids(model: Any, tokenizer: Any, prompt: Any, logit_bias: Mapping[int, float] | None) -> None:
    """Raises ``ValueError`` for a prompt without tokens, and for a bias of a token that the model does not have."""
    if not prompt:
        raise ValueError("the prompt has no tokens")
    if not logit_bias:
        return
    size = getattr(getattr(model, "args", None), "vocab_size", None)
    if not isinstance(size, int):  # a model of several parts: its tokenizer has fewer ids, if anything
        size = max(tokenizer.get_vocab().values()) + 1
    for token_id in logit_bias:
        if not 0 <= token_id < size:
            raise ValueError(f"logit_bias: there is no token {token_id}; the last one is {size - 1}")
