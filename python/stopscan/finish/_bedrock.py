from __future__ import annotations

from stopscan.finish._finish import Finish
from stopscan.finish._read import Reader, field, finish, is_call, items, spoken, whole

# What ends a ConverseStream instead of `messageStop`.
EXCEPTIONS = (
    "internalServerException",
    "modelStreamErrorException",
    "validationException",
    "throttlingException",
    "serviceUnavailableException",
)


def from_bedrock(payload: object, /) -> Finish | None:
    """Returns the finish of a Converse response or of the `messageStop` event of ConverseStream, or None while the
    stream goes on.

    Bedrock names the stop only if the request asks for the stop:
    `additionalModelResponseFieldPaths=["/stop_sequence"]`. An "end_turn" beside a `toolUse` is "tool_calls", because
    some models say so. An answer of InvokeModel has the form of the model's own API.

    >>> from_bedrock({"messageStop": {"stopReason": "guardrail_intervened"}}).reason
    'content_filter'
    """
    return BEDROCK.read(payload)


def _ended(event: object, payload: object) -> Finish | None:
    message = field(event, "messageStop") or event
    word = spoken(field(message, "stopReason"))
    if word is not None:
        return finish(word, (field(field(message, "additionalModelResponseFields"), "stop_sequence"),))
    return Finish("abort") if any(field(event, name) is not None for name in EXCEPTIONS) else None


def _content(event: object) -> Finish | None:
    message = field(field(event, "output"), "message")
    blocks = (field(field(event, "contentBlockStart"), "start"), *items(field(message, "content")))
    return Finish("tool_calls") if any(is_call(field(block, "toolUse")) for block in blocks) else None


BEDROCK: Reader = Reader("Bedrock stopReason", whole, _ended, _content)
