"""`stopscan-conformance reciter DIR` writes the default checkpoint."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from stopscan_conformance.reciter import Reciter
from stopscan_conformance.scripts import default_scripts


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="stopscan-conformance reciter", description="Write a checkpoint that recites the default scripts."
    )
    parser.add_argument("directory", type=Path, help="where to write it")
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="write it for llama.cpp, too; needs the package gguf")
    parser.add_argument(
        "--layers", type=int, default=1, metavar="N", help="so many layers that do nothing: more take longer (1)"
    )
    options = parser.parse_args(arguments)
    if options.layers < 1:
        parser.error("--layers is at least 1")
    if options.gguf:
        try:
            from stopscan_conformance.gguf_file import write_gguf  # gguf is an extra
        except ImportError:
            parser.error("--gguf needs the package gguf: install stopscan-conformance[gguf]")
    reciter = Reciter()
    directory = reciter.write(options.directory, layers=options.layers)
    if options.gguf:
        write_gguf(reciter, directory, options.gguf)
    size = sum(file.stat().st_size for file in (*directory.iterdir(), *filter(None, [options.gguf])))
    print(
        f"wrote {size / 1e6:.1f} MB: {' and '.join(map(str, filter(None, [directory, options.gguf])))}, which "
        f"{'recite' if options.gguf else 'recites'} {len(default_scripts())} scripts"
    )
