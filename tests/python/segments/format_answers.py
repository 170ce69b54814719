"""An answer in every form, as the model's template or its parsers' tests write it, and the parts that it has.

The paths are those of vLLM's repository, where no other is named.
"""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    form: str
    source: str
    text: str
    segments: list[tuple[str, str]]
    prompt: str = ""  # the assistant's own part, as the template ends


WEATHER = '{"name": "get_weather", "arguments": {"city": "Tokyo"}}'
TIME = '{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}'
XML = "\n<function=get_weather>\n<parameter=city>\nTokyo\n</parameter>\n</function>\n"
GLM = "get_weather\n<arg_key>city</arg_key>\n<arg_value>Tokyo</arg_value>\n"
INVOKE = '\n<invoke name="get_weather">\n<parameter name="city">Tokyo</parameter>\n</invoke>\n'
DSML = (
    '\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">杭州</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n"
)
KIMI = '<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Tokyo"}<|tool_call_end|>'

ANSWERS = [
    Answer(
        "think",
        "tests/reasoning/test_deepseekr1_reasoning_parser.py; the distillates' template ends with <think>",
        "This is a reasoning section</think>This is the rest",
        [("reasoning", "This is a reasoning section"), ("answer", "This is the rest")],
        prompt="<think>\n",
    ),
    Answer(
        "hermes",
        "tests/tool_parsers/test_hermes_tool_parser.py; Hermes 4 thinks",
        f"<think>hm</think>Let me check.\n<tool_call>\n{WEATHER}\n</tool_call>\n<tool_call>\n{TIME}\n</tool_call>",
        [
            ("reasoning", "hm"),
            ("answer", "Let me check.\n"),
            ("tool_call", f"\n{WEATHER}\n"),
            ("answer", "\n"),
            ("tool_call", f"\n{TIME}\n"),
        ],
    ),
    Answer(
        "qwen3",
        "Qwen3's chat template; tests/reasoning/test_qwen3_reasoning_parser.py",
        f"<think>\nI need the weather.\n</think>\n\n<tool_call>\n{WEATHER}\n</tool_call>",
        [("reasoning", "\nI need the weather.\n"), ("answer", "\n\n"), ("tool_call", f"\n{WEATHER}\n")],
    ),
    Answer(
        "qwen3_coder",
        "tests/parser/engine/test_qwen3.py: a call that ends reasoning which was never closed",
        f"I need the weather.<tool_call>{XML}</tool_call>\nOn it.",
        [("reasoning", "I need the weather."), ("tool_call", XML), ("answer", "\nOn it.")],
        prompt="<think>\n",
    ),
    Answer(
        "qwen3_coder",
        "Qwen3.5's chat template; tests/tool_parsers/test_qwen3coder_tool_parser.py",
        f"I need it.\n</think>\n\n<tool_call>{XML}</tool_call>\n<tool_call>{XML}</tool_call>",
        [
            ("reasoning", "I need it.\n"),
            ("answer", "\n\n"),
            ("tool_call", XML),
            ("answer", "\n"),
            ("tool_call", XML),
        ],
        prompt="<think>\n",
    ),
    Answer(
        "smollm3",
        "tests/utils/test_chat_parsing.py of transformers",
        f"<think>\nI should greet them back.\n</think>\n\n<tool_call>{WEATHER}</tool_call>",
        [("reasoning", "\nI should greet them back.\n"), ("answer", "\n\n"), ("tool_call", WEATHER)],
    ),
    Answer(
        "glm45",
        "GLM-4.6's chat template",
        f"\n<think>The weather, then.</think>\nI'll look.\n<tool_call>{GLM}</tool_call>",
        [
            ("answer", "\n"),
            ("reasoning", "The weather, then."),
            ("answer", "\nI'll look.\n"),
            ("tool_call", GLM),
        ],
    ),
    Answer(
        "glm47",
        "tests/parser/engine/test_glm47_moe.py",
        "Weather.</think><tool_call>get_weather<arg_key>city</arg_key><arg_value>Beijing</arg_value></tool_call>",
        [
            ("reasoning", "Weather."),
            ("tool_call", "get_weather<arg_key>city</arg_key><arg_value>Beijing</arg_value>"),
        ],
        prompt="<think>",
    ),
    Answer(
        "nemotron_v3",
        "tests/parser/engine/test_nemotron_v3.py",
        f"I need the weather.\n</think>\n<tool_call>{XML}</tool_call>\n",
        [("reasoning", "I need the weather.\n"), ("answer", "\n"), ("tool_call", XML), ("answer", "\n")],
        prompt="<think>\n",
    ),
    Answer(
        "granite4",
        "tests/tool_parsers/test_granite4_tool_parser.py, tests/reasoning/test_granite_thinking_reasoning_parser.py",
        f"I know.\n</think>\nI will look.<tool_call>\n{WEATHER}\n</tool_call>",
        [("reasoning", "I know.\n"), ("answer", "\nI will look."), ("tool_call", f"\n{WEATHER}\n")],
        prompt="<think>",
    ),
    Answer(
        "step3p5",
        "tests/parser/engine/test_step3p5.py",
        f"The user asks.\n</think>\n<tool_call>{XML}</tool_call>",
        [("reasoning", "The user asks.\n"), ("answer", "\n"), ("tool_call", XML)],
        prompt="<think>\n",
    ),
    Answer(
        "mimo",
        "vllm/parser/mimo.py; tests/tool_parsers/test_mimov2_flash_tool_parser.py",
        "<think>hm</think><tool_call><function=get_weather><parameter=city>Tokyo</parameter></function></tool_call>",
        [
            ("reasoning", "hm"),
            ("tool_call", "<function=get_weather><parameter=city>Tokyo</parameter></function>"),
        ],
    ),
    Answer(
        "harmony",
        "docs/format.md of openai/harmony, Example output",
        '<|channel|>analysis<|message|>User asks: "What is 2 + 2?" Simple arithmetic.<|end|>'
        "<|start|>assistant<|channel|>final<|message|>2 + 2 = 4.<|return|>",
        [
            ("reasoning", 'User asks: "What is 2 + 2?" Simple arithmetic.'),
            ("header", "<|start|>assistant<|channel|>final"),
            ("answer", "2 + 2 = 4."),
        ],
    ),
    Answer(
        "harmony",
        "docs/format.md of openai/harmony, Preambles and Receiving tool calls",
        "<|channel|>analysis<|message|>Need to use a function.<|end|><|start|>assistant<|channel|>commentary<|message|>"
        "**Action plan**:\n1. Look.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather "
        '<|constrain|>json<|message|>{"location":"San Francisco"}<|call|>',
        [
            ("reasoning", "Need to use a function."),
            ("header", "<|start|>assistant<|channel|>commentary"),
            ("answer", "**Action plan**:\n1. Look."),
            ("header", "<|start|>assistant<|channel|>commentary"),
            ("tool_call", 'functions.get_weather <|constrain|>json<|message|>{"location":"San Francisco"}'),
        ],
    ),
    Answer(
        "harmony",
        "src/tests.rs of openai/harmony: the recipient before the channel, without a space before the constraint",
        ' to=functions.get_weather<|channel|>commentary<|constrain|>json<|message|>{"location": "Tokyo"}<|end|>',
        [("tool_call", 'functions.get_weather<|channel|>commentary<|constrain|>json<|message|>{"location": "Tokyo"}')],
    ),
    Answer(
        "harmony",
        "test-data/test_streamable_parser.txt of openai/harmony; built-in tools are called from the analysis channel",
        '<|channel|>analysis to=browser.search code<|message|>{"query": "current US president"}<|call|>',
        [("tool_call", 'browser.search code<|message|>{"query": "current US president"}')],
    ),
    Answer(
        "harmony",
        "vllm/parser/harmony.py: an answer of a given form has a content type",
        '<|channel|>final <|constrain|>json<|message|>{"items": []}<|return|>',
        [("header", "<|channel|>final <|constrain|>json"), ("answer", '{"items": []}')],
    ),
    Answer(
        "mistral",
        "tests/parser/mistral/test_tool_calls.py and test_reasoning.py",
        '[THINK]Two places.[/THINK]I\'ll look.[TOOL_CALLS]get_weather[ARGS]{"city": "Tokyo"}'
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}',
        [
            ("reasoning", "Two places."),
            ("answer", "I'll look."),
            ("tool_call", 'get_weather[ARGS]{"city": "Tokyo"}[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}'),
        ],
    ),
    Answer(
        "mistral",
        "tests/parser/mistral/test_tool_calls.py: tokenizers before v11",
        f"[TOOL_CALLS][{WEATHER}]",
        [("tool_call", f"[{WEATHER}]")],
    ),
    Answer(
        "deepseek_v3",
        "DeepSeek-V3.1's chat template; tests/tool_parsers/test_deepseekv31_tool_parser.py",
        "It asks for it.</think>Let me look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '{"city": "Tokyo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [
            ("reasoning", "It asks for it."),
            ("answer", "Let me look."),
            ("tool_call", '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Tokyo"}<｜tool▁call▁end｜>'),
        ],
        prompt="<think>",
    ),
    Answer(
        "deepseek_v32",
        "vllm/parser/deepseek_v32.py",
        f"It asks.</think>I'll look.\n\n<｜DSML｜function_calls>{DSML}</｜DSML｜function_calls>",
        [("reasoning", "It asks."), ("answer", "I'll look.\n\n"), ("tool_call", DSML)],
        prompt="<think>",
    ),
    Answer(
        "deepseek_v4",
        "vllm/parser/deepseek_v4.py",
        f"It asks for the weather.</think>\n\n<｜DSML｜tool_calls>{DSML}</｜DSML｜tool_calls>",
        [("reasoning", "It asks for the weather."), ("answer", "\n\n"), ("tool_call", DSML)],
        prompt="<think>",
    ),
    Answer(
        "deepseek_v4",
        "vllm/parser/deepseek_v4.py: another spelling, inside reasoning",
        f"Weather.<｜DSML｜toolcalls>{DSML}</｜DSML｜tool_calls>",
        [("reasoning", "Weather."), ("tool_call", DSML)],
        prompt="<think>",
    ),
    Answer(
        "deepseek_v4",
        "vllm/parser/deepseek_v4.py: a third spelling; the template without thinking ends with </think>",
        f"I'll look.<｜DSML｜tool>{DSML}</｜DSML｜tool_calls>",
        [("answer", "I'll look."), ("tool_call", DSML)],
        prompt="</think>",
    ),
    Answer(
        "deepseek_v41",
        "vllm/parser/deepseek_v41.py",
        'hm</think><｜DSML｜ calls>\n<｜DSML｜ invoke name="f">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
        [("reasoning", "hm"), ("tool_call", '\n<｜DSML｜ invoke name="f">\n</｜DSML｜ invoke>\n')],
        prompt="<think>",
    ),
    Answer(
        "gemma4",
        "tests/utils/test_chat_parsing.py of transformers",
        "<|channel>thought\nThe user asks for the temperature.<channel|>"
        '<|tool_call>call:get_current_temperature{detail_level:0,location:<|"|>Paris<|"|>}<tool_call|>',
        [
            ("reasoning", "The user asks for the temperature."),
            ("tool_call", 'call:get_current_temperature{detail_level:0,location:<|"|>Paris<|"|>}'),
        ],
    ),
    Answer(
        "gemma4",
        "Gemma 4's chat template without thinking",
        "It is 20 degrees.",
        [("answer", "It is 20 degrees.")],
        prompt="<|channel>thought\n<channel|>",
    ),
    Answer(
        "functiongemma",
        "tests/tool_parsers/test_functiongemma_tool_parser.py",
        "Let me check. <start_function_call>call:get_weather{location:<escape>London<escape>}<end_function_call>",
        [("answer", "Let me check. "), ("tool_call", "call:get_weather{location:<escape>London<escape>}")],
    ),
    Answer(
        "kimi_k2",
        "Kimi-K2-Thinking's chat template",
        f"<think>The weather.</think>I'll look.<|tool_calls_section_begin|>{KIMI}{KIMI}<|tool_calls_section_end|>",
        [("reasoning", "The weather."), ("answer", "I'll look."), ("tool_call", KIMI * 2)],
    ),
    Answer(
        "kimi_k3",
        "Kimi K3's chat template; tests/reasoning/test_kimi_k3_reasoning_parser.py",
        "step<|close|>think<|sep|><|open|>response<|sep|>I'll look.<|close|>response<|sep|><|open|>tools<|sep|>"
        '<|open|>call tool="f" index="1"<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>',
        [
            ("reasoning", "step"),
            ("answer", "I'll look."),
            ("tool_call", '<|open|>call tool="f" index="1"<|sep|><|close|>call<|sep|>'),
        ],
        prompt="<|open|>think<|sep|>",
    ),
    Answer(
        "minimax_m2",
        "MiniMax M2's chat template; tests/parser/engine/test_minimax_m2.py",
        f"The user wants the weather.\n</think>\n\n<minimax:tool_call>{INVOKE}</minimax:tool_call>",
        [("reasoning", "The user wants the weather.\n"), ("answer", "\n\n"), ("tool_call", INVOKE)],
        prompt="<think>\n",
    ),
    Answer(
        "minimax_m3",
        "tests/parser/engine/test_minimax_m3.py",
        '<mm:think>An order.</mm:think>Sure. ]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="create_order">'
        "]<]minimax[>[<user_id>42]<]minimax[>[</user_id>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        [
            ("reasoning", "An order."),
            ("answer", "Sure. "),
            (
                "tool_call",
                '\n]<]minimax[>[<invoke name="create_order">]<]minimax[>[<user_id>42]<]minimax[>[</user_id>'
                "]<]minimax[>[</invoke>\n",
            ),
        ],
    ),
    Answer(
        "seed_oss",
        "Seed-OSS's chat template; tests/parser/engine/test_seed_oss.py",
        f"<seed:think>The weather.</seed:think>\nI'll look.\n\n<seed:tool_call>{XML}</seed:tool_call>",
        [("reasoning", "The weather."), ("answer", "\nI'll look.\n\n"), ("tool_call", XML)],
    ),
    Answer(
        "granite",
        "tests/reasoning/test_granite_reasoning_parser.py",
        "Here is my thought process:This is a reasoning sectionHere is my response:This is the rest",
        [("reasoning", "This is a reasoning section"), ("answer", "This is the rest")],
    ),
    Answer(
        "granite",
        "tests/tool_parsers/test_granite_tool_parser.py: what follows the array is not told from it",
        f"Let me check the weather for you.\n<|tool_call|> [{WEATHER}]\nI'll get that information.",
        [
            ("answer", "Let me check the weather for you.\n"),
            ("tool_call", f" [{WEATHER}]\nI'll get that information."),
        ],
    ),
    Answer(
        "granite",
        "tests/tool_parsers/test_granite_tool_parser.py, tests/reasoning/test_granite_reasoning_parser.py",
        f"Here's my thought process: hm\nHere's my response: A call.\n<tool_call> [{WEATHER}]",
        [("reasoning", " hm\n"), ("answer", " A call.\n"), ("tool_call", f" [{WEATHER}]")],
    ),
    Answer(
        "cohere_command",
        "tests/parser/cohere/test_tool_calls.py, cohere_command3",
        "<|START_THINKING|> i will call foo with query1<|END_THINKING|><|START_ACTION|>\n[\n"
        '    {"tool_call_id": "0", "tool_name": "foo", "parameters": {"query": "query1"}}\n]\n<|END_ACTION|>',
        [
            ("reasoning", " i will call foo with query1"),
            ("tool_call", '\n[\n    {"tool_call_id": "0", "tool_name": "foo", "parameters": {"query": "query1"}}\n]\n'),
        ],
    ),
    Answer(
        "cohere_command",
        "tests/parser/cohere/test_tool_calls.py, cohere_command4",
        "This is a rainbow<|END_THINKING|>\n<|START_TEXT|>foo bar<|END_TEXT|>",
        [("reasoning", "This is a rainbow"), ("answer", "\nfoo bar")],
        prompt="<|START_THINKING|>",
    ),
    Answer(
        "cohere_command",
        "tests/parser/cohere/test_tool_calls.py, cohere_command3; reasoning that was never closed",
        "This is a rainbow<|START_RESPONSE|>foo bar<|END_RESPONSE|>",
        [("reasoning", "This is a rainbow"), ("answer", "foo bar")],
        prompt="<|START_THINKING|>",
    ),
    Answer(
        "hunyuan_a13b",
        "tests/reasoning/test_hunyuan_reasoning_parser.py, tests/tool_parsers/test_hunyuan_a13b_tool_parser.py",
        f"<think>\nA call.\n</think>\n<answer>\nI will call. <tool_calls>[{WEATHER}]</tool_calls>\n</answer>",
        [
            ("reasoning", "\nA call.\n"),
            ("answer", "\n\nI will call. "),
            ("tool_call", f"[{WEATHER}]"),
            ("answer", "\n"),
        ],
    ),
    Answer(
        "llama3",
        "Meta's prompt_format.md of Llama 3.1, built-in tools",
        '<|python_tag|>brave_search.call(query="current weather in Menlo Park, California")',
        [("tool_call", 'brave_search.call(query="current weather in Menlo Park, California")')],
    ),
    Answer(
        "llama4",
        "tests/tool_parsers/test_llama4_pythonic_tool_parser.py",
        "<|python_start|>[get_weather(city='LA', metric='C')]<|python_end|>",
        [("tool_call", "[get_weather(city='LA', metric='C')]")],
    ),
    Answer(
        "phi4_mini",
        "Phi-4-mini's chat template",
        f"<|tool_call|>{WEATHER}<|/tool_call|>",
        [("tool_call", WEATHER)],
    ),
    Answer(
        "phi4_mini",
        "tests/tool_parsers/test_phi4mini_tool_parser.py; the word alone is no marker",
        f"import functools\nLet me check.\nfunctools[{WEATHER}]\nWould you like to know more?",
        [
            ("answer", "import functools\nLet me check.\n"),
            ("tool_call", f"functools[{WEATHER}]\nWould you like to know more?"),
        ],
    ),
    Answer(
        "jamba",
        "tests/tool_parsers/test_jamba_tool_parser.py",
        f" Sure! let me call the tool for you.<tool_calls>[\n    {WEATHER}\n]</tool_calls>",
        [("answer", " Sure! let me call the tool for you."), ("tool_call", f"[\n    {WEATHER}\n]")],
    ),
    Answer(
        "step3",
        "tests/tool_parsers/test_step3_tool_parser.py",
        'hm</think>Let me check.\n\n<｜tool_calls_begin｜><｜tool_call_begin｜><steptml:invoke name="get_weather">'
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>\n\nI'll get that information.",
        [
            ("reasoning", "hm"),
            ("answer", "Let me check.\n\n"),
            (
                "tool_call",
                '<｜tool_call_begin｜><steptml:invoke name="get_weather"></steptml:invoke><｜tool_call_end｜>',
            ),
            ("answer", "\n\nI'll get that information."),
        ],
        prompt="<think>\n",
    ),
    Answer(
        "ernie45",
        "tests/utils/test_chat_parsing.py of transformers",
        "The user just greeted me.\n</think>\n\n<response>\nHello! I'm doing well.\n</response>\n",
        [("reasoning", "The user just greeted me.\n"), ("answer", "\n\n\nHello! I'm doing well.\n\n")],
        prompt="<think>\n",
    ),
    Answer(
        "ernie45",
        "tests/utils/test_chat_parsing.py of transformers",
        f"The user asks about the weather.\n</think>\n\n<tool_call>\n{WEATHER}\n</tool_call>\n",
        [
            ("reasoning", "The user asks about the weather.\n"),
            ("answer", "\n\n"),
            ("tool_call", f"\n{WEATHER}\n"),
            ("answer", "\n"),
        ],
        prompt="<think>\n",
    ),
    Answer(
        "nemotron_nano",
        "NVIDIA-Nemotron-Nano-v2's chat template",
        f"I need the weather for Tokyo.\n</think>\n\n<TOOLCALL>[{WEATHER}, {TIME}]</TOOLCALL>",
        [
            ("reasoning", "I need the weather for Tokyo.\n"),
            ("answer", "\n\n"),
            ("tool_call", f"[{WEATHER}, {TIME}]"),
        ],
        prompt="<think>\n\n",
    ),
    Answer(
        "olmo3",
        "tests/tool_parsers/test_olmo3_tool_parser.py, tests/reasoning/test_olmo3_reasoning_parser.py",
        "Two calls.</think><function_calls>get_weather(city='San Francisco')\nget_weather()</function_calls>",
        [("reasoning", "Two calls."), ("tool_call", "get_weather(city='San Francisco')\nget_weather()")],
        prompt="<think>",
    ),
    Answer(
        "lfm2",
        "LFM2.5's chat template; tests/tool_parsers/test_lfm2_tool_parser.py",
        '<think>hm</think><|tool_call_start|>[get_weather(location="Paris")]<|tool_call_end|>It is sunny.',
        [("reasoning", "hm"), ("tool_call", '[get_weather(location="Paris")]'), ("answer", "It is sunny.")],
    ),
    Answer(
        "apertus",
        "vllm/tool_parsers/apertus_tool_parser.py, python/sglang/srt/parser/reasoning_parser.py of sglang",
        '<|inner_prefix|>hm<|inner_suffix|>I will check. <|tools_prefix|>[{"f": {"city": "Paris"}}]<|tools_suffix|>',
        [("reasoning", "hm"), ("answer", "I will check. "), ("tool_call", '[{"f": {"city": "Paris"}}]')],
    ),
    Answer(
        "longcat",
        "tests/tool_parsers/test_longcat_tool_parser.py, mlx_lm/tokenizer_utils.py of mlx-lm",
        f"<longcat_think>hm</longcat_think>Let me check.\n<longcat_tool_call>{WEATHER}</longcat_tool_call>\n"
        f"<longcat_tool_call>{TIME}</longcat_tool_call>",
        [
            ("reasoning", "hm"),
            ("answer", "Let me check.\n"),
            ("tool_call", WEATHER),
            ("answer", "\n"),
            ("tool_call", TIME),
        ],
    ),
    Answer(
        "internlm2",
        "tests/tool_parsers/test_internlm2_tool_parser.py",
        'I\'ll look. <|action_start|><|plugin|>{"name": "f", "parameters": {"city": "Tokyo"}}<|action_end|>',
        [("answer", "I'll look. "), ("tool_call", '{"name": "f", "parameters": {"city": "Tokyo"}}')],
    ),
    Answer(
        "internlm2",
        "python/sglang/srt/function_call/internlm_detector.py of sglang",
        '<|action_start|> <|plugin|>\n{"name": "f", "parameters": {}}<|action_end|>',
        [("tool_call", '\n{"name": "f", "parameters": {}}')],
    ),
    Answer(
        "plamo3",
        "tests/parser/engine/test_plamo3.py",
        "<|plamo:begin_think:plamo|>Reasoning. <|plamo:end_think:plamo|>Before tools. "
        "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>clock"
        "<|plamo:end_tool_name:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>",
        [
            ("reasoning", "Reasoning. "),
            ("answer", "Before tools. "),
            (
                "tool_call",
                "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>clock<|plamo:end_tool_name:plamo|>"
                "<|plamo:end_tool_request:plamo|>",
            ),
        ],
    ),
    Answer(
        "dots",
        "vllm/tool_parsers/dots_tool_parser.py",
        f"<dots_function_call>{INVOKE}</dots_function_call>",
        [("tool_call", INVOKE)],
    ),
    Answer(
        "k2_horizon",
        "tests/tool_parsers/test_k2_horizon_tool_parser.py, vllm/reasoning/k2_horizon_reasoning_parser.py",
        "quick</ifm|think_fast>Before <ifm|tool_calls><ifm|tool_call>ping</ifm|tool_call></ifm|tool_calls> after.",
        [
            ("reasoning", "quick"),
            ("answer", "Before "),
            ("tool_call", "<ifm|tool_call>ping</ifm|tool_call>"),
            ("answer", " after."),
        ],
        prompt="<ifm|think_fast>",
    ),
    Answer(
        "k2_horizon",
        "vllm/reasoning/k2_horizon_reasoning_parser.py: another effort",
        "<ifm|think>long</ifm|think>one",
        [("reasoning", "long"), ("answer", "one")],
    ),
    Answer(
        "k2_horizon",
        "vllm/reasoning/k2_horizon_reasoning_parser.py: a third one",
        "<ifm|think_faster>short</ifm|think_faster>two",
        [("reasoning", "short"), ("answer", "two")],
    ),
    Answer(
        "inkling",
        "tests/utils/test_chat_parsing.py of transformers",
        "<|content_thinking|>Consider the weather.<|end_message|><|message_model|><|content_text|>Checking the weather "
        "now.<|end_message|><|message_model|>get_weather<|content_invoke_tool_json|>"
        '{"name":"get_weather","args":{"city":"Tokyo"}}<|end_message|><|content_model_end_sampling|>',
        [
            ("reasoning", "Consider the weather."),
            ("header", "<|message_model|>"),
            ("answer", "Checking the weather now."),
            ("header", "<|message_model|>get_weather"),
            ("tool_call", '{"name":"get_weather","args":{"city":"Tokyo"}}'),
            ("header", "<|content_model_end_sampling|>"),
        ],
    ),
    Answer(
        "inkling",
        "python/sglang/srt/parser/reasoning_parser.py of sglang: a call in text",
        "<|content_invoke_tool_text|>ls<|end_message|>",
        [("tool_call", "ls")],
    ),
    Answer(
        "muse",
        "vllm/tool_parsers/muse_glimmer_tool_parser.py",
        " to=self<|message|>I need it.<|eom|><|start|>assistant to=tool.fn<|message|>\n<atem:function_calls>\n"
        '<atem:invoke name="tool.fn">\n</atem:invoke>\n</atem:function_calls><|eom|>'
        "<|start|>assistant to=user<|message|>Done.<|eot|>",
        [
            ("reasoning", "I need it."),
            ("header", "<|start|>assistant"),
            ("recipient", "tool.fn"),
            (
                "tool_call",
                '\n<atem:function_calls>\n<atem:invoke name="tool.fn">\n</atem:invoke>\n</atem:function_calls>',
            ),
            ("header", "<|start|>assistant"),
            ("answer", "Done."),
        ],
    ),
]
