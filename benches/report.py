"""What the benchmarks write: tables, and on which machine they were measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sysconfig
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from measure import Timing

Table = Sequence[tuple[str, ...]]


def heading(title: str, packages: Sequence[str]) -> str:
    return f"# {title}\n\n{date.today()}, {machine(packages)}."


def markdown(table: Table) -> str:
    head, *rows = table
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ("---",) * len(head), *rows])


def machine(packages: Sequence[str]) -> str:
    """The machine, its load now, and the versions of what is measured."""
    names = [line.split(":")[1].strip() for line in cpu_lines() if line.startswith("model name")]
    versions = [f"{package} {importlib.metadata.version(package)}" for package in packages if is_installed(package)]
    optimized = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    build = "optimized" if optimized else "not optimized"
    parts = [
        f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        f"{platform.system()} {platform.machine()}",
        f"{platform.python_implementation()} {platform.python_version()} ({build}, {platform.python_compiler()})",
    ]
    return "; ".join([*parts, f"stopscan {importlib.metadata.version('stopscan')}", *versions])


def cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def ratio(one: Timing, other: Timing) -> float:
    return one.fastest / other.fastest


def nanoseconds(timing: Timing) -> str:
    return f"{timing.fastest:,.1f}"
