"""A plugin for sglang that makes stopscan's functions fail at random, in each process of a server."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any

# A wrapper may fail before and after it calls its function, each time with this probability.
SHARE = 0.02


def install(folder: Path) -> dict[str, str]:
    """Writes this plugin into ``folder``, with the metadata of an installed package. Returns the environment variables
    with which a server finds and loads the plugin."""
    information = folder / "faults-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: faults\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[sglang.srt.plugins]\nfaults = faults:register\n")
    (folder / "faults.py").write_bytes(Path(__file__).read_bytes())
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


def register() -> None:
    """Wraps functions that run in stopscan's hooks in sglang, so that they fail at random."""
    from stopscan.engines import Checkpoint, Failures
    from stopscan.sglang import _selftest
    from stopscan.sglang._requests import Requests
    from stopscan.sglang._routes import Routes
    from stopscan.sglang._scheduler import Stops

    Failures.LIMIT = 1 << 30
    # Skips the self-test. It would find the faults, and the server would not start.
    _selftest.problems = lambda hooks: []
    random = Random(os.getpid())
    for owner, names in {
        Stops: ("begin", "read"),
        Requests: ("scanner", "model", "check", "read"),
        Checkpoint: ("stops", "begins"),
        Routes: ("chat", "responses"),
    }.items():
        for name in names:
            setattr(owner, name, _faulty(getattr(owner, name), random))
    make = Checkpoint.scanner
    Checkpoint.scanner = lambda *args, **options: _Faulty(make(*args, **options), random)  # type: ignore[assignment,return-value]


class _Faulty:
    """Wraps a scanner, so that each read of an attribute and each call of a method may fail."""

    def __init__(self, scanner: Any, random: Random) -> None:
        self._scanner = scanner
        self._random = random

    def __getattr__(self, name: str) -> Any:
        if self._random.random() < SHARE:
            raise LookupError(f"injected at {name}")
        value = getattr(self._scanner, name)
        return _faulty(value, self._random) if callable(value) else value


def _faulty(original: Callable[..., Any], random: Random) -> Callable[..., Any]:
    @wraps(original)
    def faulty(*args: Any, **options: Any) -> Any:
        if random.random() < SHARE:
            raise LookupError(f"injected before {original.__name__}")
        result = original(*args, **options)
        if random.random() < SHARE:
            raise LookupError(f"injected after {original.__name__}")
        return result

    return faulty
