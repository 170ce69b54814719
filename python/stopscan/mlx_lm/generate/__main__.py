"""mlx_lm.generate's command with exact stops: mlx_lm.generate's own options, and those of ``stopscan`` for stops.
``--protect`` takes the names of regions, too.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Generator
from typing import Any
from unittest.mock import patch

from mlx_lm.generate import main as mlx_main

from stopscan.command_line import add_stops, own_arguments, stop_set
from stopscan.mlx_lm.generate import GenerationResponse, stream_generate


def main() -> None:
    """Generates as mlx_lm.generate's command does, to the stop."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, usage="the options of stops, and these:")
    add_stops(parser)
    words = "keep stops from firing in a region: its name, or its opening and its closing marker"
    parser.add_argument("--protect", action="extend", nargs="+", default=[], metavar="REGION", help=words)
    own = own_arguments(parser)
    try:
        stops = stop_set(own)
    except (TypeError, ValueError) as error:
        parser.error(str(error))

    def exact(*args: Any, **kwargs: Any) -> Generator[GenerationResponse, None, None]:
        try:
            return stream_generate(*args, stop=stops, include_stop=own.include_stop, protect=own.protect, **kwargs)
        except (TypeError, ValueError) as error:  # a region that the model does not have
            parser.error(str(error))

    with patch.object(sys.modules["mlx_lm.generate"], "stream_generate", exact):
        mlx_main()


if __name__ == "__main__":
    main()
