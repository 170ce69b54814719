"""mlx-lm's loops with exact stops, ``RowScanner`` for loops of your own, and the commands
``python -m stopscan.mlx_lm.generate`` and ``python -m stopscan.mlx_lm.server``.
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
