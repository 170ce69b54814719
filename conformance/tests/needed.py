"""The keys in the answers of each API, sorted by kind. The kind says which values of a key are right. A key that is not
listed may have any value."""

from __future__ import annotations

from typing import Any

ABSENT = object()
PROBES: dict[str, Any] = {
    "absent": ABSENT, "null": None, "true": True, "false": False, "0": 0, "1": 1, "-1": -1, "1.5": 1.5, "''": "",
    "'?'": "?", "[]": [], "{}": {},
}  # fmt: skip

# For each kind of key, the names of the test values in `PROBES` that are right for a key of this kind.
KINDS = {
    "anything": {*PROBES},
    "name": {"'?'"},
    "name or null": {"'?'", "null"},
    "text": {"''", "'?'"},
    "text or null": {"''", "'?'", "null"},
    "text if there": {"''", "'?'", "null", "absent"},
    "integer": {"0", "1", "-1"},
    "number": {"0", "1", "-1", "1.5"},
    "count": {"0", "1"},
    "0": {"0"},
    "said": {"'?'"},
    "count if there": {"0", "1", "absent"},
    "list if there": {"[]", "null", "absent"},
    "1": {"1"},
    "first": {"0", "false"},
    "second": {"1", "true"},
    "true": {"true"},
    "list": {"[]"},
    "null": {"null"},
    "as before": {"absent"},  # the same as in earlier events
    "right if there": {"absent"},
    "object if there": {"absent", "null", "{}"},
    "fixed": set(),  # no test value is right: the key has one right value, or its value depends on other keys
}

GENERATE = {
    "": {
        "text": "text",
        "fixed": "meta_info meta_info.finish_reason meta_info.finish_reason.type",
        "name": "meta_info.id",
        "count": "meta_info.prompt_tokens meta_info.completion_tokens",
    },
}

OPENAI = {"name": "id model", "integer": "created", "0": "choices.0.index", "1": "usage.prompt_tokens"}
WHOLE = {**OPENAI, "right if there": "usage", "object if there": "choices.0.logprobs"}
OLLAMA = {"name": "model", "count if there": "prompt_eval_count eval_count"}

# The keys that an answer has. They are sorted by the API and whether the answer is a stream, then by the type of the
# event, and then by kind. If events have no type, the type is "".
NEEDED: dict[tuple[str, bool], dict[str, dict[str, str]]] = {
    ("openai-chat", False): {
        "": {
            **WHOLE,
            "fixed": "object choices choices.0.finish_reason choices.0.message choices.0.message.role "
            "usage.completion_tokens usage.total_tokens",
            "text or null": "choices.0.message.content",
            "text if there": "choices.0.message.reasoning_content",
        },
    },
    ("openai-chat", True): {
        "": {
            **OPENAI,
            "fixed": "object choices choices.0.delta choices.0.delta.role choices.0.finish_reason usage "
            "usage.completion_tokens usage.total_tokens",
            "text if there": "choices.0.delta.content choices.0.delta.reasoning_content",
        },
    },
    ("openai-completions", False): {
        "": {
            **WHOLE,
            "fixed": "object choices choices.0.finish_reason usage.completion_tokens usage.total_tokens",
            "text": "choices.0.text",
        },
    },
    ("openai-completions", True): {
        "": {
            **OPENAI,
            "fixed": "object choices choices.0.finish_reason usage usage.completion_tokens usage.total_tokens",
            "text": "choices.0.text",
        },
    },
    ("responses-with-stop", False): {
        "": {
            "name": "id model output.0.id output.1.id",
            "fixed": "object status output.1.status output.0.content.0.type output.0.type output.1.content.0.type "
            "output.1.type output.1.role usage usage.output_tokens usage.total_tokens",
            "number": "created_at",
            "list": "output output.1.content output.1.content.0.annotations output.0.summary",
            "list if there": "output.0.content",
            "text": "output.0.content.0.text output.1.content.0.text",
            "1": "usage.input_tokens",
        },
    },
    ("responses-with-stop", True): {
        "response.created": {
            "fixed": "type response response.id response.object response.model response.status",
            "first": "sequence_number",
            "number": "response.created_at",
            "list": "response.output",
        },
        "response.in_progress": {
            "fixed": "type",
            "second": "sequence_number",
            "as before": "response.id response.model",
        },
        "response.output_item.added": {
            "fixed": "type sequence_number output_index item item.id item.type",
        },
        "response.content_part.added": {
            "fixed": "type sequence_number item_id output_index part part.type",
            "0": "content_index",
            "text": "part.text",
            "list": "part.annotations",
        },
        "response.reasoning_text.delta": {
            "fixed": "type sequence_number item_id delta",
            "0": "output_index content_index",
        },
        "response.reasoning_text.done": {
            "fixed": "type sequence_number item_id text",
            "0": "output_index content_index",
        },
        "response.content_part.done": {
            "fixed": "type sequence_number item_id output_index part part.text",
            "0": "content_index",
        },
        "response.output_item.done": {
            "fixed": "type sequence_number output_index item item.id item.content item.content.0.type "
            "item.content.0.text item.type item.role item.status",
            "list": "item.content.0.annotations item.summary",
        },
        "response.output_text.delta": {
            "fixed": "type sequence_number item_id delta",
            "1": "output_index",
            "0": "content_index",
        },
        "response.output_text.done": {
            "fixed": "type sequence_number item_id text",
            "1": "output_index",
            "0": "content_index",
        },
        "response.completed": {
            "fixed": "type sequence_number response response.id response.object response.model response.status "
            "response.output response.output.0.id response.output.0.content response.output.0.content.0.type "
            "response.output.0.content.0.text response.output.0.type response.output.1.id "
            "response.output.1.content response.output.1.content.0.type response.output.1.content.0.text "
            "response.output.1.type response.output.1.role response.usage response.usage.output_tokens "
            "response.usage.total_tokens response.output.1.status",
            "number": "response.created_at",
            "list": "response.output.1.content.0.annotations response.output.0.summary",
            "1": "response.usage.input_tokens",
        },
    },
    ("anthropic", False): {
        "": {
            "name": "id model",
            "fixed": "type role content.0.type content.1.type stop_reason usage",
            "list": "content",
            "text": "content.0.thinking content.0.signature",
            "said": "content.1.text",
            "name or null": "stop_sequence",
            "count": "usage.input_tokens usage.output_tokens",
        },
    },
    ("anthropic", True): {
        "message_start": {
            "fixed": "type message message.type message.role message.usage",
            "name": "message.id message.model",
            "list": "message.content",
            "null": "message.stop_reason message.stop_sequence",
            "count": "message.usage.input_tokens message.usage.output_tokens",
        },
        "content_block_start": {
            "fixed": "type index content_block content_block.type",
            "text": "content_block.thinking content_block.signature content_block.text",
        },
        "ping": {"fixed": "type"},
        "content_block_delta": {
            "fixed": "type index delta delta.type",
            "text": "delta.thinking",
            "said": "delta.text",
        },
        "content_block_stop": {"fixed": "type index"},
        "message_delta": {
            "fixed": "type delta delta.stop_reason usage",
            "name or null": "delta.stop_sequence",
            "count": "usage.output_tokens",
        },
        "message_stop": {"fixed": "type"},
    },
    ("ollama-chat", False): {
        "": {
            **OLLAMA,
            "fixed": "done_reason created_at message message.role",
            "text": "message.content",
            "true": "done",
        },
    },
    ("ollama-chat", True): {
        "": {**OLLAMA, "fixed": "done_reason created_at message message.role done", "text": "message.content"},
    },
    ("ollama-generate", False): {
        "": {**OLLAMA, "fixed": "done_reason created_at", "text": "response", "true": "done"},
    },
    ("ollama-generate", True): {
        "": {**OLLAMA, "fixed": "done_reason created_at done", "text": "response"},
    },
    ("generate", False): GENERATE,
    ("generate", True): GENERATE,
}
