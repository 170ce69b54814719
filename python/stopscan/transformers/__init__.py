"""Exact stops in transformers' ``generate`` and pipelines.

``stopscan.transformers.continuous`` is for continuous batching, and ``stopscan.transformers.lm_eval`` for
lm-evaluation-harness.
"""

from stopscan.transformers._generate import Answer, generate
from stopscan.transformers._pipeline import cut
from stopscan.transformers._stops import Stops

__all__ = ["Answer", "Stops", "cut", "generate"]
