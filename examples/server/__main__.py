"""`python examples/server [MODEL]`: seven routes over a model of mlx-lm, by default the reciting checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from app import make_app
from engine import Engine

from stopscan.testing.reciter import Reciter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "model", nargs="?", help="a folder or a name that mlx-lm loads (default: the reciting checkpoint)"
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        model = options.model or str(Reciter().write(Path(folder, "reciter")))
        uvicorn.run(make_app(Engine(model)), host=options.host, port=options.port)


if __name__ == "__main__":
    main()
