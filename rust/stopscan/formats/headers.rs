//! The formats whose parts begin with a header. Each header is a separate region, and its text is not for a reader.

use super::{Format, Markers};

const HARMONY_ENDS: Markers =
    &[("<|end|>", "header"), ("<|return|>", "header"), ("<|call|>", "header"), ("<|start|>", "header")];
const MUSE_ENDS: Markers = &[("<|eom|>", "header"), ("<|eot|>", "header")];
const INKLING_ENDS: Markers = &[("<|end_message|>", "header"), ("<|content_model_end_sampling|>", "header")];

pub(super) static HEADERS: &[Format] = &[
    // Harmony, the format of gpt-oss. The prompt ends with `<|start|>assistant`, so a stream begins in a header, which
    // has the channel, the recipient of a call and a content type. The recipient may come before or after the channel,
    // so everything after ` to=` counts as the call: `functions.f <|constrain|>json<|message|>{…}`. A message in the
    // channel `commentary` without a recipient is for the user, so its text counts as an answer.
    Format::graph(
        "harmony",
        "gpt-oss: docs/format.md of openai/harmony",
        &[
            ("header", &[(" to=", "tool_call"), ("<|channel|>analysis", "analysis_header"), ("<|message|>", "answer")]),
            ("analysis_header", &[(" to=", "tool_call"), ("<|message|>", "reasoning")]),
            ("answer", HARMONY_ENDS),
            ("reasoning", HARMONY_ENDS),
            ("tool_call", HARMONY_ENDS),
        ],
    ),
    // The format of Inkling. The prompt ends with `<|message_model|>`, so a stream begins in a header. If a call
    // follows, the header may name its function. A call may begin inside the reasoning, and then ends the reasoning.
    // Inside an answer, any marker that opens another part ends the answer.
    Format::graph(
        "inkling",
        "Inkling: vLLM's inkling; the response template in transformers' tests/utils/test_chat_parsing.py",
        &[
            (
                "header",
                &[
                    ("<|content_thinking|>", "reasoning"),
                    ("<|content_text|>", "answer"),
                    ("<|content_tool_error|>", "answer"),
                    ("<|content_invoke_tool_json|>", "tool_call"),
                    ("<|content_invoke_tool_text|>", "tool_call"),
                ],
            ),
            (
                "answer",
                &[
                    ("<|end_message|>", "header"),
                    ("<|content_model_end_sampling|>", "header"),
                    ("<|message_model|>", "header"),
                    ("<|content_thinking|>", "reasoning"),
                    ("<|content_text|>", "answer"),
                    ("<|content_tool_error|>", "answer"),
                    ("<|content_invoke_tool_json|>", "tool_call"),
                    ("<|content_invoke_tool_text|>", "tool_call"),
                ],
            ),
            (
                "reasoning",
                &[
                    ("<|end_message|>", "header"),
                    ("<|content_model_end_sampling|>", "header"),
                    ("<|content_thinking|>", "reasoning"),
                    ("<|content_invoke_tool_json|>", "tool_call"),
                ],
            ),
            ("tool_call", INKLING_ENDS),
        ],
    ),
    // The format of Muse. The prompt ends with `<|start|>assistant`, so a stream begins in a header. The header of a
    // call names the tool, but is not part of the call's text: the call itself names the tool again.
    Format::graph(
        "muse",
        "Muse: vLLM's muse_glimmer",
        &[
            ("header", &[(" to=", "recipient"), ("to=", "recipient"), ("<|message|>", "answer")]),
            (
                "recipient",
                &[("self<|message|>", "reasoning"), ("user<|message|>", "answer"), ("<|message|>", "tool_call")],
            ),
            ("answer", MUSE_ENDS),
            ("reasoning", MUSE_ENDS),
            ("tool_call", MUSE_ENDS),
        ],
    ),
    // The format of GigaChat 3. A call is a message with `function call` in its header, or the text after
    // `<|function_call|>`. A call ends where the next call or message begins.
    Format::graph(
        "gigachat3",
        "GigaChat 3: vLLM's gigachat3",
        &[
            ("answer", &[("<|function_call|>", "tool_call"), ("<|message_sep|>", "header")]),
            ("header", &[("function call<|role_sep|>", "tool_call"), ("<|function_call|>", "tool_call")]),
            ("tool_call", &[("<|function_call|>", "tool_call/next"), ("<|message_sep|>", "header")]),
            ("tool_call/next", &[("<|function_call|>", "tool_call"), ("<|message_sep|>", "header")]),
        ],
    ),
];
