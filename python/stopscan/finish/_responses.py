from __future__ import annotations

from stopscan.finish._finish import Finish
from stopscan.finish._read import Reader, field, finish, is_call, items, spoken, whole

GOING_ON = ("queued", "in_progress")
ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
# Output items that wait for the caller: openai.types.responses.ResponseOutputItem.
CALLS = (
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "apply_patch_call",
    "mcp_approval_request",
)
# Events that have a refusal, which the last event of a sparse server has not.
REFUSALS = ("response.refusal.delta", "response.refusal.done")


def from_responses(payload: object, /) -> Finish | None:
    """Returns the finish of a response, or of the event that ends its stream, or None while the stream goes on.

    A completed response that has a refusal is a "refusal". A completed response that has calls for the caller is
    "tool_calls". `raw` is the word that decided: the status, the reason why the response is incomplete, or the type of
    the item.

    >>> from_responses({"type": "response.completed", "response": {"status": "completed"}})
    Finish(reason='eos', matched_stop=None, offset=None, raw='completed')
    """
    return RESPONSES.read(payload)


def _ended(event: object, payload: object) -> Finish | None:
    kind = field(event, "type")
    if isinstance(kind, str) and kind.endswith(".delta"):
        return None  # nearly all events of a stream
    if kind == "error":
        return Finish("abort")
    # Events have statuses of their own: `response.reasoning_summary_part.done` can be "incomplete" in mid-stream.
    response = event if kind is None else field(event, "response")
    status = spoken(field(response, "status"))
    if status is None and kind in ENDS:
        status = kind.removeprefix("response.")
    if status is None or status in GOING_ON:
        return None
    if status == "incomplete":
        return finish(spoken(field(field(response, "incomplete_details"), "reason")) or status)
    return finish(status)


def _content(event: object) -> Finish | None:
    """What waits for the caller: in the items of a response, or in the one that an event has."""
    kind = field(event, "type")
    if kind in REFUSALS or field(field(event, "part"), "type") == "refusal":
        return Finish("refusal", raw="refusal")
    response = event if kind is None else field(event, "response")
    for item in (field(event, "item"), *items(field(response, "output"))):
        kind = field(item, "type")
        if _waits(item, kind) and is_call(item):
            return Finish("tool_calls", raw=kind)
        if any(field(part, "type") == "refusal" for part in items(field(item, "content"))):
            return Finish("refusal", raw="refusal")
    return None


def _waits(item: object, kind: object) -> bool:
    if kind == "shell_call":  # OpenAI runs those in a container
        return field(field(item, "environment"), "type") in (None, "local")
    if kind == "tool_search_call":
        return bool(field(item, "execution") == "client")
    return kind in CALLS


RESPONSES: Reader = Reader("Responses status", whole, _ended, _content)
