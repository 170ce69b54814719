"""The command of ``mlx_lm.generate`` with exact stops.

Takes the options of ``mlx_lm.generate``, and the options of the ``stopscan`` command that are about stops.
``--protect`` also takes the names of regions.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Generator
from functools import wraps
from typing import Any
from unittest.mock import patch

from mlx_lm.generate import main as mlx_main
from mlx_lm.generate import stream_generate as mlx_stream_generate

from stopscan.command_line import add_stops, own_arguments, stop_set
from stopscan.mlx_lm.generate import GenerationResponse, stream_generate


def main() -> None:
    """Runs the command of mlx_lm.generate, and ends its text at the stop."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, usage="mlx_lm.generate's options, and these:")
    add_stops(parser)
    words = "a region in which no stop fires: its name, or its opening and closing markers"
    parser.add_argument("--protect", action="extend", nargs="+", default=[], metavar="REGION", help=words)
    own = own_arguments(parser)
    try:
        stops = stop_set(own)
    except (TypeError, ValueError) as error:
        parser.error(str(error))

    @wraps(mlx_stream_generate)
    def exact(*args: Any, **kwargs: Any) -> Generator[GenerationResponse, None, None]:
        try:
            return stream_generate(*args, stop=stops, include_stop=own.include_stop, protect=own.protect, **kwargs)
        except (TypeError, ValueError) as error:  # for example, the model lacks a region of `--protect`
            parser.error(str(error))

    with patch.object(sys.modules["mlx_lm.generate"], "stream_generate", exact):
        mlx_main()


if __name__ == "__main__":
    main()
