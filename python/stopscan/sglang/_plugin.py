"""Registers stopscan's hooks in sglang, after a check that stopscan works with this sglang."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from logging import getLogger
from pkgutil import resolve_name
from typing import Any

from stopscan.engines import Defaults, Failures, switch

logger = getLogger("sglang.stopscan")

DETOKENIZER = "srt.managers.detokenizer_manager.DetokenizerManager"
SERVER = "srt.entrypoints.http_server"
CHAT = "srt.entrypoints.openai.serving_chat.OpenAIServingChat"
ANTHROPIC = "srt.entrypoints.anthropic.serving.AnthropicServing"

# Functions of sglang that the hooks of the routes call.
CALLED = [f"sglang.{CHAT}._tool_call_parsing_active", f"sglang.{CHAT}._encoding_output"]


def register() -> None:
    """Does the work of ``stopscan.sglang.register``. That function imports this module only when sglang calls it."""
    asked = ""
    try:
        asked = switch("STOPSCAN_SGLANG")
        if asked == "0":
            return
        fitting = _fitting(Defaults.from_environment("STOPSCAN_SGLANG"))
    except Exception as error:
        if asked != "optional" or isinstance(error, ValueError):  # ValueError: a variable has a wrong value
            raise SystemExit(f"stopscan: {error}; see docs/sglang.md") from error
        logger.warning("running without stopscan: %s", error)
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in fitting.items():
        HookRegistry.register(target, hook, HookType.AROUND)


def hooks(defaults: Defaults, failures: Failures | None = None) -> dict[str, Callable[..., Any]]:
    """Returns a dict: the path of each function of sglang that is wrapped, and its hook."""
    from stopscan.sglang._detokenizer import decode
    from stopscan.sglang._guard import Guard, Hook
    from stopscan.sglang._requests import Requests
    from stopscan.sglang._routes import Routes
    from stopscan.sglang._scheduler import Scheduler

    guard = Guard(failures or Failures(logger))
    requests = Requests(defaults, guard.failures)
    routes = Routes(requests, Guard(Failures(logger)))
    found: dict[str, Hook] = {
        "srt.sampling.sampling_params.SamplingParams.normalize": routes.normalize,
        "srt.managers.scheduler.Scheduler._add_request_to_queue": Scheduler(requests).queued,
        f"{DETOKENIZER}._decode_batch_token_id_output": decode,
    }
    optional: dict[str, Hook] = {}
    if _serves():
        optional = {
            f"{SERVER}.serve_generate_request": routes.generate,
            f"{CHAT}._convert_to_internal_request": routes.chat,
            f"{CHAT}._generate_stream_content": routes.chat_chunks,
            "srt.entrypoints.openai.protocol.ResponsesRequest.to_sampling_params": routes.responses,
            f"{ANTHROPIC}._convert_response": routes.anthropic,
            f"{ANTHROPIC}._generate_anthropic_stream": routes.anthropic_stream,
        }
    # A route's hook that fails repeatedly is left out alone: the stops do not depend on it.
    guarded = {target: guard.around(hook) for target, hook in found.items()}
    guarded |= {target: Guard(Failures(logger), goes=True).around(hook) for target, hook in optional.items()}
    return {f"sglang.{target}": hook for target, hook in guarded.items()}


def _serves() -> bool:
    """Returns whether this process serves HTTP. The offline `Engine` does not, and must not import the server's
    modules."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return (
        f"sglang.{SERVER}" in sys.modules
        or "sglang.cli" in sys.modules
        or getattr(main, "name", "") == "sglang.launch_server"
    )


def _fitting(defaults: Defaults) -> dict[str, Callable[..., Any]]:
    """Returns the hooks. Raises ``RuntimeError`` if this sglang lacks a function that they use, or fails the
    self-test."""
    from sglang.srt.environ import envs

    if envs.SGLANG_RUST_SERVER.get():
        raise RuntimeError("with SGLANG_RUST_SERVER=1, sglang decodes text in Rust, where stopscan cannot read it")
    made = hooks(defaults)
    for target in [*made, *(CALLED if _serves() else ())]:
        try:
            resolve_name(target)
        except (ImportError, AttributeError) as error:
            raise RuntimeError(f"this sglang has no {target}") from error
    if multiprocessing.parent_process() is None:
        from stopscan.sglang._selftest import problems

        if wrong := problems(lambda failures: hooks(Defaults(), failures)):
            raise RuntimeError(f"stopscan does not work with this sglang: {'; '.join(wrong[:3])}")
    return made
