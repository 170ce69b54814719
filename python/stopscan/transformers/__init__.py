"""Exact stops in transformers' ``generate``; ``stopscan.transformers.continuous`` has them for continuous batching, and
``python -m stopscan.transformers.serve`` for the server."""

from stopscan.transformers._stops import Stops

__all__ = ["Stops"]
