from __future__ import annotations

from stopscan.finish._finish import Finish
from stopscan.finish._read import Reader, field, finish, is_call, items, spoken, whole

# Nearly all events of a stream; looking for what they do not have would cost more than all the rest.
SILENT = ("content_block_delta", "text", "thinking", "input_json")


def from_anthropic(payload: object, /) -> Finish | None:
    """Returns the finish of a message or of a stream event, or None while the stream goes on.

    - `message_start` has a null reason, and `message_delta` has the real reason.
    - A `stop_sequence` without a string stays a "stop_sequence", with no `matched_stop`.
    - An "end_turn" beside a `tool_use`, as some servers write it, is "tool_calls".
    - Old text completions are read, too. They have the string in `stop`.

    `payload` is a dict, or an object with the same fields, such as the official client's. Any other payload is a
    `TypeError`. There is no other error. An error event is an "abort". This paragraph holds for every `from_*`.

    >>> from_anthropic({"type": "message_delta", "delta": {"stop_reason": "pause_turn", "stop_sequence": None}})
    Finish(reason='pause', matched_stop=None, offset=None, raw='pause_turn')
    >>> from_anthropic({"type": "ping"})
    """
    return ANTHROPIC.read(payload)


def _ended(event: object, payload: object) -> Finish | None:
    if field(event, "type") in SILENT:
        return None
    for part in (event, field(event, "delta"), field(event, "message")):
        word = spoken(field(part, "stop_reason"))
        if word is not None:
            return finish(word, (field(part, "stop_sequence"), field(part, "stop")))
    return None


def _content(event: object) -> Finish | None:
    if field(event, "type") in SILENT:
        return None
    message = field(event, "message") or event
    blocks = (field(event, "content_block"), *items(field(message, "content")))
    calls = any(field(block, "type") == "tool_use" and is_call(block) for block in blocks)
    return Finish("tool_calls") if calls else None


ANTHROPIC: Reader = Reader("Anthropic stop_reason", whole, _ended, _content)
