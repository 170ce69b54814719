"""``python -m stopscan.transformers.serve``: ``transformers serve``, with its own arguments and routes and exact stops.

A request may have ``stop``, ``patterns``, ``stop_token_ids``, ``min_tokens``, ``include_stop``, ``protect`` and
``start_protected``, as in ``Stops`` and its ``StopSet``; ``--protect`` is the default of ``protect``, without which
no stop fires in the reasoning and the calls of chats and Responses. The last choice has a ``matched_stop`` if a stop
ended it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from transformers.cli.serving import chat_completion, completion, response, server, utils
from transformers.cli.transformers import main as transformers_main

from stopscan.regions import NAMES, read
from stopscan.transformers._serve_client import EndsWithClient
from stopscan.transformers._serve_handlers import exact
from stopscan.transformers._serve_managers import CBGenerateManager, GenerateManager
from stopscan.transformers._serve_request import chunk_to_sse, parse_assistant_message


def serve_exactly(protect: Any) -> None:
    """Changes transformers' server for the whole process, before it starts; ``protect`` is for requests without."""
    utils.GenerateManager = GenerateManager
    utils.CBGenerateManager = CBGenerateManager
    utils.BaseHandler.chunk_to_sse = staticmethod(chunk_to_sse)
    for module, handler in (
        (chat_completion, "ChatCompletionHandler"),
        (completion, "CompletionHandler"),
        (response, "ResponseHandler"),
    ):
        choices = module is not response
        # Stops are for the answer: these routes tell it from reasoning and calls.
        default = (NAMES if module is not completion else ()) if protect is None else protect
        setattr(module, handler, exact(getattr(module, handler), default, ends_with_done=choices))
    for module in (chat_completion, response):
        module.parse_assistant_message = parse_assistant_message
    server.build_server = _watching(server.build_server)


def _watching(build: Callable[..., Any]) -> Callable[..., Any]:
    def build_server(*args: Any, **options: Any) -> Any:
        app = build(*args, **options)
        app.add_middleware(EndsWithClient)
        return app

    return build_server


def main() -> None:
    """Serves until it is interrupted."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, usage="--protect REGIONS and these:")
    parser.add_argument(
        "--protect",
        nargs="*",
        metavar="REGION",
        help="where stops do not fire: reasoning, tool_call, or an opening and a closing marker; without it: both "
        "names, but on /v1/completions",
    )
    own, rest = parser.parse_known_args()
    if {"-h", "--help"} & {*rest}:
        parser.print_help()
    try:
        read(own.protect or ())
    except ValueError as error:
        parser.error(str(error))
    serve_exactly(own.protect)
    sys.argv[1:] = ["serve", *rest]
    transformers_main()


if __name__ == "__main__":
    main()
