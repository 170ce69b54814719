"""Exact stops for vLLM: in its own detokenizer (``install``), or around a stream (``scan_outputs``)."""

from stopscan.vllm._install import install, uninstall
from stopscan.vllm._outputs import scan_outputs

__all__ = ["install", "scan_outputs", "uninstall"]
