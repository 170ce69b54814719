from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import httpx


class Server:
    """A server at `url` (without `/v1`), as the official clients see the server.

    `model` is by default the first model that `/v1/models` lists. `api_key` goes with each request. An answer may take
    `timeout` seconds.

    >>> cases("anthropic")[0].run(Server("http://127.0.0.1:8000")).outcome
    'pass'
    """

    def __init__(
        self, url: str, /, *, model: str | None = None, api_key: str | None = None, timeout: float = 30.0
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.timeout = timeout
        self.api_key = api_key
        self.named = model
        self.alias: Any = None  # by which answers call the model
        self.probed: dict[str, str | None] = {}  # what `_probe` found, by API

    def patient(self, times: int, /) -> Server:
        """Returns the same server, whose answers may take so many times as long: it has so many requests at once."""
        other = copy(self)
        other.timeout *= times
        return other

    @property
    def model(self) -> str:
        # Without a list: mlx_lm.server's word for the model it was started with.
        return self.named or next(iter(self.models), "default_model")

    @cached_property
    def models(self) -> list[str]:
        """Returns the names that `/v1/models` lists, or no names if the route is missing or broken."""
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        try:
            listed: Any = httpx.get(f"{self.url}/v1/models", headers=headers, timeout=self.timeout).json()
            return [str(model["id"]) for model in listed["data"]]
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
            return []

    def has(self, model: Any) -> bool:
        """Returns whether an answer may say that the answer is of `model`."""
        known = (None, self.model, self.alias)
        return model in known or str(model).startswith(f"{self.model}:") or model in self.models
