"""Exact stops in vLLM's detokenizer: ``STOPSCAN_VLLM=1 vllm serve …``, or ``install()`` before the first engine.

vLLM calls ``plugin`` in each of its processes, but only the process that detokenizes needs stopscan. That process makes
an ``InputProcessor`` before any other part of an engine, and no other process makes one. So ``plugin`` waits for the
first ``InputProcessor``. Engine cores, workers and processes that inspect models import only this module of stopscan.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from logging import getLogger
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stopscan.vllm._install import install as install
    from stopscan.vllm._install import uninstall as uninstall

__all__ = ["install", "plugin", "uninstall"]

TARGET = "vllm.v1.engine.input_processor"
RUST_FRONT = "with VLLM_USE_RUST_FRONTEND=1, stops are found outside of Python; unset it, or unset STOPSCAN_VLLM"


def plugin() -> None:
    """Arranges that stopscan is installed before the first engine of this process, if ``STOPSCAN_VLLM`` asks for it.

    If stopscan does not work with this vLLM, the value of ``STOPSCAN_VLLM`` decides: with ``1`` the server does not
    start; with ``optional`` vLLM logs a warning and runs without stopscan.
    """
    setting = os.environ.get("STOPSCAN_VLLM", "0")
    if setting in ("", "0"):
        return
    from vllm import envs

    if getattr(envs, "VLLM_USE_RUST_FRONTEND", False):  # the Rust frontend never makes an InputProcessor
        if setting == "1":
            raise RuntimeError(f"stopscan: {RUST_FRONT}")
        if parent_process() is None:
            getLogger("vllm.stopscan").warning("running without stopscan: %s", RUST_FRONT)
    elif TARGET in sys.modules:
        _watch(sys.modules[TARGET])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Calls ``_watch`` when ``TARGET`` is imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name != TARGET:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = partial(_load, spec.loader.exec_module)  # type: ignore[method-assign]
        return spec


def _load(load: Callable[[Any], None], module: Any) -> None:
    load(module)
    _watch(module)


def _watch(module: Any) -> None:
    """Installs stopscan when the first ``InputProcessor`` is made."""
    owner = module.InputProcessor
    original = owner.__init__
    if getattr(original, "stopscan_waits", False):
        return

    @wraps(original)
    def first(self: Any, *args: Any, **options: Any) -> None:
        if not first.stopscan_waits:  # type: ignore[attr-defined]
            original(self, *args, **options)
            return
        first.stopscan_waits = False  # type: ignore[attr-defined]
        if owner.__init__ is first:  # if another plugin has wrapped `first`, keep its wrapper
            owner.__init__ = original
        try:
            import_module("stopscan.vllm._install").install_as_asked()
        except (ImportError, RuntimeError) as error:  # a name in vLLM has moved, or the self-test failed
            problem = f"stopscan does not fit this vLLM: {error}" if isinstance(error, ImportError) else str(error)
            if os.environ.get("STOPSCAN_VLLM") != "optional":
                raise RuntimeError(problem) from error
            getLogger("vllm.stopscan").warning("running without stopscan: %s", problem)
        owner.__init__(self, *args, **options)

    first.stopscan_waits = True  # type: ignore[attr-defined]
    owner.__init__ = first


def __getattr__(name: str) -> Any:
    if name in ("install", "uninstall"):
        return getattr(import_module("stopscan.vllm._install"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
