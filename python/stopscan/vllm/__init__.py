"""Exact stops in vLLM's detokenizer: ``STOPSCAN_VLLM=1 vllm serve …``, or ``install()`` before the first engine."""

from stopscan.vllm._install import install, uninstall

__all__ = ["install", "uninstall"]
