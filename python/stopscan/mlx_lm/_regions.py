from __future__ import annotations

from typing import Any

# How many of a prompt's last tokens are looked at: chat templates end with the marker and line breaks.
PROMPT_TOKENS = 32


def prompt_end(tokenizer: Any, prompt: Any) -> str:
    """The text that an answer to ``prompt``, text or token ids, follows."""
    if isinstance(prompt, str):
        return prompt
    ids = prompt[-PROMPT_TOKENS:]
    text: str = tokenizer.decode(ids.tolist() if hasattr(ids, "tolist") else ids)
    return text
