from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from stopscan import StopSet
from stopscan_clients._machines.apis import answer_machine_of, has_no_text
from stopscan_clients._machines.machine import Options
from stopscan_clients._objects.events import Objects, json_of, recut

R = TypeVar("R")


def truncate_response(response: R, stop: StopSet | str | Iterable[str] | None, /, *, include_stop: bool = False) -> R:
    """Returns the response up to the first stop in the assistant's text, or the same object if no stop fires.

    The parts after the stop are cut, too: tool calls, later blocks and output items, logprobs. The reason becomes the
    reason of a stop. Each choice is cut for itself. The usage stays, because the tokens were generated.

    ``response`` is the object that an official client or LiteLLM returns for a request without ``stream``, or the API's
    JSON. Any other object is a ``TypeError``.

    >>> message = {"type": "message", "content": [{"type": "text", "text": "one END two"}], "stop_reason": "end_turn"}
    >>> truncate_response(message, "END")["content"]
    [{'type': 'text', 'text': 'one '}]
    """
    options = Options(StopSet(stop), include_stop=include_stop)
    json = json_of(response)
    machine = answer_machine_of(json)
    if machine is None:
        if isinstance(json, dict) and has_no_text(json):
            return response
        raise TypeError(f"no response of an API that is known here: {type(response).__name__}")
    objects = None if type(response) is dict else Objects(response)
    cut: Any = machine(options, objects).whole(json)
    whole: R = cut if objects is None else recut(response, json, cut)
    return whole
