"""Exact, fast streaming stop sequences for LLM servers and token loops."""

from stopscan._ascan import AsyncStopStream, ascan
from stopscan._stopscan import StopMatch, StopScanner, StopSet, StopStream, scan, truncate

__all__ = [
    "AsyncStopStream",
    "StopMatch",
    "StopScanner",
    "StopSet",
    "StopStream",
    "ascan",
    "scan",
    "truncate",
]
