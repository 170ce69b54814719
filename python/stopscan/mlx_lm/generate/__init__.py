"""mlx-lm's loops with exact stops; ``python -m stopscan.mlx_lm.generate`` is the command line of the single loop."""

from stopscan.mlx_lm.generate._batch import BatchResponse, batch_generate
from stopscan.mlx_lm.generate._single import GenerationResponse, generate, stream_generate

__all__ = ["BatchResponse", "GenerationResponse", "batch_generate", "generate", "stream_generate"]
