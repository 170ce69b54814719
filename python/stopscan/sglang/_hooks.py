"""Which functions of sglang stopscan stands around, and with what."""

from __future__ import annotations

import logging
import sys
from typing import Any

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
