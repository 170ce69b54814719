"""The clean-up of spaces that transformers does for some tokenizers, on a stream of text."""

from __future__ import annotations

from copy import copy

# As `PreTrainedTokenizerBase.clean_up_tokenization` has them, one after the other.
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
    """All of a text, cleaned up."""
    for old, new in _REPLACEMENTS:
        text = text.replace(old, new)
    return text


class CleanUp:
    """Cleans up a stream: what ``feed`` returned, joined, with ``tail`` at the end, is the whole text cleaned up."""

    def __init__(self) -> None:
        # What each replacement withholds, because it may be the beginning of what it replaces.
        self.held = [""] * len(_REPLACEMENTS)

    def feed(self, text: str, /) -> str:
        """The text that nothing to come can change any more."""
        for index, (old, new) in enumerate(_REPLACEMENTS):
            *parts, last = (self.held[index] + text).split(old)
            begun = next(count for count in range(len(old) - 1, -1, -1) if last.endswith(old[:count]))
            text = new.join([*parts, last[: len(last) - begun]])
            self.held[index] = old[:begun]
        return text

    def tail(self) -> str:
        """The rest, if the text ends here."""
        text = ""
        for held, (old, new) in zip(self.held, _REPLACEMENTS, strict=True):
            text = (held + text).replace(old, new)
        return text

    def copy(self) -> CleanUp:
        other = copy(self)
        other.held = [*self.held]
        return other
