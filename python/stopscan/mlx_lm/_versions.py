from __future__ import annotations

from importlib import import_module
from inspect import signature
from operator import attrgetter
from types import ModuleType

import mlx_lm

# What the parts that need mlx-lm 0.32 hold on to, by module: classes and functions with the methods or parameters that
# they must have.
Parts = dict[str, dict[str, list[str]]]
BATCHES: Parts = {
    "mlx_lm.generate": {
        "StopSequences": ["matcher"],
        "BatchGenerator": ["insert", "next_generated", "stats", "close"],
        "BatchGenerator.insert": ["stop_sequences"],
    }
}
SERVER: Parts = BATCHES | {
    "mlx_lm.server": {
        "ResponseGenerator": ["_tokenize", "_make_state_machine", "generate"],
        "APIHandler": ["_validate", "handle_completion", "generate_response", "_set_completion_headers"],
        "_run_http_server": ["handler_class"],
    }
}


def require(user: str, parts: Parts) -> None:
    """Raises ``ImportError`` unless this mlx-lm has all ``parts``, which ``user`` holds on to."""
    for module, owners in parts.items():
        for owner, names in owners.items():
            known = _names(import_module(module), owner)
            for name in names:
                if name not in known:
                    raise ImportError(
                        f"stopscan.mlx_lm.{user} needs mlx-lm 0.32.0 or later, as long as it has what 0.32.2 has; "
                        f"this is mlx-lm {mlx_lm.__version__}, without {module}.{owner}: {name}"
                    )


def _names(module: ModuleType, owner: str) -> set[str]:
    try:
        found = attrgetter(owner)(module)
    except AttributeError:
        return set()
    return {*dir(found), *signature(found).parameters}
