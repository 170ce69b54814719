"""Answers from the tests of vLLM's parsers. Some have faults that models make. All others are cases that
`format_answers` does not have.

The source of an answer is a path in vLLM's repository and the name of a test. The expected segments are taken from this
test. If they differ from the test in more than white space, the source says how.
"""

from __future__ import annotations

from format_answers import DSML, GLM, INVOKE, TIME, WEATHER, XML, Answer

ENGINE = "tests/parser/engine"
BARE = XML.strip() + "\n"
CITY = "get_weather[ARGS]{}"

# Calls that models write without the opening marker. Each entry has the name in `FORMATS`, the closing marker of calls,
# and the call.
BARES = [
    ("qwen3_coder", "</tool_call>", BARE),
    ("nemotron_v3", "</tool_call>", BARE),
    ("step3p5", "</tool_call>", BARE),
    ("mimo", "</tool_call>", BARE),
    ("seed_oss", "</seed:tool_call>", BARE),
    ("deepseek_v32", "</｜DSML｜function_calls>", DSML.strip()),
    ("deepseek_v4", "</｜DSML｜tool_calls>", DSML.strip()),
    ("deepseek_v41", "</｜DSML｜ calls>", DSML.strip().replace("｜DSML｜", "｜DSML｜ ")),
    ("minimax_m2", "</minimax:tool_call>", INVOKE.strip()),
]

FAULTS = [
    *(
        Answer(form, "a bare call", f"I will look.\n{call}{closing} Done.{closing}", segments)
        for form, closing, call in BARES
        for segments in [[("answer", "I will look.\n"), ("tool_call", call), ("answer", " Done.")]]
    ),
    Answer(
        "qwen3",
        f"{ENGINE}/test_qwen3_reasoning.py: test_duplicate_think_end_absorbed",
        "Reasoning here.</think>Content here.</think>More content.",
        [("reasoning", "Reasoning here."), ("answer", "Content here.More content.")],
        prompt="<think>\n",
    ),
    Answer(
        "qwen3",
        f"{ENGINE}/test_qwen3_reasoning.py: test_reasoning_then_content, where the prompt opened the reasoning",
        "<think>Let me analyze.</think>The answer is 42.",
        [("reasoning", "Let me analyze."), ("answer", "The answer is 42.")],
        prompt="<think>\n",
    ),
    Answer(
        "qwen3_coder",
        f"{ENGINE}/test_qwen3_reasoning.py: test_tool_call_implicit_end",
        f"<think>I need to read the file.\n\n<tool_call>{XML}</tool_call>",
        [("reasoning", "I need to read the file.\n\n"), ("tool_call", XML)],
    ),
    Answer(
        "qwen3_coder",
        f"{ENGINE}/test_qwen3_reasoning.py: test_quoted_tool_marker_preserves_following_final_answer; "
        "the quoted marker is taken out, and what follows it is in a call",
        "The literal marker is `<tool_call>` in prose.</think>The answer is 42.",
        [("reasoning", "The literal marker is `"), ("tool_call", "` in prose."), ("answer", "The answer is 42.")],
        prompt="<think>\n",
    ),
    Answer(
        "qwen3_coder",
        f"{ENGINE}/test_qwen3.py: test_surrounding_text",
        f"Let me check.\n\n<tool_call>{XML}</tool_call>\n\nI will get that information.",
        [("answer", "Let me check.\n\n"), ("tool_call", XML), ("answer", "\n\nI will get that information.")],
    ),
    Answer(
        "qwen3_coder",
        f"{ENGINE}/test_qwen3.py: test_consecutive_tool_calls_without_tool_end",
        f"<tool_call>{XML}<tool_call>{XML}</tool_call>",
        [("tool_call", f"{XML}<tool_call>{XML}")],
    ),
    Answer(
        "qwen3_coder",
        "a call of the answer quotes the closing marker of the reasoning",
        "hm</think><tool_call><function=write><parameter=text>a</think>b</parameter></function></tool_call>",
        [
            ("reasoning", "hm"),
            ("tool_call", "<function=write><parameter=text>a</think>b</parameter></function>"),
        ],
        prompt="<think>\n",
    ),
    Answer(
        "qwen3_coder",
        "an answer about the markers, which its parser keeps as well",
        "hm</think>Write <think> first.",
        [("reasoning", "hm"), ("answer", "Write <think> first.")],
        prompt="<think>\n",
    ),
    Answer(
        "deepseek_v4",
        f"{ENGINE}/test_deepseek_v4.py: test_bare_think_end_not_leaked",
        "</think>Here is the direct answer.",
        [("answer", "Here is the direct answer.")],
    ),
    Answer(
        "deepseek_v4",
        f"{ENGINE}/test_deepseek_v4.py: test_duplicate_think_start_absorbed",
        "<think>\nSome reasoning.\n</think>\nAnswer.",
        [("reasoning", "\nSome reasoning.\n"), ("answer", "\nAnswer.")],
        prompt="<think>",
    ),
    Answer(
        "deepseek_v4",
        f"{ENGINE}/test_deepseek_v4.py: test_streaming_with_trailing_content",
        f"<｜DSML｜tool_calls>{DSML}</｜DSML｜tool_calls>Done.",
        [("tool_call", DSML), ("answer", "Done.")],
    ),
    Answer(
        "deepseek_v4",
        f"{ENGINE}/test_deepseek_v4.py: test_non_streaming_parse_implicit_end",
        f"Let me look up the weather.\n\n<｜DSML｜tool_calls>{DSML}</｜DSML｜tool_calls>",
        [("reasoning", "Let me look up the weather.\n\n"), ("tool_call", DSML)],
        prompt="<think>",
    ),
    Answer(
        "glm47",
        f"{ENGINE}/test_glm47_moe.py: its parser opens the reasoning again",
        f"one</think>two<think>three</think>four<tool_call>{GLM}</tool_call>five",
        [
            ("reasoning", "one"),
            ("answer", "two"),
            ("reasoning", "three"),
            ("answer", "four"),
            ("tool_call", GLM),
            ("answer", "five"),
        ],
        prompt="<think>",
    ),
    Answer(
        "gemma4",
        f"{ENGINE}/test_gemma4_streaming_reasoning.py: a channel without its title",
        "<|channel>The user said thought\nand left.<channel|>Hi.<channel|>",
        [("reasoning", "The user said thought\nand left."), ("answer", "Hi.")],
    ),
    Answer(
        "gemma4",
        f"{ENGINE}/test_gemma4_streaming_reasoning.py: the opening marker again",
        "<|channel>thought\nOne. <|channel>thought\nTwo.<channel|>Hi.",
        [("reasoning", "One. Two."), ("answer", "Hi.")],
    ),
    Answer(
        "mistral",
        "tests/parser/mistral/test_reasoning.py: tokenizers of v11",
        f"<think>Two places.</think>I'll look.[TOOL_CALLS]{CITY}",
        [("reasoning", "Two places."), ("answer", "I'll look."), ("tool_call", CITY)],
    ),
    Answer(
        "mistral",
        "vllm/parser/mistral.py: a call in the reasoning",
        f"[THINK]Two places.[TOOL_CALLS]{CITY}[/THINK]Done.",
        [("reasoning", "Two places."), ("tool_call", CITY), ("answer", "Done.")],
    ),
    Answer(
        "granite",
        "the closing phrase in an answer",
        "Here is my thought process: hm Here is my response: You asked. Here is my response: Yes.",
        [("reasoning", " hm "), ("answer", " You asked. Here is my response: Yes.")],
    ),
    Answer(
        "inkling",
        f"{ENGINE}/test_inkling.py: the text of a tool's error stays",
        "<|content_tool_error|>No such tool.<|end_message|>",
        [("answer", "No such tool.")],
    ),
    Answer(
        "inkling",
        "vllm/parser/inkling.py: a call in the middle of the text",
        "<|content_text|>Hi<|content_invoke_tool_json|>{}<|end_message|>",
        [("answer", "Hi"), ("tool_call", "{}")],
    ),
    Answer(
        "inkling",
        f"{ENGINE}/test_inkling.py: a call while the reasoning is open",
        "<|content_thinking|>hm <|content_thinking|>so<|content_invoke_tool_json|>{}<|end_message|>",
        [("reasoning", "hm so"), ("tool_call", "{}")],
    ),
    Answer(
        "gigachat3",
        "tests/tool_parsers/test_gigachat3_tool_parser.py: mixed_content_streaming_gigachat3",
        f"I'll check that for you.<|message_sep|>\n\nfunction call<|role_sep|>\n{WEATHER}",
        [("answer", "I'll check that for you."), ("header", "\n\n"), ("tool_call", f"\n{WEATHER}")],
    ),
    Answer(
        "gigachat3",
        "tests/tool_parsers/test_gigachat3_tool_parser.py: mixed_content_streaming_gigachat31",
        f"I'll check that for you.<|function_call|>{WEATHER}",
        [("answer", "I'll check that for you."), ("tool_call", WEATHER)],
    ),
    Answer(
        "granite_20b_fc",
        "tests/tool_parsers/test_granite_20b_fc_tool_parser.py: parallel_tool_calls_output",
        f"Let me check.\n<function_call> {WEATHER}\n<function_call> {TIME}",
        [("answer", "Let me check.\n"), ("tool_call", f" {WEATHER}\n"), ("tool_call", f" {TIME}")],
    ),
    Answer(
        "hy_v3",
        "tests/tool_parsers/test_hy_v3_tool_parser.py",
        "hm</think>Sure.<tool_calls>\n<tool_call>get_weather<tool_sep>\n</tool_call>\n</tool_calls>",
        [
            ("reasoning", "hm"),
            ("answer", "Sure."),
            ("tool_call", "\n<tool_call>get_weather<tool_sep>\n</tool_call>\n"),
        ],
        prompt="<think>",
    ),
    Answer(
        "hy_v4",
        "tests/tool_parsers/test_hy_v4_tool_parser.py",
        "hm</think><tool_calls><tool_call>get_weather</tool_call></tool_calls>",
        [("reasoning", "hm"), ("tool_call", "<tool_call>get_weather</tool_call>")],
        prompt="<think>",
    ),
    Answer(
        "glm45v",
        "the model card of GLM-4.5V: the final answer is in a box",
        f"It is a cat.</think>The animal is <|begin_of_box|>a cat<|end_of_box|>.<tool_call>{GLM}</tool_call><think>ok",
        [("reasoning", "It is a cat."), ("answer", "The animal is a cat."), ("tool_call", GLM), ("reasoning", "ok")],
        prompt="<think>",
    ),
    Answer(
        "kimi_k3",
        "the chat template, which writes the message's marker before the parts",
        "<|open|>message<|sep|><|open|>response<|sep|>Hi.<|close|>response<|sep|><|close|>message<|sep|>",
        [("answer", "Hi.")],
    ),
    Answer(
        "muse",
        "vllm/reasoning/muse_glimmer_reasoning_parser.py: _HEADER_PAT, which needs no space",
        "to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>Done.<|eot|>",
        [("reasoning", "hm"), ("header", "<|start|>assistant"), ("answer", "Done.")],
    ),
    Answer(
        "minicpm5",
        "tests/tool_parsers/test_minicpm5xml_tool_parser.py",
        'hm</think>I\'ll look.\n<function name="f"><param name="x">1</param></function>\nDone.'
        '<functionname="g"></function>',
        [
            ("reasoning", "hm"),
            ("answer", "I'll look.\n"),
            ("tool_call", '<function name="f"><param name="x">1</param>'),
            ("answer", "\nDone."),
            ("tool_call", '<functionname="g">'),
        ],
        prompt="<think>",
    ),
]
