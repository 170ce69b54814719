"""Answers whose markers are special tokens, such as `<|channel|>`, or words."""

from __future__ import annotations

from format_answers.answer import DSML, KIMI, WEATHER, Answer

ANSWERS = [
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
            ("tool_call", 'get_weather[ARGS]{"city": "Tokyo"}'),
            ("tool_call", 'get_weather[ARGS]{"city": "Paris"}'),
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
