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

# Functions of sglang that stopscan does not wrap, but that its hooks of the HTTP routes call.
CALLED = [f"sglang.{CHAT}._tool_call_parsing_active", f"sglang.{CHAT}._encoding_output"]


def register() -> None:
    """Does the work of ``stopscan.sglang.register``, which imports this module only when it is called."""
    value = ""
    try:
        value = switch("STOPSCAN_SGLANG")
        if value == "0":
            return
        fitting = _fitting(Defaults.from_environment("STOPSCAN_SGLANG"))
    except Exception as error:
        if value != "optional" or isinstance(error, ValueError):  # ValueError: a variable has a wrong value
            raise SystemExit(f"stopscan: {error}; see docs/sglang.md") from error
        logger.warning("running without stopscan: %s", error)
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in fitting.items():
        HookRegistry.register(target, hook, HookType.AROUND)


def hooks(defaults: Defaults, failures: Failures | None = None) -> dict[str, Callable[..., Any]]:
    """Returns the hooks in a dict. A key is the path of the function of sglang that the hook wraps."""
    from stopscan.sglang._detokenizer import decode
    from stopscan.sglang._guard import Guard, Hook
    from stopscan.sglang._requests import Requests
    from stopscan.sglang._routes import Routes
    from stopscan.sglang._scheduler import Scheduler

    failures = failures or Failures(logger)
    requests = Requests(defaults, failures)
    carriers: dict[str, Hook] = {
        "srt.sampling.sampling_params.SamplingParams.normalize": Routes(requests).normalize,
        "srt.managers.scheduler.Scheduler._add_request_to_queue": Scheduler(requests).queued,
        f"{DETOKENIZER}._decode_batch_token_id_output": decode,
    }
    # Hooks without which stops still work. If one of these hooks fails repeatedly, only this hook is switched off.
    niceties: dict[str, Callable[[Routes], Hook]] = {}
    if _serves():
        carriers |= {
            f"{CHAT}._convert_to_internal_request": Routes(requests).chat,
            "srt.entrypoints.openai.protocol.ResponsesRequest.to_sampling_params": Routes(requests).responses,
        }
        niceties = {
            f"{SERVER}.serve_generate_request": lambda routes: routes.generate,
            f"{CHAT}._generate_stream_content": lambda routes: routes.chat_chunks,
            f"{ANTHROPIC}._convert_response": lambda routes: routes.anthropic,
            f"{ANTHROPIC}._generate_anthropic_stream": lambda routes: routes.anthropic_stream,
        }
    placed = {target: Guard(failures, target).around(hook) for target, hook in carriers.items()}
    for target, hook_of in niceties.items():
        guard = Guard(failures, target, alone=True)
        placed[target] = guard.around(hook_of(Routes(requests, guard)))
    return {f"sglang.{target}": hook for target, hook in placed.items()}


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
