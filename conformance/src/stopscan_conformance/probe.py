"""Finds out what a server can do through an API, before the cases of this API are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stopscan_conformance.apis import Api, Request
from stopscan_conformance.client import Answer, Server, ask
from stopscan_conformance.reciter import default_checkpoint
from stopscan_conformance.scripts import SCRIPTS, THINKING

PROBE = "alphabet"
PROBE_TEXT = "".join(map(str, SCRIPTS[PROBE]))
LOCKED = (401, 403)


@dataclass(frozen=True)
class Can:
    """What a server can do through one API. If it cannot do something, the rules about that are not judged."""

    name_stops: bool = True
    stop_at_ids: bool = True
    tell_reasoning: bool = True
    count_prompt: bool = True
    missing: str | None = None  # why the server does not have the API

    def lines(self) -> list[str]:
        lines = {
            "does not name its stops": self.name_stops,
            "has no stop_token_ids": self.stop_at_ids,
            "does not separate reasoning": self.tell_reasoning,
            "counts no prompt tokens": self.count_prompt,
        }
        return [f"{self.missing}"] if self.missing else [f"{line}: not judged" for line, ok in lines.items() if not ok]


async def probe(server: Server, api: Api, /) -> Can:
    """Returns what the server can do through `api`. The first call sends requests to find that out.

    Raises `ConnectionError`, `TimeoutError` or `RuntimeError` if the server cannot be tested, for example because it is
    down.
    """
    if api.name not in server.probed:
        server.probed[api.name] = await _probe(server, api)
    can: Can = server.probed[api.name]
    return can


async def trouble(server: Server, api: Api, /) -> str | None:
    """Returns why the server can no longer be tested, or None if it can be tested. If there is a reason, the next call
    of `probe` sends its requests again."""
    try:
        await _recites(server, api)
    except (ConnectionError, TimeoutError, RuntimeError) as error:
        server.probed.pop(api.name, None)
        return f"afterwards {error}"
    return None


async def _probe(server: Server, api: Api) -> Can:
    missing, recital = await _recites(server, api)
    if missing is not None:
        return Can(missing=missing)
    return Can(
        name_stops=api.names != "usual" or await _names(server, api),
        stop_at_ids=not api.stops or await _stops_at_ids(server, api),
        tell_reasoning=api.raw or await _tells_reasoning(server, api),
        count_prompt=bool(recital.head.get("prompt")),
    )


async def _both_ways(server: Server, api: Api, prompt: str, stops: Mapping[str, Any]) -> list[Answer]:
    """Sends the request twice, and returns a whole answer and a stream."""
    return [await ask(server, api, Request(prompt, stream, stops)) for stream in (False, True)]


async def _names(server: Server, api: Api) -> bool:
    answers = await _both_ways(server, api, "[split]", {"stop": ["END"]})
    return any(answer.end is not None and answer.end[1] is not None for answer in answers)


async def _stops_at_ids(server: Server, api: Api) -> bool:
    """Returns whether an answer ends at an id of `stop_token_ids`. Some servers refuse or ignore the field."""
    ids, whole = default_checkpoint().token_ids("count"), default_checkpoint().text("count")
    answers = await _both_ways(server, api, "[count]", {"stop_token_ids": [ids[8]]})
    return any(not answer.refused and answer.error is None and answer.text != whole for answer in answers)


async def _tells_reasoning(server: Server, api: Api) -> bool:
    answer = await ask(server, api, Request("[think]"))
    return answer.error is not None or not any(marker in answer.text for marker in THINKING)


async def _recites(server: Server, api: Api) -> tuple[str | None, Answer]:
    """Asks the model to recite the alphabet. Returns a pair: the reason why the server does not have the API (None if
    it has the API), and the answer."""
    prompt = f"[{PROBE}]"
    answer = await ask(server, api, Request(prompt))
    server.alias = answer.head.get("model", server.alias)
    if answer.refused:
        await _know_the_model(server, api, prompt, answer)
        return answer.error, answer
    if answer.timed_out:
        raise TimeoutError(
            f"{server.url} is slow: {api.name} did not recite {len(SCRIPTS[PROBE])} tokens in {server.timeout:g} s"
        )
    if answer.wire.status is None:
        raise ConnectionError(f"{server.url} is down: {api.name}: {answer.error}")
    if answer.wire.status in LOCKED:
        raise RuntimeError(f"{server.url} refuses the API key: {api.name}: {answer.error}")
    # If the answer has the first 3 characters of the alphabet, the server runs the kit's model. The cases compare whole
    # texts, so the rest is not compared here.
    if answer.wire.status == 200 and PROBE_TEXT[:3] not in answer.text + answer.wire.text:
        raise RuntimeError(
            f"{server.url} serves another model than the kit's (stopscan-conformance reciter): "
            f"asked for {PROBE_TEXT!r}, {api.name} answered {answer.text or answer.wire.text[:200]!r}"
        )
    return None, answer


async def _know_the_model(server: Server, api: Api, prompt: str, answer: Answer) -> None:
    """Call this when the server has refused a request. Raises `RuntimeError` if the model's name was the reason: the
    server accepts the same request with another name."""
    if server.named is None or not server.models or server.named in server.models:
        return
    other = Server(server.url, model=server.models[0], api_key=server.api_key, timeout=server.timeout)
    if not (await ask(other, api, Request(prompt))).refused:
        raise RuntimeError(
            f"{server.url} has no model {server.named!r}: {answer.error}; it has {', '.join(server.models)}"
        )
