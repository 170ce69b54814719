"""Writes the reports of the benchmarks: tables, and the machine on which they were measured."""

from __future__ import annotations

import argparse
import os
import platform
import sysconfig
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

Table = Sequence[tuple[str, ...]]


def options(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser for the command line of a benchmark. With this parser, `--help` prints `description` and does
    not run the benchmark."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def heading(title: str, packages: Sequence[str]) -> str:
    return f"# {title}\n\n{date.today()}, {machine(packages)}.\n"


def markdown(table: Table) -> str:
    head, *rows = table
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ("---",) * len(head), *rows]) + "\n"


def machine(packages: Sequence[str]) -> str:
    """Describes the machine, its current load, and the versions of the packages that are measured."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    optimized = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    build = "optimized" if optimized else "not optimized"
    return "; ".join(
        [
            f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
            f"{platform.system()} {platform.machine()}",
            f"{platform.python_implementation()} {platform.python_version()} ({build}, {platform.python_compiler()})",
            *(f"{package} {number}" for package in ["stopscan", *packages] if (number := installed(package))),
        ]
    )


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
