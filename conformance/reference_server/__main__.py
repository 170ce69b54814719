"""`python conformance/reference_server [MODEL]`: serves a model with mlx-lm, by default the kit's tiny test model."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from app import make_app
from engine import Engine

from stopscan.engines import Defaults, add_defaults
from stopscan.segments import FORMATS
from stopscan_conformance.reciter import Reciter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "model", nargs="?", help="a folder or a name that mlx-lm loads (default: the reciting checkpoint)"
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--format", default="hermes", choices=FORMATS, metavar="NAME", help="how the model marks reasoning and calls"
    )
    add_defaults(parser)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        engine = Engine(options.model or str(Reciter().write(Path(folder, "reciter"))))
        app = make_app(engine, options.format, Defaults.from_arguments(options))
        uvicorn.run(app, host=options.host, port=options.port, access_log=False)


if __name__ == "__main__":
    main()
