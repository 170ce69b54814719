"""After a stop, and in the event of the stop, only known fields are sent, whatever else the server sends. The names of
the known fields are written here by hand: the tests do not read them from the table in apis.py."""

from __future__ import annotations

from typing import Any

import pytest
import wire
from events import text_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_recordings import RECORDINGS, api_of, events_in
from wholes import WHOLES

from stopscan_clients import scan_events, truncate_response

UNKNOWN = {"unknown": "behind", "number": 1, "deep": {"behind": ["behind", {"behind": True}]}, "behind": None}
TEXTS = (["one END two"], ["one E", "ND two", "three"], ["one ", "EN", "D"], ["END"], ["one E", "ND"])

# For each API, all names that may occur in the event of the stop and in later events.
RESPONSE = """id object created_at model status error incomplete_details instructions metadata parallel_tool_calls
    tool_choice tools output usage input_tokens output_tokens total_tokens input_tokens_details cached_tokens
    cache_write_tokens output_tokens_details reasoning_tokens type role content text annotations logprobs
    matched_stop"""
ALLOWED = {
    "chat": """id object created model system_fingerprint choices index delta message role content refusal logprobs
        finish_reason matched_stop usage prompt_tokens completion_tokens total_tokens""",
    "completions": """id object created model choices index text logprobs finish_reason matched_stop usage
        prompt_tokens completion_tokens total_tokens""",
    "responses": f"{RESPONSE} sequence_number item_id output_index content_index delta part item response",
    "anthropic": """id type role model content index delta text content_block stop_reason stop_sequence usage
        input_tokens output_tokens""",
    "gemini": """candidates content role parts text index finishReason usageMetadata promptTokenCount
        candidatesTokenCount totalTokenCount modelVersion responseId""",
    "ollama": """model created_at message role content done done_reason total_duration prompt_eval_count eval_count""",
    "generate": """model created_at response done done_reason total_duration prompt_eval_count eval_count""",
    "bedrock": """contentBlockDelta contentBlockIndex delta text contentBlockStop messageStop stopReason metadata usage
        inputTokens outputTokens totalTokens metrics latencyMs output message role content
        additionalModelResponseFields stop_sequence""",
    "cohere": """type id index delta message role content text finish_reason usage billed_units tokens
        output_tokens""",
    "llama": "index content stop stop_type stopping_word tokens_predicted",
    "tgi": "index token id text logprob special generated_text details finish_reason generated_tokens seed",
    "watsonx": "model_id created_at results generated_text generated_token_count input_token_count stop_reason",
    "llama_on_bedrock": """generation prompt_token_count generation_token_count stop_reason inputTokenCount
        outputTokenCount amazon-bedrock-invocationMetrics""",
    "sglang": "text meta_info id finish_reason type matched prompt_tokens completion_tokens cached_tokens",
    "dashscope": "output choices message role content finish_reason usage output_tokens request_id",
    "dashscope_text": "output text finish_reason usage output_tokens request_id",
    "conversations": """type id output_index content_index model role content text usage prompt_tokens object outputs
        completion_tokens total_tokens conversation_id""",
}
OPEN = {"metadata"}  # a field with content from the request, in which any names may occur
TEXTUAL = [name for name in RECORDINGS if name != "cohere_tools.sse"]
COUNTS = {"number", "behind", "deep"}  # names in `UNKNOWN` that may stay among counts, because counts may have any name


def marked(tree: Any) -> Any:
    """Returns the tree with unknown fields in each of its objects."""
    if isinstance(tree, list):
        return [marked(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    return {**{name: value if name in OPEN else marked(value) for name, value in tree.items()}, **UNKNOWN}


def names(tree: Any, counts: bool = False) -> set[str]:
    """Returns all names in a tree."""
    if isinstance(tree, list):
        return set().union(*(names(value, counts) for value in tree))
    if not isinstance(tree, dict):
        return set()
    below = [names(value, counts or "sage" in name or "etrics" in name) for name, value in tree.items()]
    return {*tree, *set().union(*below)} - (COUNTS if counts else set())


@pytest.mark.parametrize("drain", [False, True])
@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("name", wire.ROWS)
def test_streams(name: str, texts: list[str], drain: bool) -> None:
    so_far, sent, before = "", [], []
    for event in wire.ROWS[name](texts):
        text = text_of(name, event) or ""
        so_far = text if name in wire.CUMULATIVE else so_far + text
        sent.append(marked(event))
        before += [] if "END" in so_far else sent[-1:]
    events = scan_events(sent, "END", drain=drain)
    out, after = [], []
    for event in events:
        out.append(event)
        # an event that opens a part waits for the first text of the part, so it may come out only with the event of the
        # stop
        after += [event] if events.matches and not any(event is earlier for earlier in before) else []
    texts = [text_of(name, event) or "" for event in out]
    assert (texts[-1] if name in wire.CUMULATIVE else "".join(texts)) == so_far.partition("END")[0]
    assert names(after) <= {*ALLOWED[name].split()}
    assert '"' not in str(after)
    assert "'behind'" not in str(after).replace("'behind': ", "")


@pytest.mark.parametrize("name", WHOLES)
def test_answers(name: str) -> None:
    kept = truncate_response(marked(WHOLES[name]("one END two")), "END")
    assert names(kept) <= {*ALLOWED[name].split()}
    assert "'behind'" not in str(kept).replace("'behind': ", "")


@pytest.mark.parametrize("name", TEXTUAL)
@settings(max_examples=25)
@given(data=st.data(), drain=st.booleans())
def test_recorded_streams_with_unknown_fields_anywhere(name: str, data: st.DataObject, drain: bool) -> None:
    events = events_in(name, RECORDINGS[name].read_bytes())
    pieces = [text_of(api_of(name), event) or "" for event in events]
    text = max(pieces, key=len)
    begin = data.draw(st.integers(0, len(text) - 1))
    stop = text[begin : begin + data.draw(st.integers(1, 6))]
    first = next(number for number, piece in enumerate(pieces) if stop in piece)  # an earlier one may span two events
    odd = data.draw(st.sampled_from(["Qz7", ["Qz7"], {"Qz7": 1}, {"a": [{"b": "Qz7"}]}]))

    def noted(tree: Any) -> Any:
        if isinstance(tree, list):
            return [noted(value) for value in tree]
        if not isinstance(tree, dict):
            return tree
        new = {key: value if key in OPEN else noted(value) for key, value in tree.items()}
        return {**new, "note": odd} if tree and data.draw(st.booleans()) else new

    sent = [*events[:first], *map(noted, events[first:])]
    stream = scan_events(sent, stop, drain=drain)
    after = [event for event in stream if stream.matches and not any(event is earlier for earlier in sent[:first])]
    assert stream.matches
    assert not [path for event in after for path in notes(event)]


def notes(tree: Any, counts: bool = False) -> list[Any]:
    """Returns the values of the fields named `note`: the tests add this unknown field to each event that the server
    sends. A `note` within counts, such as the usage, is left out if it has only numbers."""
    if isinstance(tree, list):
        return [note for value in tree for note in notes(value, counts)]
    if not isinstance(tree, dict):
        return []
    here = [
        value
        for name, value in tree.items()
        if name == "note" and not (counts and "'Qz7'" not in str(value).replace("'Qz7': 1", ""))
    ]
    return here + [
        note for name, value in tree.items() for note in notes(value, counts or "sage" in name or "etrics" in name)
    ]
