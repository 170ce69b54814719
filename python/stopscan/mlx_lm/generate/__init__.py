"""``python -m stopscan.mlx_lm.generate``: mlx_lm.generate's command line with exact stops."""

from stopscan.mlx_lm._generate import GenerationResponse, generate, stream_generate

__all__ = ["GenerationResponse", "generate", "stream_generate"]
