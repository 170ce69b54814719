from __future__ import annotations

from collections.abc import Iterator

from stopscan.finish._finish import Finish
from stopscan.finish._read import field, finish, items, spoken, unfinished

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


def from_responses(payload: object, /) -> Finish | None:
    """Returns the finish of a response or of the event that ends its stream. A completed response that holds a refusal
    is a "refusal", and one with calls for the caller to run is "tool_calls"; the status does not tell. `raw` is the
    word that decided: the status, the reason why it is incomplete, or the type of the item.

    >>> from_responses({"type": "response.completed", "response": {"status": "completed"}})
    Finish(reason='eos', matched_stop=None, offset=None, raw='completed')
    """
    event = field(payload, "type")
    if isinstance(event, str) and event.endswith(".delta"):
        return None  # nearly all events of a stream
    if event == "error":
        return Finish("abort")
    # Events have statuses of their own: `response.reasoning_summary_part.done` can be "incomplete" in mid-stream.
    response = payload if event is None else field(payload, "response")
    status = spoken(field(response, "status"))
    if status is None and event in ENDS:
        status = event.removeprefix("response.")
    if status is None or status in GOING_ON:
        return unfinished("Responses status", payload)
    if status == "incomplete":
        return finish(spoken(field(field(response, "incomplete_details"), "reason")) or status)
    if status == "completed":
        return next(_waiting(response), finish(status))
    return finish(status)


def _waiting(response: object) -> Iterator[Finish]:
    """What of a completed response waits for the caller."""
    for item in items(field(response, "output")):
        kind = field(item, "type")
        if _is_call(item, kind):
            yield Finish("tool_calls", raw=kind)
        elif any(field(part, "type") == "refusal" for part in items(field(item, "content"))):
            yield Finish("refusal", raw="refusal")


def _is_call(item: object, kind: object) -> bool:
    if kind == "shell_call":  # OpenAI runs those in a container
        return field(field(item, "environment"), "type") in (None, "local")
    if kind == "tool_search_call":
        return bool(field(item, "execution") == "client")
    return kind in CALLS
