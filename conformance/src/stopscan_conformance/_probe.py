"""Whether a server has an API and runs the kit's model: it recites the alphabet, without stops."""

from __future__ import annotations

from stopscan_conformance._answer import Answer, ask
from stopscan_conformance._apis import Api, Request
from stopscan_conformance._server import Server
from stopscan_conformance.scripts import SCRIPTS

PROBE = "alphabet"
PROBE_TEXT = "".join(map(str, SCRIPTS[PROBE]))
LOCKED = (401, 403)


async def probe(server: Server, api: Api, /) -> str | None:
    """Why the server does not have `api`, or None if it has. Asks it to recite, without stops, the first time.

    Raises `ConnectionError`, `TimeoutError` or `RuntimeError` if there is nothing to measure.
    """
    if api.name not in server.probed:
        server.probed[api.name] = await _probe(server, api)
    return server.probed[api.name]


async def trouble(server: Server, api: Api, /) -> str | None:
    """Why there is nothing to measure any more, or None; in the first case the next `probe` raises it."""
    known = server.probed.pop(api.name, None)
    try:
        await _probe(server, api)
    except (ConnectionError, TimeoutError, RuntimeError) as error:
        return f"afterwards {error}"
    server.probed[api.name] = known
    return None


async def _probe(server: Server, api: Api) -> str | None:
    prompt = f"[harmony-{PROBE}]" if api.harmony else f"[{PROBE}]"
    answer = await ask(server, api, Request(prompt))
    server.alias = answer.head.get("model", server.alias)
    if answer.refused:
        await _know_the_model(server, api, prompt, answer)
        return answer.error
    if answer.timed_out:
        raise TimeoutError(
            f"{server.url} is slow: {api.name} did not recite {len(SCRIPTS[PROBE])} tokens in {server.timeout:g} s"
        )
    if answer.wire.status is None:
        raise ConnectionError(f"{server.url} is down: {api.name}: {answer.error}")
    if answer.wire.status in LOCKED:
        raise RuntimeError(f"{server.url} wants another API key: {api.name}: {answer.error}")
    if api.harmony and PROBE_TEXT in answer.text != PROBE_TEXT:
        return f"the model's channels are not told apart: {answer.text!r}"
    # A right model can be served wrongly; that is for the cases to say.
    if answer.wire.status == 200 and PROBE_TEXT[:3] not in answer.text + answer.wire.text:
        raise RuntimeError(
            f"{server.url} serves another model than the kit's (stopscan-conformance reciter): "
            f"asked for {PROBE_TEXT!r}, {api.name} answered {answer.text or answer.wire.text[:200]!r}"
        )
    return None


async def _know_the_model(server: Server, api: Api, prompt: str, answer: Answer) -> None:
    """Raises `RuntimeError` if it is the name of the model that was refused, and not the route."""
    if server.named is None or not server.models or server.named in server.models:
        return
    other = Server(server.url, model=server.models[0], api_key=server.api_key, timeout=server.timeout)
    if not (await ask(other, api, Request(prompt))).refused:
        raise RuntimeError(
            f"{server.url} has no model {server.named!r}: {answer.error}; it has {', '.join(server.models)}"
        )
