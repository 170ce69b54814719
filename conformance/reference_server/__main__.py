"""`python conformance/reference_server [MODEL]`: seven routes over a model of mlx-lm, by default the reciting one."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from app import make_app
from engine import Engine
from serve import Server

from stopscan.repeats import add_repeat
from stopscan.segments import FORMATS
from stopscan_conformance.reciter import Reciter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "model", nargs="?", help="a folder or a name that mlx-lm loads (default: the reciting checkpoint)"
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key", metavar="KEY", help="what clients are to send (default: anybody may ask)")
    parser.add_argument(
        "--format", default="hermes", choices=FORMATS, metavar="NAME", help="how the model marks reasoning and calls"
    )
    parser.add_argument(
        "--protect",
        nargs="*",
        metavar="REGION",
        help="where no stop fires unless a request says so itself: regions, or pairs of markers (default: reasoning "
        "and tool_call on chat routes)",
    )
    add_repeat(parser)
    parser.add_argument(
        "--grace", type=float, default=20, metavar="SECONDS", help="how long answers may go on after SIGTERM (20)"
    )
    options = parser.parse_args()
    access = logging.getLogger("server.access")
    access.setLevel(logging.INFO)
    access.addHandler(logging.StreamHandler(sys.stdout))
    sys.setswitchinterval(0.001)  # seconds: how long the loop waits for a thread that prepares a request
    with TemporaryDirectory() as folder:
        engine = Engine(options.model or str(Reciter().write(Path(folder, "reciter"))))
        app = make_app(engine, options.format, api_key=options.api_key, protect=options.protect, repeat=options.repeat)
        gc.freeze()  # to look through all that was imported takes 0.2 s, and the loop would wait
        Server(app, engine, options.grace, host=options.host, port=options.port).run()


if __name__ == "__main__":
    main()
