"""Makes prompts into token ids."""

from __future__ import annotations

from typing import Any

from jinja2 import TemplateError
from starlette.exceptions import HTTPException

TAIL = 32  # how many ids at the end of a prompt are searched for a marker that opens a region, such as <think>

Messages = list[dict[str, Any]]


class Prompts:
    """Encodes the prompts of one model. Methods return the ids, and the text in which a marker may open a region."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._fast = getattr(tokenizer, "backend_tokenizer", None)

    def of_text(self, text: str) -> tuple[list[int], str]:
        """Returns the ids, and the text of the last `TAIL` ids."""
        ids = self._encoded(text, True)
        return ids, self._tokenizer.decode(ids[-TAIL:])

    def of_ids(self, ids: list[int]) -> tuple[list[int], str]:
        unknown = [token for token in ids if not 0 <= token < self._tokenizer.vocab_size]
        if unknown:
            raise HTTPException(400, f"prompt: the model has no token {unknown[0]}")
        return ids, self._tokenizer.decode(ids[-TAIL:])

    def of_messages(self, messages: Messages, **options: Any) -> tuple[list[int], str]:
        """Returns the ids, and the text that the template adds after the messages. Only a `<think>` in that text opens
        a region. A `<think>` that a user wrote does not."""
        try:
            asked, whole = (
                self._tokenizer.apply_chat_template(messages, add_generation_prompt=add, tokenize=False, **options)
                for add in (False, True)
            )
        except TemplateError as error:  # raised by a template that does not support these messages
            raise HTTPException(400, f"messages: {error}") from error
        return self._encoded(whole, False), whole[len(asked) :] if whole.startswith(asked) else ""

    def _encoded(self, text: str, special: bool) -> list[int]:
        if self._fast is None:
            return list(self._tokenizer.encode(text, add_special_tokens=special))
        return list(self._fast.encode(text, add_special_tokens=special).ids)  # several threads may call it at once
