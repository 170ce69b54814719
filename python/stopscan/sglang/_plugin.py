"""Which functions of sglang stopscan stands around, and whether it fits them."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from logging import getLogger
from pkgutil import resolve_name
from typing import Any

from stopscan.engines import Defaults, Failures, switch

logger = getLogger("sglang.stopscan")

PARAMS = "sglang.srt.sampling.sampling_params.SamplingParams"
SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
DETOKENIZER = "sglang.srt.managers.detokenizer_manager.DetokenizerManager"
REQ = "sglang.srt.managers.schedule_batch.Req"
SERVER = "sglang.srt.entrypoints.http_server"
CHAT = "sglang.srt.entrypoints.openai.serving_chat.OpenAIServingChat"
RESPONSES = "sglang.srt.entrypoints.openai.protocol.ResponsesRequest"
ANTHROPIC = "sglang.srt.entrypoints.anthropic.serving.AnthropicServing"

# What is called or overridden, without a hook around it.
NEEDED = [f"{REQ}.update_finish_state", f"{REQ}.check_match_stop_str_prefix"]
NEEDED_BY_ROUTES = [f"{CHAT}._tool_call_parsing_active", f"{CHAT}._encoding_output"]


def register() -> None:
    """Registers the hooks as the environment asks. sglang goes on after any other exception of a plugin than
    ``SystemExit``, which would leave it half hooked."""
    try:
        asked = switch("STOPSCAN_SGLANG")
        if asked == "0":
            return
        defaults = Defaults.from_environment("STOPSCAN_SGLANG")
    except ValueError as error:
        raise SystemExit(f"stopscan: {error}") from error
    try:
        fitting = _fitting(defaults)
    except Exception as error:
        if asked == "1":
            raise SystemExit(f"stopscan: {error}; see docs/sglang.md") from error
        logger.warning("running without stopscan: %s", error)
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in fitting.items():
        HookRegistry.register(target, hook, HookType.AROUND)


def hooks(defaults: Defaults, failures: Failures | None = None) -> dict[str, Callable[..., Any]]:
    """Returns what stands around each function of sglang, in a process with these defaults."""
    from stopscan.sglang._detokenizer import Detokenizer
    from stopscan.sglang._guard import Guard
    from stopscan.sglang._requests import Requests
    from stopscan.sglang._routes import Routes
    from stopscan.sglang._scheduler import Scheduler

    guard = Guard(failures or Failures(logger))
    requests = Requests(defaults, guard.failures)
    routes = Routes(requests, guard)
    carrying = {
        f"{PARAMS}.normalize": routes.normalize,
        f"{SCHEDULER}._add_request_to_queue": Scheduler(requests).queued,
        f"{DETOKENIZER}._decode_batch_token_id_output": Detokenizer(guard.failures).decode,
    }
    of_routes = {
        f"{SERVER}.serve_generate_request": routes.generate,
        f"{CHAT}._convert_to_internal_request": routes.chat,
        f"{CHAT}._generate_stream_content": routes.chat_chunks,
        f"{RESPONSES}.to_sampling_params": routes.responses,
        f"{ANTHROPIC}._convert_response": routes.anthropic,
        f"{ANTHROPIC}._generate_anthropic_stream": routes.anthropic_stream,
    }
    found = carrying | (of_routes if _serves() else {})
    return {target: guard.around(hook) for target, hook in found.items()}


def _serves() -> bool:
    """Whether this process is about to serve HTTP; the offline `Engine` is not to import what that takes."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return SERVER in sys.modules or "sglang.cli" in sys.modules or getattr(main, "name", "") == "sglang.launch_server"


def _fitting(defaults: Defaults) -> dict[str, Callable[..., Any]]:
    """The hooks, if this sglang has what they stand around and its texts with them are right, or ``RuntimeError``."""
    from sglang.srt.environ import envs

    if envs.SGLANG_RUST_SERVER.get():
        raise RuntimeError("with SGLANG_RUST_SERVER=1, text is made outside of Python, where stopscan cannot find it")
    made = hooks(defaults)
    for target in [*made, *NEEDED, *(NEEDED_BY_ROUTES if _serves() else ())]:
        owner, _, name = target.rpartition(".")
        try:
            found = hasattr(resolve_name(owner), name)
        except (ImportError, AttributeError):
            found = False
        if not found:
            raise RuntimeError(f"this sglang has no {target}")
    if multiprocessing.parent_process() is None:
        from stopscan.sglang._selftest import problems

        if wrong := problems():
            raise RuntimeError(f"it does not fit this sglang: {'; '.join(wrong[:3])}")
    return made
