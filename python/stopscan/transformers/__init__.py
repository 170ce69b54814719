"""Exact stops in transformers' ``generate``; ``stopscan.transformers.continuous`` has them for continuous batching,
``python -m stopscan.transformers.serve`` for the server, and ``stopscan.transformers.lm_eval`` for
lm-evaluation-harness."""

from stopscan.transformers._stops import Stops

__all__ = ["Stops"]
