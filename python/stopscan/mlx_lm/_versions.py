"""``require`` checks whether the installed mlx-lm has the functions, attributes and parameters that stopscan needs."""

from __future__ import annotations

from functools import cache
from inspect import iscoroutinefunction, signature, unwrap
from pkgutil import resolve_name
from typing import Any

import mlx_lm

# What stopscan needs of mlx-lm. A key is a class or function of mlx-lm. Its value lists the names that it must have:
# attributes, parameters, or names that the function's code uses. An entry `(cache)` means that the function has the
# parameter `cache` and no further parameter.
RESPONSE = "__dataclass_fields__ text token finish_reason"
STREAMS = {
    "generate.GenerationResponse": f"{RESPONSE} prompt_tokens generation_tokens",
    "generate.stream_generate": "detokenizer last_segment",
    "models.cache.can_trim_prompt_cache": "(cache)",
}
BATCHES = {
    "generate.StopSequences": "matcher",
    "generate.BatchGenerator": "insert next_generated stats close",
    "generate.BatchGenerator.insert": "prompts max_tokens caches stop_sequences",
    "generate.BatchGenerator.next_generated": "(self)",
    # The stops of a batch work only if `next` calls `advance` of each row's matcher.
    "generate.GenerationBatch.next": "(self) advance",
}
# What stopscan.mlx_lm.server needs: the names in `BATCHES`, and names in two functions of mlx-lm's server that the
# self-test does not run.
SERVER = BATCHES | {
    "server._run_http_server": "handler_class server_class",
    "server.run": "ResponseGenerator _run_http_server",
}


# For each module or function of stopscan: the names that it needs of mlx-lm, and the first version of mlx-lm that has
# them.
NEEDS = {
    "stream_generate": (STREAMS, "0.29.0"),
    "batch_generate": (BATCHES, "0.32.0"),
    "server": (SERVER, "0.32.0"),
}


@cache
def require(user: str) -> None:
    """Raises ``ImportError`` if mlx-lm lacks something that ``user``, a key of ``NEEDS``, needs."""
    parts, oldest = NEEDS[user]
    for owner, names in parts.items():
        if missing := [name for name in names.split() if name not in _names(owner)]:
            raise ImportError(
                f"stopscan.mlx_lm.{user} needs mlx-lm {oldest} or later (tested to 0.32.2; later "
                f"versions may differ); mlx-lm {mlx_lm.__version__} has no {', '.join(missing)} in mlx_lm.{owner}"
            )


def _names(owner: str) -> set[str]:
    try:
        # `mlx_lm.generate` is a module, and also a function of `mlx_lm`. The colon tells `resolve_name` to look for
        # `name` in the module.
        module, _, name = owner.rpartition(".") if owner.startswith("models.") else owner.partition(".")
        part: Any = unwrap(resolve_name(f"mlx_lm.{module}:{name}"))
    except (AttributeError, ImportError):
        return set()
    if iscoroutinefunction(part):  # stopscan would not await it
        return set()
    code, parameters = getattr(part, "__code__", None), signature(part).parameters
    return {*dir(part), *parameters, f"({','.join(parameters)})", *(code.co_names if code else ())}
