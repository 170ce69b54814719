"""``require`` checks that the installed mlx-lm has the functions that stopscan needs."""

from __future__ import annotations

from inspect import signature
from pkgutil import resolve_name
from typing import Any

import mlx_lm

# For each class or function of mlx-lm, the names that stopscan needs. A name may be an attribute, a parameter, or a
# name that the function's code uses.
STREAMS = {
    "generate.GenerationResponse": [
        "__dataclass_fields__", "text", "token", "finish_reason", "prompt_tokens", "generation_tokens",
    ],
    "models.cache.can_trim_prompt_cache": [],
}  # fmt: skip
BATCHES = {
    "generate.StopSequences": ["matcher"],
    "generate.BatchGenerator": ["insert", "next_generated", "stats", "close"],
    "generate.BatchGenerator.insert": ["stop_sequences"],
    # The stops of a batch work only if `next` calls `advance` of each row's matcher.
    "generate.GenerationBatch.next": ["advance"],
}
SERVER = BATCHES | {
    "server.ResponseGenerator": ["_tokenize", "_make_state_machine", "generate"],
    "server.ResponseGenerator._generate": ["_tokenize", "_make_state_machine", "stop_words"],
    "server.ResponseGenerator._serve_single": ["advance", "_tokenize", "_make_state_machine", "stop_words"],
    "server.APIHandler": ["handle_completion", "generate_response", "completion_usage_response"],
    "server._run_http_server": ["handler_class", "server_class"],
}


def require(user: str, parts: dict[str, list[str]]) -> None:
    """Raises ``ImportError`` if mlx-lm lacks one of ``parts``. ``user`` is our module or function that needs them."""
    for owner, names in parts.items():
        if missing := [name for name in names if name not in _names(owner)]:
            raise ImportError(
                f"stopscan.mlx_lm.{user} needs mlx-lm 0.32.0 or later (tested to 0.32.2; later "
                f"versions may differ); mlx-lm {mlx_lm.__version__} has no {', '.join(missing)} in mlx_lm.{owner}"
            )


def _names(owner: str) -> set[str]:
    try:
        # The colon separates the module from a name in it: `mlx_lm.generate` is both a module and a function.
        found: Any = resolve_name(f"mlx_lm.{owner.replace('.', ':', 1)}")
    except (AttributeError, ImportError):
        return set()
    code = getattr(found, "__code__", None)
    return {*dir(found), *signature(found).parameters, *(code.co_names if code else ())}
