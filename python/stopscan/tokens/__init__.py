"""Token ids in, safe text out: the vocabularies of tokenizers, and scanners over them."""

from stopscan._stopscan import TokenScanner
from stopscan.tokens._vocabulary import Vocabulary

__all__ = ["TokenScanner", "Vocabulary"]
