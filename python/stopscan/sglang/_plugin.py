"""The entry point that sglang calls in its engine, scheduler, detokenizer and data-parallel processes."""

from __future__ import annotations

import logging
import multiprocessing
import sys
from pkgutil import resolve_name
from typing import Any

from stopscan._engine import environment
from stopscan._engine.environment import Settings

logger = logging.getLogger("sglang.stopscan")

REQ = "sglang.srt.managers.schedule_batch.Req"
STREAMER = "sglang.srt.managers.scheduler_components.output_streamer._GenerationStreamAccumulator"
DETOKENIZER = "sglang.srt.managers.detokenizer_manager.DetokenizerManager"
TOKENIZER = "sglang.srt.managers.tokenizer_manager.TokenizerManager"
SERVER = "sglang.srt.entrypoints.http_server"
SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
PROTOCOL = "sglang.srt.entrypoints.openai.protocol"
CHAT = "sglang.srt.entrypoints.openai.serving_chat.OpenAIServingChat"
OLLAMA = "sglang.srt.entrypoints.ollama.serving.OllamaServing"
ANTHROPIC = "sglang.srt.entrypoints.anthropic.serving.AnthropicServing"


def register() -> None:
    """Registers stopscan's hooks, all or none, if the environment asks for it.

    ``STOPSCAN_SGLANG=1`` asks for it, and the process ends if stopscan does not fit; ``optional`` logs a warning then.
    sglang goes on after any other exception of a plugin, which would leave it half hooked.
    """
    try:
        asked = environment.switch("STOPSCAN_SGLANG")
        if asked == "0":
            return
        settings = environment.settings("STOPSCAN_SGLANG").checked()
    except ValueError as error:
        raise SystemExit(f"stopscan: {error}") from error
    try:
        hooks = _fitting(settings)
    except Exception as error:
        if asked == "1":
            raise SystemExit(f"stopscan: {error}; see docs/sglang.md") from error
        logger.warning("running without stopscan: %s", error)
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in hooks.items():
        HookRegistry.register(target, hook, HookType.AROUND)


def hooks(settings: Settings) -> dict[str, Any]:
    """What stands around each function of sglang, in a process with these settings."""
    from stopscan.sglang._detokenizer import Detokenizer
    from stopscan.sglang._requests import Requests
    from stopscan.sglang._routes import Routes
    from stopscan.sglang._scheduler import Scheduler

    requests = Requests(settings, logger)
    scheduler, detokenizer, routes = Scheduler(requests), Detokenizer(requests), Routes(requests)
    of_routes = {
        f"{SERVER}.serve_generate_request": routes.refuse_stream,
        f"{PROTOCOL}.ChatCompletionRequest.to_sampling_params": routes.chat,
        f"{PROTOCOL}.ResponsesRequest.to_sampling_params": routes.chat,
        f"{CHAT}._generate_chat_stream": routes.chat_stream,
        f"{OLLAMA}._generate_chat_response": routes.ollama_chat,
        f"{OLLAMA}._stream_chat_response": routes.ollama_chat,
        f"{ANTHROPIC}._convert_response": routes.anthropic_answer,
        f"{ANTHROPIC}._generate_anthropic_stream": routes.anthropic_stream,
    }
    return {
        f"{REQ}._check_str_based_finish": scheduler.check,
        f"{REQ}.update_finish_state": scheduler.confirm,
        f"{REQ}.check_match_stop_str_prefix": scheduler.waits,
        f"{STREAMER}.to_payload": scheduler.send,
        f"{DETOKENIZER}._decode_batch_token_id_output": detokenizer.decode,
        f"{SCHEDULER}._add_request_to_queue": scheduler.prepare,
        f"{TOKENIZER}._create_tokenized_object": routes.refuse,
        **(of_routes if _serves() else {}),
    }


def _serves() -> bool:
    """Whether this process is about to serve HTTP; the offline `Engine` is not to import what that takes."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return SERVER in sys.modules or "sglang.cli" in sys.modules or getattr(main, "name", "") == "sglang.launch_server"


def _fitting(settings: Settings) -> dict[str, Any]:
    """The hooks, if this sglang has what they stand around and its texts with them are right, or ``RuntimeError``."""
    from sglang.srt.environ import envs

    if envs.SGLANG_RUST_SERVER.get():
        raise RuntimeError("with SGLANG_RUST_SERVER=1, text is made outside of Python, where stopscan cannot find it")
    made = hooks(settings)
    for target in made:
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
