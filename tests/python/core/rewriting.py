"""Rewriting by brute force: what a `Rewriter` must return and hold."""

from __future__ import annotations


def rewritten(replacements: dict[str, str], text: str, ended: bool = True) -> tuple[str, str]:
    """Returns the text with its keys replaced, and the end of the text that must be held, because it may become a key
    or a longer key. Holds nothing if the text has `ended`."""
    out, at = "", 0
    while at < len(text):
        rest = text[at:]
        if not ended and any(len(key) > len(rest) and key.startswith(rest) for key in replacements):
            return out, rest
        key = max((key for key in replacements if rest.startswith(key)), key=len, default=rest[0])
        out += replacements.get(key, key)
        at += len(key)
    return out, ""
