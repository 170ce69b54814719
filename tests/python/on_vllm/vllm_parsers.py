"""Facts about vLLM's reasoning parsers, and ``answer``, which returns the text that a client gets."""

from __future__ import annotations

from typing import Any

from vllm.parser import ParserManager
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm_harness import run

# The markers of all parsers. Each marker is a token, because each parser looks up the ids of its markers in the
# tokenizer.
MARKERS = """
<think> </think> <mm:think> </mm:think> <seed:think> </seed:think> [THINK] [/THINK] [TOOL_CALLS] <|open|> <|close|>
<|sep|> <|START_THINKING|> <|END_THINKING|> <|CHATBOT_TOKEN|> <tool_call> </tool_call> <ifm|think> </ifm|think>
<ifm|think_fast> </ifm|think_fast> <ifm|think_faster> </ifm|think_faster> <|channel> <channel|> <|content_thinking|>
<|content_text|> <|end_message|> <|plamo:begin_think:plamo|> <|plamo:end_think:plamo|> <assistant> <|eom|> </ Ġ</ think
"""
THINKING = {"chat_template_kwargs": {"thinking": True, "enable_thinking": True, "reasoning_effort": "high",
                                     "thinking_mode": "enabled"}}  # fmt: skip

# For each parser: whether an answer without a marker is reasoning (always, never, or if the request's
# `chat_template_kwargs` ask for it), and the marker that closes the reasoning.
STATES: dict[str, tuple[str, str]] = {
    "cohere_command3": ("never", "<|END_THINKING|>"),
    "cohere_command4": ("never", "<|END_THINKING|>"),
    "deepseek_r1": ("always", "</think>"),
    "deepseek_v3": ("if asked", "</think>"),
    "deepseek_v4": ("always", "</think>"),
    "deepseek_v41": ("always", "</think>"),
    "ernie45": ("always", "</think>"),
    "gemma4": ("never", "<channel|>"),
    "glm45": ("always", "</think>"),
    "glm47": ("always", "</think>"),
    "granite": ("never", "Here is my response:"),
    "granite_thinking_parser": ("always", "</think>"),
    "holo2": ("always", "</think>"),
    "hunyuan_a13b": ("never", "</think>"),
    "hy_v3": ("if asked", "</think>"),
    "hy_v4": ("always", "</think>"),
    "inkling": ("never", "<|end_message|>"),
    "k2_horizon": ("always", "</ifm|think>"),
    "kimi_k2": ("always", "</think>"),
    "kimi_k3": ("always", "<|close|>think<|sep|>"),
    "ling3": ("always", "</think>"),
    "mimo": ("always", "</think>"),
    "minicpmv": ("always", "</think>"),
    "minimax_m2": ("always", "</think>"),
    "minimax_m2_append_think": ("always", "</think>"),
    "minimax_m3": ("if asked", "</mm:think>"),
    "mistral": ("never", "[/THINK]"),
    "muse": ("never", "<|eom|>"),
    "muse_glimmer": ("never", "<|eom|>"),
    "musespark1x": ("never", "<|eom|>"),
    "nemotron_v3": ("always", "</think>"),
    "olmo3": ("always", "</think>"),
    "openai_gptoss": ("always", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "plamo3": ("always", "<|plamo:end_think:plamo|>"),
    "poolside_v1": ("if asked", "</think>"),
    "qwen3": ("always", "</think>"),
    "seed_oss": ("always", "</seed:think>"),
    "step3": ("always", "</think>"),
    "step3p5": ("always", "</think>"),
    "step5": ("always", "</think>"),
}
# Maps a parser to the opening marker of the reasoning. A parser is left out if adding a slash to its opening marker
# gives its closing marker.
OPENERS = {
    "cohere_command3": "<|START_THINKING|>",
    "cohere_command4": "<|START_THINKING|>",
    "gemma4": "<|channel>",
    "granite": "Here's my thought process:",
    "inkling": "<|content_thinking|>",
    "kimi_k3": "<|open|>think<|sep|>",
    "muse": " to=self<|message|>",
    "muse_glimmer": " to=self<|message|>",
    "musespark1x": " to=self<|message|>",
    "openai_gptoss": "<|channel|>analysis<|message|>",
    "plamo3": "<|plamo:begin_think:plamo|>",
}


def answer(
    tokenizer: Any,
    text: str,
    *,
    prompt: str | None = "x",
    parser_options: dict[str, Any] | None = None,
    **params: Any,
) -> str:
    """The text that a client gets if the model writes ``text`` and the stop is END."""
    params = {"stop": ["END"], "output_kind": RequestOutputKind.DELTA, "skip_special_tokens": False, **params}
    steps = [[token] for token in tokenizer.encode(text, add_special_tokens=False)]
    prompt_ids = None if prompt is None else tokenizer.encode(prompt, add_special_tokens=False)
    return run(
        tokenizer,
        steps,
        SamplingParams(**params),
        prompt=prompt_ids,
        parser_options=parser_options,
    ).text


def calls(tool_parser: str | None, reasoning_parser: str | None = None, *, auto: bool = True) -> None:
    """Makes vLLM choose the parsers that a server with these options uses. stopscan's hook records the choice."""
    ParserManager.get_parser(
        tool_parser_name=tool_parser, reasoning_parser_name=reasoning_parser, enable_auto_tools=auto
    )
