//! The forms whose parts begin with a header. The header is a region of its own, which no reader sees.

use super::{Format, Markers};

const HARMONY_ENDS: Markers =
    &[("<|end|>", "header"), ("<|return|>", "header"), ("<|call|>", "header"), ("<|start|>", "header")];
const MUSE_ENDS: Markers = &[("<|eom|>", "header"), ("<|eot|>", "header")];
const INKLING_ENDS: Markers = &[("<|end_message|>", "header"), ("<|content_model_end_sampling|>", "header")];

pub(super) static HEADERS: &[Format] = &[
    // A stream begins behind `<|start|>assistant`, in a header: the channel, the recipient of a call, a content type.
    // The recipient may stand before the channel or behind it, so a call is all that follows ` to=`:
    // `functions.f <|constrain|>json<|message|>{…}`. A commentary without a recipient is for the user.
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
    // A stream begins behind `<|message_model|>`, in a header, which may hold the name of the function. A call in the
    // middle of the reasoning ends it, and so does what opens another part in the middle of an answer.
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
    // A stream begins behind `<|start|>assistant`, in a header. Calls go to a tool, which they also name themselves.
    Format::graph(
        "muse",
        "Muse: vLLM's muse_glimmer",
        &[
            ("header", &[(" to=", "recipient"), ("<|message|>", "answer")]),
            (
                "recipient",
                &[("self<|message|>", "reasoning"), ("user<|message|>", "answer"), ("<|message|>", "tool_call")],
            ),
            ("answer", MUSE_ENDS),
            ("reasoning", MUSE_ENDS),
            ("tool_call", MUSE_ENDS),
        ],
    ),
    // A call is a message of its own, behind a header, or follows one marker. Nothing closes it but the next call.
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
