from __future__ import annotations

from functools import cached_property
from typing import Any

import httpx

from stopscan_conformance._answer import Answer, ask
from stopscan_conformance._apis import Api, Request
from stopscan_conformance.scripts import SCRIPTS

PROBE = "alphabet"
PROBE_TEXT = "".join(map(str, SCRIPTS[PROBE]))
LOCKED = (401, 403)


class Server:
    """A server at `url` (without `/v1`), seen through the official clients. `model` is by default the first that
    `/v1/models` lists, `api_key` goes with each request, and an answer may take `timeout` seconds.

    >>> cases("anthropic")[0].run(Server("http://127.0.0.1:8000")).outcome
    'pass'
    """

    def __init__(
        self, url: str, /, *, model: str | None = None, api_key: str | None = None, timeout: float = 30.0
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.timeout = timeout
        self.api_key = api_key
        self._model = model
        self._alias: Any = None  # by which answers call the model
        self._probed: dict[str, str | None] = {}

    @property
    def model(self) -> str:
        # Without a list: mlx_lm.server's word for the model it was started with.
        return self._model or next(iter(self.models), "default_model")

    @cached_property
    def models(self) -> list[str]:
        """The names that `/v1/models` lists; none if there is no such route, or a broken one."""
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        try:
            listed: Any = httpx.get(f"{self.url}/v1/models", headers=headers, timeout=self.timeout).json()
            return [str(model["id"]) for model in listed["data"]]
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
            return []

    def has(self, model: Any) -> bool:
        """Whether an answer may say that it is of `model`."""
        known = (None, self.model, self._alias)
        return model in known or str(model).startswith(f"{self.model}:") or model in self.models

    async def probe(self, api: Api, /) -> str | None:
        """Why the server does not have `api`, or None if it has. Asks it to recite, without stops, the first time.

        Raises `ConnectionError`, `TimeoutError` or `RuntimeError` if there is nothing to measure.
        """
        if api.name not in self._probed:
            self._probed[api.name] = await self._probe(api)
        return self._probed[api.name]

    async def trouble(self, api: Api, /) -> str | None:
        """Why there is nothing to measure any more, or None; in the first case the next `probe` raises it."""
        known = self._probed.pop(api.name, None)
        try:
            await self._probe(api)
        except (ConnectionError, TimeoutError, RuntimeError) as error:
            return f"afterwards {error}"
        self._probed[api.name] = known
        return None

    async def _probe(self, api: Api) -> str | None:
        prompt = f"[harmony-{PROBE}]" if api.harmony else f"[{PROBE}]"
        answer = await ask(self, api, Request(prompt))
        self._alias = answer.head.get("model", self._alias)
        if answer.refused:
            await self._know_the_model(api, prompt, answer)
            return answer.error
        if answer.timed_out:
            raise TimeoutError(
                f"{self.url} is slow: {api.name} did not recite {len(SCRIPTS[PROBE])} tokens in {self.timeout:g} s"
            )
        if answer.wire.status is None:
            raise ConnectionError(f"{self.url} is down: {api.name}: {answer.error}")
        if answer.wire.status in LOCKED:
            raise RuntimeError(f"{self.url} wants another API key: {api.name}: {answer.error}")
        if api.harmony and PROBE_TEXT in answer.text != PROBE_TEXT:
            return f"the model's channels are not told apart: {answer.text!r}"
        # A right model can be served wrongly; that is for the cases to say.
        if answer.wire.status == 200 and PROBE_TEXT[:3] not in answer.text + answer.wire.text:
            raise RuntimeError(
                f"{self.url} serves another model than the kit's (stopscan-conformance reciter): "
                f"asked for {PROBE_TEXT!r}, {api.name} answered {answer.text or answer.wire.text[:200]!r}"
            )
        return None

    async def _know_the_model(self, api: Api, prompt: str, answer: Answer) -> None:
        """Raises `RuntimeError` if it is the name of the model that was refused, and not the route."""
        if self._model is None or not self.models or self._model in self.models:
            return
        other = Server(self.url, model=self.models[0], api_key=self.api_key, timeout=self.timeout)
        if not (await ask(other, api, Request(prompt))).refused:
            raise RuntimeError(
                f"{self.url} has no model {self._model!r}: {answer.error}; it has {', '.join(self.models)}"
            )
