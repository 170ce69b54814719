from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from stopscan import StopSet
from stopscan.clients._apis import choice_machine_for
from stopscan.clients._blocks import cut_blocks
from stopscan.clients._machine import Options, stopped
from stopscan.clients._objects import get, replace
from stopscan.clients._responses_cut import cut_response
from stopscan.finish import to_anthropic, to_bedrock

R = TypeVar("R")


def truncate_response(response: R, stop: StopSet | str | Iterable[str] | None, /, *, include_stop: bool = False) -> R:
    """Returns the response up to the first stop in the assistant's text, the very object if there is none.

    What comes after the stop goes with it: tool calls, later blocks and output items, logprobs; the reason becomes that
    of a stop. Each choice is cut for itself. The usage stays, for the tokens were generated.

    ``response`` is what an official client, LiteLLM or the API's JSON gives for a request without ``stream``; anything
    else is a ``TypeError``.

    >>> message = {"type": "message", "content": [{"type": "text", "text": "one END two"}], "stop_reason": "end_turn"}
    >>> truncate_response(message, "END")["content"]
    [{'type': 'text', 'text': 'one '}]
    """
    options = Options(StopSet(stop), include_stop=include_stop, whole=True)
    cut: R = _cut(response, options)
    return cut


def _cut(response: Any, options: Options) -> Any:
    if get(response, "type") == "message" and isinstance(get(response, "content"), list):
        return _anthropic(response, options)
    if isinstance(get(response, "output"), list):
        return cut_response(response, options)[0]
    if isinstance(response, dict) and isinstance(get(response.get("output"), "message"), dict):
        return _bedrock(response, options)
    machine = choice_machine_for(response, options)
    if machine is None:
        raise TypeError(f"no response of an API that is known here: {type(response).__name__}")
    return machine.read(response)[0]


def _anthropic(message: Any, options: Options) -> Any:
    blocks, match = cut_blocks(get(message, "content"), options)
    return message if match is None else replace(message, content=blocks, **to_anthropic(stopped(match)))


def _bedrock(response: Any, options: Options) -> Any:
    message = response["output"]["message"]
    blocks, match = cut_blocks(message.get("content") or [], options)
    if match is None:
        return response
    output = replace(response["output"], message=replace(message, content=blocks))
    return replace(response, output=output, **to_bedrock(stopped(match)))
