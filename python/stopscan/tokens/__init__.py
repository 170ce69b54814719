"""Token ids in, safe text out: the vocabularies of tokenizers, and scanners and segmenters over them."""

from stopscan._stopscan import TokenScanner, TokenSegmenter
from stopscan.tokens._vocabulary import Vocabulary

__all__ = ["TokenScanner", "TokenSegmenter", "Vocabulary"]
