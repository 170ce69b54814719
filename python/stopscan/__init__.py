"""Exact, fast streaming stop sequences for LLM servers and token loops."""

from stopscan._stopscan import (
    Repeat,
    Rewriter,
    RewriteSet,
    RewriteStream,
    StopMatch,
    StopScanner,
    StopSet,
    StopStream,
    __version__,
    rewrite,
    scan,
    truncate,
)

# Type checkers treat `TYPE_CHECKING` as true. It is defined here because importing `typing` takes longer than importing
# all of stopscan.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopscan._arewrite import AsyncRewriteStream, arewrite
    from stopscan._ascan import AsyncStopStream, ascan

__all__ = [
    "AsyncRewriteStream",
    "AsyncStopStream",
    "Repeat",
    "RewriteSet",
    "RewriteStream",
    "Rewriter",
    "StopMatch",
    "StopScanner",
    "StopSet",
    "StopStream",
    "__version__",
    "arewrite",
    "ascan",
    "rewrite",
    "scan",
    "truncate",
]


def __getattr__(name: str) -> object:
    # The async code is imported on first use, because it imports `typing`, which takes long to load.
    if name not in ("AsyncRewriteStream", "AsyncStopStream", "arewrite", "ascan"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stopscan import _arewrite, _ascan

    globals().update(AsyncStopStream=_ascan.AsyncStopStream, ascan=_ascan.ascan)
    globals().update(AsyncRewriteStream=_arewrite.AsyncRewriteStream, arewrite=_arewrite.arewrite)
    return globals()[name]
