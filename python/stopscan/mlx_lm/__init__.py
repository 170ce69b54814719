"""Exact stops for mlx-lm: its generate functions, and ``RowScanner`` and ``RowSegmenter`` for loops of your own.

The commands are ``python -m stopscan.mlx_lm.generate`` and ``python -m stopscan.mlx_lm.server``.
"""

from stopscan.mlx_lm._row import RowScanner, RowSegmenter
from stopscan.mlx_lm.generate import BatchResponse, GenerationResponse, batch_generate, generate, stream_generate

__all__ = [
    "BatchResponse",
    "GenerationResponse",
    "RowScanner",
    "RowSegmenter",
    "batch_generate",
    "generate",
    "stream_generate",
]
