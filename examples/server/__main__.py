"""`python examples/server [MODEL]`: seven routes over a model of mlx-lm, by default the reciting checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from app import make_app
from engine import Engine
from sse_starlette.sse import AppStatus

from stopscan.segments import FORMATS
from stopscan.testing.reciter import Reciter


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
    parser.add_argument(
        "--grace", type=int, default=20, metavar="SECONDS", help="how long answers may go on after SIGTERM (20)"
    )
    options = parser.parse_args()
    AppStatus.disable_automatic_graceful_drain()  # streams, too, have the time of grace
    with TemporaryDirectory() as folder:
        model = options.model or str(Reciter().write(Path(folder, "reciter")))
        uvicorn.run(
            make_app(Engine(model), options.format),
            host=options.host,
            port=options.port,
            timeout_graceful_shutdown=options.grace,
        )


if __name__ == "__main__":
    main()
