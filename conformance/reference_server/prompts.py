"""Prompts as token ids."""

from __future__ import annotations

from typing import Any

from jinja2 import TemplateError
from starlette.exceptions import HTTPException

TAIL = 32  # how many of the last ids may hold the marker that opens the answer

Messages = list[dict[str, Any]]


class Prompts:
    """How one model's prompts are made."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._fast = getattr(tokenizer, "backend_tokenizer", None)

    def of_text(self, text: str) -> tuple[list[int], str]:
        """The ids, and the text that the answer follows, or its end."""
        ids = self._encoded(text, True)
        return ids, self._tokenizer.decode(ids[-TAIL:])

    def of_ids(self, ids: list[int]) -> tuple[list[int], str]:
        unknown = [token for token in ids if not 0 <= token < self._tokenizer.vocab_size]
        if unknown:
            raise HTTPException(400, f"prompt: the model has no token {unknown[0]}")
        return ids, self._tokenizer.decode(ids[-TAIL:])

    def of_messages(self, messages: Messages, **options: Any) -> tuple[list[int], str]:
        """The ids, and what of their end is not the user's: a user who writes `<think>` opens nothing."""
        try:
            asked, whole = (
                self._tokenizer.apply_chat_template(messages, add_generation_prompt=add, tokenize=False, **options)
                for add in (False, True)
            )
        except TemplateError as error:  # templates refuse what they are not made for
            raise HTTPException(400, f"messages: {error}") from error
        return self._encoded(whole, False), whole[len(asked) :] if whole.startswith(asked) else ""

    def _encoded(self, text: str, special: bool) -> list[int]:
        if self._fast is None:
            return list(self._tokenizer.encode(text, add_special_tokens=special))
        return list(self._fast.encode(text, add_special_tokens=special).ids)  # several threads may ask it at once
