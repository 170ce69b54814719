"""Token ids in, safe text out: scanners and segmenters of token ids, and the vocabularies of tokenizers."""

from stopscan._stopscan import TokenScanner, TokenSegmenter
from stopscan.tokens._vocabulary import Vocabulary

__all__ = ["TokenScanner", "TokenSegmenter", "Vocabulary"]
