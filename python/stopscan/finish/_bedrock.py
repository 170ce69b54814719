from __future__ import annotations

from stopscan.finish._finish import Finish
from stopscan.finish._read import field, finish, spoken, unfinished

# What ends a ConverseStream instead of `messageStop`.
EXCEPTIONS = (
    "internalServerException",
    "modelStreamErrorException",
    "validationException",
    "throttlingException",
    "serviceUnavailableException",
)


def from_bedrock(payload: object, /) -> Finish | None:
    """Returns the finish of a Converse response or of an event of ConverseStream: `messageStop` has it. Which stop it
    was, Bedrock says only if the request asks for it: `additionalModelResponseFieldPaths=["/stop_sequence"]`.

    An answer of InvokeModel is in the form of its model's own API.

    >>> from_bedrock({"messageStop": {"stopReason": "guardrail_intervened"}}).reason
    'content_filter'
    """
    message = field(payload, "messageStop") or payload
    word = spoken(field(message, "stopReason"))
    if word is not None:
        return finish(word, (field(field(message, "additionalModelResponseFields"), "stop_sequence"),))
    if any(field(payload, name) is not None for name in EXCEPTIONS):
        return Finish("abort")
    return unfinished("Bedrock stopReason", payload)
