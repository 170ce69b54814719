//! The formats in which reasoning and tool calls stand between markers. `headers.rs` has the formats with headers.

use super::Format;

const THINK: (&str, &str) = ("<think>", "</think>");
const CALL: (&str, &str) = ("<tool_call>", "</tool_call>");
/// The marker before the function's name in Qwen3-Coder's calls.
const FUNCTION: &[&str] = &["<function="];
const END_FUNCTION: &str = "</function>";

/// The formats without headers. If the calls of a format have markers inside markers, only the outermost are listed.
/// The inner ones are text of the call.
pub(super) static PARTS: &[Format] = &[
    Format::parts(
        "think",
        "models without tool calls, such as DeepSeek-R1's distillates and Holo2: vLLM's deepseek_r1 and holo2",
    )
    .reasoning(&[THINK]),
    // The formats from `hermes` to `mimo` have the same markers of reasoning and calls. They differ in
    // how the text of a call is written, such as JSON or XML.
    Format::parts("hermes", "Hermes 2 Pro to 4, Qwen2.5: chat templates; vLLM's hermes, mlx-lm's json_tools")
        .reasoning(&[THINK])
        .tool_call(&[CALL]),
    Format::parts(
        "qwen3",
        "Qwen3, QwQ, MiniCPM-V: chat templates; transformers' fallback, vLLM's qwen3, qwen3_json and minicpmv",
    )
    .reasoning(&[THINK])
    .tool_call(&[CALL]),
    Format::parts(
        "qwen3_coder",
        "Qwen3-Coder, Qwen3.5 and later: chat templates; transformers' fallback, vLLM's qwen3 and qwen3_coder",
    )
    .reasoning(&[THINK])
    .tool_call(&[CALL])
    .bodies(FUNCTION, END_FUNCTION),
    Format::parts("smollm3", "SmolLM3: the response template in transformers' tests/utils/test_chat_parsing.py")
        .reasoning(&[THINK])
        .tool_call(&[CALL]),
    Format::parts("glm45", "GLM-4.5, GLM-4.6: chat templates; vLLM's glm45")
        .reasoning(&[THINK])
        .tool_call(&[CALL])
        .reopens(),
    // GLM's models that see images write the final answer between the markers of a box.
    Format::parts("glm45v", "GLM-4.1V to GLM-4.6V: model cards; vLLM's glm45, which leaves the box in")
        .reasoning(&[THINK])
        .tool_call(&[CALL])
        .answer(&[("", "<|begin_of_box|>"), ("", "<|end_of_box|>")])
        .reopens(),
    Format::parts("glm47", "GLM-4.7, GLM-5, Ling 3, Laguna: vLLM's glm47, ling3 and poolside_v1, mlx-lm's glm47")
        .reasoning(&[THINK])
        .tool_call(&[CALL])
        .reopens(),
    Format::parts("nemotron_v3", "Nemotron 3: vLLM's nemotron_v3")
        .reasoning(&[THINK])
        .tool_call(&[CALL])
        .bodies(FUNCTION, END_FUNCTION),
    Format::parts("granite4", "Granite 4.0 to 4.2: vLLM's granite4 and granite_thinking_parser")
        .reasoning(&[THINK])
        .tool_call(&[CALL]),
    Format::parts("step3p5", "Step 3.5, Step 3.7: chat templates; vLLM's step3p5")
        .reasoning(&[THINK])
        .tool_call(&[CALL])
        .bodies(FUNCTION, END_FUNCTION),
    Format::parts("mimo", "MiMo, MiMo-V2: vLLM's mimo")
        .reasoning(&[THINK])
        .tool_call(&[CALL])
        .bodies(FUNCTION, END_FUNCTION),
    // Mistral's models write `[TOOL_CALLS]` before each call. Models with a tokenizer before v11 write it only once,
    // before an array of all calls.
    Format::parts(
        "mistral",
        "Mistral's tokenizers, reasoning since v13: mistral-common's SpecialTokens; vLLM's and mlx-lm's mistral",
    )
    .reasoning(&[("[THINK]", "[/THINK]"), THINK])
    .tool_call(&[("[TOOL_CALLS]", "")])
    .unclosed_calls()
    .reopens(),
    Format::parts(
        "deepseek_v3",
        "DeepSeek-R1, V3, V3.1: chat templates; vLLM's deepseek_r1, deepseek_v3, deepseek_v31",
    )
    .reasoning(&[THINK])
    .tool_call(&[("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")]),
    Format::parts("deepseek_v32", "DeepSeek-V3.2: vLLM's deepseek_v32")
        .reasoning(&[THINK])
        .tool_call(&[("<｜DSML｜function_calls>", "</｜DSML｜function_calls>")])
        .bare(&["<｜DSML｜invoke name=\""]),
    Format::parts("deepseek_v4", "DeepSeek-V4: vLLM's deepseek_v4")
        .reasoning(&[THINK])
        .tool_call(&[
            ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
            ("<｜DSML｜toolcalls>", ""),
            ("<｜DSML｜tool>", ""),
        ])
        .bare(&["<｜DSML｜invoke name=\""])
        .reopens(),
    Format::parts("deepseek_v41", "DeepSeek-V4.1: vLLM's deepseek_v41")
        .reasoning(&[THINK])
        .tool_call(&[("<｜DSML｜ calls>", "</｜DSML｜ calls>")])
        .bare(&["<｜DSML｜ invoke name=\""])
        .reopens(),
    Format::parts("gemma4", "Gemma 4: chat template; transformers' fallback, vLLM's and mlx-lm's gemma4")
        .reasoning(&[("<|channel>", "<channel|>")])
        .tool_call(&[("<|tool_call>", "<tool_call|>")])
        .reopens()
        .titled("thought\n"),
    Format::parts("functiongemma", "FunctionGemma: vLLM's functiongemma, mlx-lm's function_gemma")
        .tool_call(&[("<start_function_call>", "<end_function_call>")]),
    Format::parts("kimi_k2", "Kimi K2, K2 Thinking, K2.5: chat templates; vLLM's and mlx-lm's kimi_k2")
        .reasoning(&[THINK])
        .tool_call(&[("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")]),
    Format::parts("kimi_k3", "Kimi K3: chat template; vLLM's and mlx-lm's kimi_k3")
        .reasoning(&[("<|open|>think<|sep|>", "<|close|>think<|sep|>")])
        .tool_call(&[("<|open|>tools<|sep|>", "<|close|>tools<|sep|>")])
        .answer(&[
            ("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
            ("<|open|>message<|sep|>", "<|close|>message<|sep|>"),
        ]),
    Format::parts("minimax_m2", "MiniMax M2: chat template; vLLM's and mlx-lm's minimax_m2")
        .reasoning(&[THINK])
        .tool_call(&[("<minimax:tool_call>", "</minimax:tool_call>")])
        .bodies(&["<invoke name="], "</invoke>"),
    Format::parts("minimax_m3", "MiniMax M3: vLLM's minimax_m3")
        .reasoning(&[("<mm:think>", "</mm:think>")])
        .tool_call(&[("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>")]),
    Format::parts("seed_oss", "Seed-OSS: chat template; vLLM's seed_oss")
        .reasoning(&[("<seed:think>", "</seed:think>")])
        .tool_call(&[("<seed:tool_call>", "</seed:tool_call>")])
        .bodies(FUNCTION, END_FUNCTION),
    // Granite's calls are a JSON array without a closing marker, so text after the array also counts as a call. (The
    // last bracket of the array cannot serve as the marker, because arguments may contain it.) Granite 3.0 writes
    // `<|tool_call|>` before the array, Granite 3.1 writes `<tool_call>`. The reasoning begins with `Here is my thought
    // process:`. According to vLLM, quantized models write `Here's` there.
    Format::parts("granite", "Granite 3.0 to 3.3: vLLM's granite")
        .reasoning(&[
            ("Here is my thought process:", "Here is my response:"),
            ("Here's my thought process:", "Here's my response:"),
        ])
        .tool_call(&[("<|tool_call|>", ""), ("<tool_call>", "")])
        .closed_by_a_phrase(),
    Format::parts(
        "cohere_command",
        "Command R7B, Command A and Command A+: their chat templates; vLLM's cohere_command3 and cohere_command4",
    )
    .reasoning(&[("<|START_THINKING|>", "<|END_THINKING|>")])
    .tool_call(&[("<|START_ACTION|>", "<|END_ACTION|>")])
    .answer(&[("<|START_RESPONSE|>", "<|END_RESPONSE|>"), ("<|START_TEXT|>", "<|END_TEXT|>")]),
    Format::parts("hunyuan_a13b", "Hunyuan-A13B: vLLM's hunyuan_a13b")
        .reasoning(&[THINK])
        .tool_call(&[("<tool_calls>", "</tool_calls>")])
        .answer(&[("<answer>", "</answer>")]),
    // Before a call of a built-in tool, Llama 3 writes `<|python_tag|>`. Before a call of another tool, it writes this
    // marker only with some prompts. A call without the marker is a JSON object. It cannot be told from an answer in
    // JSON, so it counts as an answer.
    Format::parts("llama3", "Llama 3.1 to 3.3: Meta's prompt_format.md; vLLM's llama3_json")
        .tool_call(&[("<|python_tag|>", "")]),
    // Llama 4 may also write a list of calls without markers as its whole answer. This cannot be told from other
    // answers, so it counts as an answer.
    Format::parts("llama4", "Llama 4: Meta's prompt_format.md; vLLM's llama4_pythonic")
        .tool_call(&[("<|python_start|>", "<|python_end|>")]),
    // Phi-4-mini writes `functools[…]`, an array of calls. The bracket is part of the marker `functools[`, because many
    // programs contain the word `functools`. The array has no closing marker, so any text after it also counts as the
    // call.
    Format::parts("phi4_mini", "Phi-4-mini: chat template; vLLM's phi4_mini_json")
        .tool_call(&[("<|tool_call|>", "<|/tool_call|>")])
        .bare(&["functools["]),
    Format::parts("jamba", "Jamba: vLLM's jamba").tool_call(&[("<tool_calls>", "</tool_calls>")]),
    Format::parts("step3", "Step 3: vLLM's step3")
        .reasoning(&[THINK])
        .tool_call(&[("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>")]),
    Format::parts("ernie45", "ERNIE 4.5 Thinking: vLLM's ernie45")
        .reasoning(&[THINK])
        .tool_call(&[CALL])
        .answer(&[("<response>", "</response>")]),
    Format::parts("nemotron_nano", "Nemotron Nano 2, Llama-Nemotron: chat templates")
        .reasoning(&[THINK])
        .tool_call(&[("<TOOLCALL>", "</TOOLCALL>")]),
    Format::parts("olmo3", "Olmo 3: vLLM's olmo3")
        .reasoning(&[THINK])
        .tool_call(&[("<function_calls>", "</function_calls>")])
        .reopens(),
    Format::parts("lfm2", "LFM2, LFM2.5: chat templates; vLLM's lfm2, mlx-lm's pythonic")
        .reasoning(&[THINK])
        .tool_call(&[("<|tool_call_start|>", "<|tool_call_end|>")]),
    // Apertus also calls tools inside its reasoning. Known error: the reasoning after such a call counts as the answer.
    Format::parts("apertus", "Apertus: vLLM's apertus, sglang's apertus2509")
        .reasoning(&[("<|inner_prefix|>", "<|inner_suffix|>")])
        .tool_call(&[("<|tools_prefix|>", "<|tools_suffix|>")]),
    Format::parts("longcat", "LongCat-Flash: vLLM's and mlx-lm's longcat")
        .reasoning(&[("<longcat_think>", "</longcat_think>")])
        .tool_call(&[("<longcat_tool_call>", "</longcat_tool_call>")]),
    Format::parts("internlm2", "InternLM 2 to 3, Intern-S1: vLLM's internlm, sglang's internlm, which has the space")
        .tool_call(&[("<|action_start|><|plugin|>", "<|action_end|>"), ("<|action_start|> <|plugin|>", "")]),
    Format::parts("plamo3", "PLaMo 3: vLLM's plamo3")
        .reasoning(&[("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>")])
        .tool_call(&[("<|plamo:begin_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|>")])
        .reopens(),
    Format::parts("dots", "dots: vLLM's dots").tool_call(&[("<dots_function_call>", "</dots_function_call>")]),
    // K2 Horizon has a pair of reasoning markers for each reasoning effort.
    Format::parts("k2_horizon", "K2 Horizon: vLLM's k2_horizon")
        .reasoning(&[
            ("<ifm|think>", "</ifm|think>"),
            ("<ifm|think_fast>", "</ifm|think_fast>"),
            ("<ifm|think_faster>", "</ifm|think_faster>"),
        ])
        .tool_call(&[("<ifm|tool_calls>", "</ifm|tool_calls>")]),
    // Hunyuan's checkpoints may put a suffix of their tokenizer into each marker (`<think:6124c78e>`). These are the
    // markers without a suffix.
    Format::parts("hy_v3", "Hunyuan 3: vLLM's hy_v3")
        .reasoning(&[THINK])
        .tool_call(&[("<tool_calls>", "</tool_calls>")]),
    Format::parts("hy_v4", "Hunyuan 4: vLLM's hy_v4")
        .reasoning(&[THINK])
        .tool_call(&[("<tool_calls>", "</tool_calls>")]),
    // MiniCPM5's opening tag contains the name of the function, so it stays in the text of the call. The closing tag
    // does not.
    Format::parts("minicpm5", "MiniCPM5: vLLM's minicpm5")
        .reasoning(&[THINK])
        .tool_call(&[("", "</function>")])
        .bare(&["<function name=", "<functionname="]),
    // A call is a JSON object after an opening marker. There is no closing marker.
    Format::parts("granite_20b_fc", "Granite 20B function calling: vLLM's granite-20b-fc")
        .tool_call(&[("<function_call>", "")])
        .unclosed_calls(),
];
