"""Exact, fast streaming stop sequences for LLM servers and token loops."""

from stopscan._stopscan import Repeat, StopMatch, StopScanner, StopSet, StopStream, __version__, scan, truncate

TYPE_CHECKING = False  # true for type checkers. Not imported from `typing`, which loads slower than all of stopscan
if TYPE_CHECKING:
    from stopscan._ascan import AsyncStopStream, ascan

__all__ = [
    "AsyncStopStream",
    "Repeat",
    "StopMatch",
    "StopScanner",
    "StopSet",
    "StopStream",
    "__version__",
    "ascan",
    "scan",
    "truncate",
]


def __getattr__(name: str) -> object:
    # The async code is imported on first use, because it imports `typing`, which takes long to import.
    if name not in ("AsyncStopStream", "ascan"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stopscan import _ascan

    globals().update(AsyncStopStream=_ascan.AsyncStopStream, ascan=_ascan.ascan)
    return globals()[name]
