"""Answers whose markers look like tags, such as `<think>` and `</think>`."""

from __future__ import annotations

from format_answers.answer import GLM, INVOKE, TIME, WEATHER, XML, Answer

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
        "jamba",
        "tests/tool_parsers/test_jamba_tool_parser.py",
        f" Sure! let me call the tool for you.<tool_calls>[\n    {WEATHER}\n]</tool_calls>",
        [("answer", " Sure! let me call the tool for you."), ("tool_call", f"[\n    {WEATHER}\n]")],
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
]
