"""How today's models mark the parts of an answer, as data; docs/formats.md says how to use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stopscan.segments._format import Format

Pair = tuple[str | None, str | None]  # the opening and the closing marker of a part; a part may lack either

THINK = ("<think>", "</think>")
CALL = ("<tool_call>", "</tool_call>")


def _parts(
    *, source: str, reasoning: Sequence[Pair] = (), tool_call: Sequence[Pair] = (), answer: Sequence[Pair] = ()
) -> Format:
    """A form whose parts stand between markers, and whose answer is what stands outside of them.

    A part ends at its closing marker. Models forget it: reasoning also ends where another part opens, as in vLLM's and
    sglang's parsers. Only the outermost markers of tool calls are here: those inside a block belong to the call.
    """
    parts = {"answer": answer, "reasoning": reasoning, "tool_call": tool_call}
    opening = {opener: part for part, pairs in parts.items() for opener, _ in pairs if opener}
    markers = {
        part: {closer: "answer" for _, closer in pairs if closer}
        for part, pairs in parts.items()
        if part in {"answer", *opening.values()}
    }
    markers["answer"].update(opening)
    if reasoning:
        markers["reasoning"].update({opener: part for opener, part in opening.items() if part != "reasoning"})
    return Format(markers, source=source)


FORMATS: Mapping[str, Format] = {
    "think": _parts(
        reasoning=[THINK],
        source="models without tool calls, such as DeepSeek-R1's distillates: chat templates; vLLM's deepseek_r1",
    ),
    # What stands inside <tool_call> differs among the next ten (JSON, XML, arguments); the markers do not.
    "hermes": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="Hermes 2 Pro to 4, Qwen2.5: chat templates; vLLM's hermes, mlx-lm's json_tools",
    ),
    "qwen3": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="Qwen3, QwQ, Qwen3-VL, Qwen3-Next: chat templates; transformers' fallback, vLLM's qwen3 and qwen3_json",
    ),
    "qwen3_coder": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="Qwen3-Coder, Qwen3.5 and later: chat templates; transformers' fallback, vLLM's qwen3 and qwen3_coder",
    ),
    "smollm3": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="SmolLM3: the response template in transformers' tests/utils/test_chat_parsing.py",
    ),
    "glm45": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="GLM-4.5, GLM-4.6: chat templates; vLLM's glm45",
    ),
    "glm47": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="GLM-4.7, GLM-5, Ling 3, Laguna: vLLM's glm47, ling3 and poolside_v1, mlx-lm's glm47",
    ),
    "nemotron_v3": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="Nemotron 3: vLLM's nemotron_v3",
    ),
    "granite4": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="Granite 4.0 to 4.2: vLLM's granite4 and granite_thinking_parser",
    ),
    "step3p5": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="Step 3.5, Step 3.7: chat templates; vLLM's step3p5",
    ),
    "mimo": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        source="MiMo, MiMo-V2: vLLM's mimo",
    ),
    # A stream begins behind `<|start|>assistant`, in a header: the channel, the recipient of a call, a content type.
    # The recipient may stand before the channel or behind it, so a call is all that follows ` to=`:
    # `functions.f <|constrain|>json<|message|>{…}`. A commentary without a recipient is for the user.
    "harmony": Format(
        {
            "header": {" to=": "tool_call", "<|channel|>analysis": "analysis_header", "<|message|>": "answer"},
            "analysis_header": {" to=": "tool_call", "<|message|>": "reasoning"},
            "answer": {"<|end|>": "header", "<|return|>": "header", "<|call|>": "header", "<|start|>": "header"},
            "reasoning": {"<|end|>": "header", "<|return|>": "header", "<|call|>": "header", "<|start|>": "header"},
            "tool_call": {"<|end|>": "header", "<|return|>": "header", "<|call|>": "header", "<|start|>": "header"},
        },
        source="gpt-oss: docs/format.md of openai/harmony",
    ),
    # Calls have no closing marker, and each but the first keeps its `[TOOL_CALLS]`: it is what tells them apart.
    "mistral": _parts(
        reasoning=[("[THINK]", "[/THINK]")],
        tool_call=[("[TOOL_CALLS]", None)],
        source="Mistral's tokenizers, reasoning since v13: mistral-common's SpecialTokens; vLLM's and mlx-lm's mistral",
    ),
    "deepseek_v3": _parts(
        reasoning=[THINK],
        tool_call=[("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")],
        source="DeepSeek-R1, V3, V3.1: chat templates; vLLM's deepseek_r1, deepseek_v3, deepseek_v31",
    ),
    "deepseek_v32": _parts(
        reasoning=[THINK],
        tool_call=[("<｜DSML｜function_calls>", "</｜DSML｜function_calls>")],
        source="DeepSeek-V3.2: vLLM's deepseek_v32",
    ),
    "deepseek_v4": _parts(
        reasoning=[THINK],
        # The others are spellings that the model was seen to write, says vLLM.
        tool_call=[
            ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
            ("<｜DSML｜toolcalls>", None),
            ("<｜DSML｜tool>", None),
        ],
        source="DeepSeek-V4: vLLM's deepseek_v4",
    ),
    "deepseek_v41": _parts(
        reasoning=[THINK],
        tool_call=[("<｜DSML｜ calls>", "</｜DSML｜ calls>")],
        source="DeepSeek-V4.1: vLLM's deepseek_v41",
    ),
    "gemma4": _parts(
        reasoning=[("<|channel>thought\n", "<channel|>")],
        tool_call=[("<|tool_call>", "<tool_call|>")],
        source="Gemma 4: chat template; transformers' fallback, vLLM's and mlx-lm's gemma4",
    ),
    "functiongemma": _parts(
        tool_call=[("<start_function_call>", "<end_function_call>")],
        source="FunctionGemma: vLLM's functiongemma, mlx-lm's function_gemma",
    ),
    "kimi_k2": _parts(
        reasoning=[THINK],
        tool_call=[("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")],
        source="Kimi K2, K2 Thinking, K2.5: chat templates; vLLM's and mlx-lm's kimi_k2",
    ),
    "kimi_k3": _parts(
        reasoning=[("<|open|>think<|sep|>", "<|close|>think<|sep|>")],
        tool_call=[("<|open|>tools<|sep|>", "<|close|>tools<|sep|>")],
        answer=[("<|open|>response<|sep|>", "<|close|>response<|sep|>"), (None, "<|close|>message<|sep|>")],
        source="Kimi K3: chat template; vLLM's and mlx-lm's kimi_k3",
    ),
    "minimax_m2": _parts(
        reasoning=[THINK],
        tool_call=[("<minimax:tool_call>", "</minimax:tool_call>")],
        source="MiniMax M2: chat template; vLLM's and mlx-lm's minimax_m2",
    ),
    "minimax_m3": _parts(
        reasoning=[("<mm:think>", "</mm:think>")],
        tool_call=[("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>")],
        source="MiniMax M3: vLLM's minimax_m3",
    ),
    "seed_oss": _parts(
        reasoning=[("<seed:think>", "</seed:think>")],
        tool_call=[("<seed:tool_call>", "</seed:tool_call>")],
        source="Seed-OSS: chat template; vLLM's seed_oss",
    ),
    # The calls are a JSON array that ends with its bracket, which no literal can be: what follows it is in the region.
    # 3.0 opens it with the first marker, 3.1 with the second; quantized models write `Here's`, says vLLM.
    "granite": _parts(
        reasoning=[
            ("Here is my thought process:", "Here is my response:"),
            ("Here's my thought process:", "Here's my response:"),
        ],
        tool_call=[("<|tool_call|>", None), ("<tool_call>", None)],
        source="Granite 3.0 to 3.3: vLLM's granite",
    ),
    "cohere_command": _parts(
        reasoning=[("<|START_THINKING|>", "<|END_THINKING|>")],
        tool_call=[("<|START_ACTION|>", "<|END_ACTION|>")],
        answer=[("<|START_RESPONSE|>", "<|END_RESPONSE|>"), ("<|START_TEXT|>", "<|END_TEXT|>")],
        source="Command R7B, Command A, A+: chat templates; vLLM's cohere_command3 and cohere_command4",
    ),
    # Hunyuan's next models put a suffix of their tokenizer's into each marker: no literals.
    "hunyuan_a13b": _parts(
        reasoning=[THINK],
        tool_call=[("<tool_calls>", "</tool_calls>")],
        answer=[("<answer>", "</answer>")],
        source="Hunyuan-A13B: vLLM's hunyuan_a13b",
    ),
    # Only built-in tools and some prompts bring the marker. A bare JSON object as the whole answer is a call, too, and
    # no literal tells it from an answer in JSON.
    "llama3": _parts(
        tool_call=[("<|python_tag|>", None)],
        source="Llama 3.1 to 3.3: Meta's prompt_format.md; vLLM's llama3_json",
    ),
    # A bare list of calls as the whole answer is a call, too; no literal tells it from an answer.
    "llama4": _parts(
        tool_call=[("<|python_start|>", "<|python_end|>")],
        source="Llama 4: Meta's prompt_format.md; vLLM's llama4_pythonic",
    ),
    # The bracket is a part of the second marker, because `functools` alone is a word of many programs: the text is the
    # array without its first bracket, and, as the array has no closing marker, what follows it.
    "phi4_mini": _parts(
        tool_call=[("<|tool_call|>", "<|/tool_call|>"), ("functools[", None)],
        source="Phi-4-mini: chat template; vLLM's phi4_mini_json",
    ),
    "jamba": _parts(
        tool_call=[("<tool_calls>", "</tool_calls>")],
        source="Jamba: vLLM's jamba",
    ),
    "step3": _parts(
        reasoning=[THINK],
        tool_call=[("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>")],
        source="Step 3: vLLM's step3",
    ),
    "ernie45": _parts(
        reasoning=[THINK],
        tool_call=[CALL],
        answer=[("<response>", "</response>")],
        source="ERNIE 4.5 Thinking: vLLM's ernie45",
    ),
    "nemotron_nano": _parts(
        reasoning=[THINK],
        tool_call=[("<TOOLCALL>", "</TOOLCALL>")],
        source="Nemotron Nano 2, Llama-Nemotron: chat templates",
    ),
    "olmo3": _parts(
        reasoning=[THINK],
        tool_call=[("<function_calls>", "</function_calls>")],
        source="Olmo 3: vLLM's olmo3",
    ),
    "lfm2": _parts(
        reasoning=[THINK],
        tool_call=[("<|tool_call_start|>", "<|tool_call_end|>")],
        source="LFM2, LFM2.5: chat templates; vLLM's lfm2, mlx-lm's pythonic",
    ),
    # The model also calls from within its reasoning; what follows such a call is the answer here, which it is not.
    "apertus": _parts(
        reasoning=[("<|inner_prefix|>", "<|inner_suffix|>")],
        tool_call=[("<|tools_prefix|>", "<|tools_suffix|>")],
        source="Apertus: vLLM's apertus, sglang's apertus2509",
    ),
    "longcat": _parts(
        reasoning=[("<longcat_think>", "</longcat_think>")],
        tool_call=[("<longcat_tool_call>", "</longcat_tool_call>")],
        source="LongCat-Flash: vLLM's and mlx-lm's longcat",
    ),
    "internlm2": _parts(
        tool_call=[("<|action_start|><|plugin|>", "<|action_end|>"), ("<|action_start|> <|plugin|>", None)],
        source="InternLM 2 to 3, Intern-S1: vLLM's internlm, sglang's internlm, which has the space",
    ),
    "plamo3": _parts(
        reasoning=[("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>")],
        tool_call=[("<|plamo:begin_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|>")],
        source="PLaMo 3: vLLM's plamo3",
    ),
    "dots": _parts(
        tool_call=[("<dots_function_call>", "</dots_function_call>")],
        source="dots: vLLM's dots",
    ),
    # One pair of markers for each reasoning effort.
    "k2_horizon": _parts(
        reasoning=[
            ("<ifm|think>", "</ifm|think>"),
            ("<ifm|think_fast>", "</ifm|think_fast>"),
            ("<ifm|think_faster>", "</ifm|think_faster>"),
        ],
        tool_call=[("<ifm|tool_calls>", "</ifm|tool_calls>")],
        source="K2 Horizon: vLLM's k2_horizon",
    ),
    # A stream begins behind `<|message_model|>`, in a header, which may hold the name of the function.
    "inkling": Format(
        {
            "header": {
                "<|content_thinking|>": "reasoning",
                "<|content_text|>": "answer",
                "<|content_invoke_tool_json|>": "tool_call",
                "<|content_invoke_tool_text|>": "tool_call",
            },
            "answer": {"<|end_message|>": "header", "<|content_model_end_sampling|>": "header"},
            "reasoning": {"<|end_message|>": "header", "<|content_model_end_sampling|>": "header"},
            "tool_call": {"<|end_message|>": "header", "<|content_model_end_sampling|>": "header"},
        },
        source="Inkling: vLLM's inkling; the response template in transformers' tests/utils/test_chat_parsing.py",
    ),
    # A stream begins behind `<|start|>assistant`, in a header. Calls go to a tool, which they also name themselves.
    "muse": Format(
        {
            "header": {" to=": "recipient", "<|message|>": "answer"},
            "recipient": {"self<|message|>": "reasoning", "user<|message|>": "answer", "<|message|>": "tool_call"},
            "answer": {"<|eom|>": "header", "<|eot|>": "header"},
            "reasoning": {"<|eom|>": "header", "<|eot|>": "header"},
            "tool_call": {"<|eom|>": "header", "<|eot|>": "header"},
        },
        source="Muse: vLLM's muse_glimmer",
    ),
    # Without an entry, because nothing but their content marks their calls: the bare lists and objects of Llama and of
    # vLLM's pythonic and xlam, and MiniCPM5's `<function name="f">`, whose marker is a part of the call.
}
