"""Cleans up the spaces of a stream of text, as transformers does for some tokenizers."""

from __future__ import annotations

from copy import copy

# The replacements of `PreTrainedTokenizerBase.clean_up_tokenization`, in its order.
_REPLACEMENTS = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
]


def cleaned_up(text: str) -> str:
    """Returns ``text``, which is a whole text, with its spaces cleaned up."""
    for old, new in _REPLACEMENTS:
        text = text.replace(old, new)
    return text


class CleanUp:
    """Cleans up a stream. The cleaned-up text consists of all results of ``feed``, and of the result of ``tail`` at the
    end."""

    def __init__(self) -> None:
        # For each replacement, the text that is withheld, which may be empty. It is the beginning of the text to
        # replace. The text that comes next decides whether it is replaced.
        self.held = [""] * len(_REPLACEMENTS)

    def feed(self, text: str, /) -> str:
        """Reads ``text``. Returns the cleaned-up text that no later text can change."""
        for index, (old, new) in enumerate(_REPLACEMENTS):
            *parts, last = (self.held[index] + text).split(old)
            begun = next(count for count in range(len(old) - 1, -1, -1) if last.endswith(old[:count]))
            text = new.join([*parts, last[: len(last) - begun]])
            self.held[index] = old[:begun]
        return text

    def tail(self) -> str:
        """Returns the rest of the cleaned-up text if the stream ends here. Does not change the state."""
        text = ""
        for held, (old, new) in zip(self.held, _REPLACEMENTS, strict=True):
            text = (held + text).replace(old, new)
        return text

    def copy(self) -> CleanUp:
        other = copy(self)
        other.held = [*self.held]
        return other
