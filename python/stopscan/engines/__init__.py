"""For authors of engines and servers: reads the stops of a request, and makes the scanner of its answer.

There are three steps: read the request while a wrong value can still be answered with a 400, make the scanner when the
prompt is known, and feed each token.

>>> checkpoint = Checkpoint(tokenizer)                               # once for each model
>>> options = read_options(request_body, defaults, default=CHAT)     # ValueError: a 400 that names the field
>>> row = checkpoint.scanner(options, prompt_ids, max_tokens=limit)
>>> for token_id in generate(prompt_ids):
...     send(row.feed(token_id))
...     if row.finish:
...         break
>>> to_openai(row.finish), row.tokens_seen, row.tokens_in.get("reasoning")
"""

from stopscan.engines._checkpoint import CHAT, Checkpoint, EngineOptions
from stopscan.engines._failures import Failures
from stopscan.engines._options import Defaults, Limits, StopOptions, add_defaults, read_options, switch
from stopscan.engines.rows import Row, RowOptions, TokenOptions

__all__ = [
    "CHAT",
    "Checkpoint",
    "Defaults",
    "EngineOptions",
    "Failures",
    "Limits",
    "Row",
    "RowOptions",
    "StopOptions",
    "TokenOptions",
    "add_defaults",
    "read_options",
    "switch",
]
