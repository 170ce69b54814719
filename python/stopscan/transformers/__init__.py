"""Exact stops in transformers: ``Stops`` for ``generate``, ``RowScanner`` and ``generate_batch`` for continuous
batching, and ``python -m stopscan.transformers.serve``."""

from stopscan.transformers._continuous import Result, RowScanner, generate_batch
from stopscan.transformers._stops import Stops

__all__ = ["Result", "RowScanner", "Stops", "generate_batch"]
