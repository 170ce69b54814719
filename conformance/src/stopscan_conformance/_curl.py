"""The `curl` line that sends a case's request."""

from __future__ import annotations

import json
import shlex
from typing import Any

from stopscan_conformance._exchange import Exchange
from stopscan_conformance._paths import PATHS, body_of
from stopscan_conformance._points import Generated
from stopscan_conformance._rows import Rows
from stopscan_conformance._server import Server
from stopscan_conformance._wrong import Wrong


def curl(play: Any, server: Server, /) -> str | None:
    """The line, or None for a play of several requests. The API key is left out."""
    exchange = getattr(play, "__self__", None) or getattr(play, "exchange", None)
    if isinstance(play, Wrong):
        api, content = play.api.name, play.content(server.model)
    elif isinstance(play, Rows):
        api, content = play.api.name, json.dumps(play.body(server.model))
    elif isinstance(exchange, Exchange) and (not isinstance(play, Generated) or play.alone):
        api = exchange.api.name.replace("harmony-", "openai-")  # Harmony's are the same routes
        content = json.dumps(body_of(api, server.model, exchange.request))
    else:
        return None
    path = PATHS[api]
    key = [] if server.api_key is None else ["-H", "Authorization: Bearer KEY"]
    words = ["curl", "-sN", f"{server.url}{path}", *key, "-H", "Content-Type: application/json", "-d", content]
    return shlex.join(words)
