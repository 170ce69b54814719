"""`python -m stopscan.conformance.vectors FOLDER DIR` writes to DIR the checkpoint that recites the default scripts and
the vectors of FOLDER, for `python -m stopscan.conformance --vectors FOLDER`."""

from __future__ import annotations

import argparse
from pathlib import Path

from stopscan.conformance._cases import reciter


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the checkpoint that recites the default scripts and vectors.")
    parser.add_argument("folder", type=Path, help="the scanner vectors, as in tests/vectors")
    parser.add_argument("directory", type=Path, help="where to write the checkpoint")
    arguments = parser.parse_args()
    print(reciter(arguments.folder).write(arguments.directory))


if __name__ == "__main__":
    main()
