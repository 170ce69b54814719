"""``python -m stopscan.transformers.serve``: ``transformers serve``, with its own arguments and routes and exact stops.

A request may have ``stop``, ``patterns``, ``max_held``, ``stop_token_ids``, ``min_tokens``, ``include_stop``,
``protect``, ``start_protected`` and ``repeat``, as in ``Stops`` and its ``StopSet``. ``--protect`` and ``--repeat`` are
defaults; without the first no stop fires in the reasoning and the calls of chats and Responses. The last choice has a
``matched_stop`` if a stop ended it, and the usage of these routes has ``reasoning_tokens``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from transformers.cli.serving import chat_completion, completion, response, server, utils
from transformers.cli.transformers import main as transformers_main

from stopscan import Repeat
from stopscan._engine.request import server_defaults
from stopscan.regions import NAMES
from stopscan.transformers.serve._client import EndsWithClient
from stopscan.transformers.serve._handlers import exact
from stopscan.transformers.serve._managers import CBGenerateManager, GenerateManager
from stopscan.transformers.serve._request import Defaults, chunk_to_sse, parse_assistant_message


def serve_exactly(protect: Any, repeat: Repeat | None = None) -> None:
    """Changes transformers' server for the whole process, before the server starts. ``protect`` and ``repeat`` are for
    requests that do not say.
    """
    utils.GenerateManager = GenerateManager
    utils.CBGenerateManager = CBGenerateManager
    utils.BaseHandler.chunk_to_sse = staticmethod(chunk_to_sse)
    for module, handler in (
        (chat_completion, "ChatCompletionHandler"),
        (completion, "CompletionHandler"),
        (response, "ResponseHandler"),
    ):
        # Stops are for the answer: these routes tell it from reasoning and calls.
        tells_regions = module is not completion
        regions = (NAMES if tells_regions else ()) if protect is None else protect
        defaults = Defaults(regions, repeat, tells_regions)
        setattr(module, handler, exact(getattr(module, handler), defaults, ends_with_done=module is not response))
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
    own = server_defaults()
    serve_exactly(own.protect, own.repeat)
    sys.argv.insert(1, "serve")
    transformers_main()
