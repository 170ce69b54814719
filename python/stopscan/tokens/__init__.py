"""Scanners and segmenters that read token ids and return text, and the vocabularies of tokenizers."""

from stopscan._stopscan import TokenScanner, TokenSegmenter
from stopscan.tokens._vocabulary import Vocabulary

__all__ = ["TokenScanner", "TokenSegmenter", "Vocabulary"]
