"""mlx-lm's loops with exact stops, ``RowScanner`` for loops of your own, and ``python -m stopscan.mlx_lm.server``.

Needs mlx-lm 0.32.0 or later; the import fails with an ``ImportError`` on a version that does not fit.
"""

# First: it says which versions fit.
from stopscan.mlx_lm import _versions as _versions
from stopscan.mlx_lm._batch import BatchResponse, batch_generate
from stopscan.mlx_lm._generate import GenerationResponse, generate, stream_generate
from stopscan.mlx_lm._row import RowScanner

__all__ = ["BatchResponse", "GenerationResponse", "RowScanner", "batch_generate", "generate", "stream_generate"]
