"""mlx-lm's loops with exact stops, ``RowScanner`` for loops of your own, and the commands
``python -m stopscan.mlx_lm.generate`` and ``python -m stopscan.mlx_lm.server``.

``RowScanner``, ``RowSegmenter``, ``stream_generate`` and ``generate`` work with mlx-lm 0.29 and later,
``batch_generate`` and the server with 0.32 and later; on an mlx-lm that does not fit, they raise an ``ImportError``
when they are used.
"""

from stopscan.mlx_lm._batch import BatchResponse, batch_generate
from stopscan.mlx_lm._row import RowScanner, RowSegmenter
from stopscan.mlx_lm.generate import GenerationResponse, generate, stream_generate

__all__ = [
    "BatchResponse",
    "GenerationResponse",
    "RowScanner",
    "RowSegmenter",
    "batch_generate",
    "generate",
    "stream_generate",
]
