"""Prompts as token ids. A prompt is bounded before it is encoded, and encoding leaves the event loop alone."""

from __future__ import annotations

from typing import Any

from jinja2 import TemplateError
from starlette.exceptions import HTTPException

PIECE = 50_000  # characters: what is too long is refused before it all is encoded, for giving that back takes the GIL
TAIL = 32  # how many of the last ids may hold the marker that opens the answer

Messages = list[dict[str, Any]]


class Prompts:
    """How one model's prompts are made."""

    def __init__(self, tokenizer: Any, context: int) -> None:
        self._tokenizer = tokenizer
        self._fast = getattr(tokenizer, "backend_tokenizer", None)
        self._context = context
        # No token has more characters than it is spelled with.
        self.max_characters = context * max(map(len, tokenizer.get_vocab()))

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
        characters = sum(len(str(message["content"])) for message in messages)
        self._check(characters)
        try:
            asked, whole = (
                self._tokenizer.apply_chat_template(messages, add_generation_prompt=add, tokenize=False, **options)
                for add in (False, True)
            )
        except TemplateError as error:  # templates refuse what they are not made for
            raise HTTPException(400, f"messages: {error}") from error
        return self._encoded(whole, False), whole[len(asked) :] if whole.startswith(asked) else ""

    def _encoded(self, text: str, special: bool) -> list[int]:
        self._check(len(text))
        if self._fast is None:
            return list(self._tokenizer.encode(text, add_special_tokens=special))
        count = 0
        for begin in range(0, len(text), PIECE) if len(text) > PIECE else ():
            count += len(self._piece(text[begin : begin + PIECE], False))
            if count > self._context * 5 // 4:  # a cut makes a few tokens more
                raise HTTPException(400, f"over {count} tokens do not fit into the context of {self._context}")
        return list(self._piece(text, special).ids)

    def _piece(self, text: str, special: bool) -> Any:
        # `encode` keeps the GIL for its whole run, and everybody waits.
        return self._fast.encode_batch([text], add_special_tokens=special)[0]

    def _check(self, characters: int) -> None:
        if characters > self.max_characters:
            raise HTTPException(400, f"{characters} characters do not fit into the context of {self._context} tokens")
