from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import anthropic
import httpx
import ollama
import openai

from stopscan.conformance._apis import Answer, Request

# What a server answers to a well-formed request that it does not know.
UNSUPPORTED = {400, 404, 405, 415, 422, 501}
DOWN = (OSError, openai.APIConnectionError, anthropic.APIConnectionError, httpx.TransportError)
PROBE = "alphabet"
PROBE_TEXT = "abcdefghijklmnopqrstuvwxyz"


class Server:
    """A server at `url` (without `/v1`), seen through the official clients. `model` is by default the first that
    `/v1/models` lists, and an answer may be silent for `timeout` seconds.

    >>> cases("anthropic")[0].run(Server("http://127.0.0.1:8000"))
    Result(outcome='pass', detail='', wrong=())
    """

    def __init__(self, url: str, /, *, model: str | None = None, timeout: float = 30.0) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.timeout = timeout
        self._model = model
        self._probed: dict[str, str | None] = {}
        options: dict[str, Any] = {"api_key": "none", "timeout": timeout, "max_retries": 0}
        # Any: what the clients take is data here.
        self.openai: Any = openai.OpenAI(base_url=f"{self.url}/v1", **options)
        self.anthropic: Any = anthropic.Anthropic(base_url=self.url, **options)
        self.ollama: Any = ollama.Client(self.url, timeout=timeout)
        self.http = httpx.Client(base_url=self.url, timeout=timeout)

    @cached_property
    def model(self) -> str:
        if self._model is not None:
            return self._model
        try:
            return str(self.openai.models.list().data[0].id)
        except (openai.APIError, IndexError, ValueError, AttributeError, TypeError):
            # No such route, or a broken one. This is mlx_lm.server's word for the model it was started with.
            return "default_model"

    def probe(self, api: str, ask: Callable[[Server, Request], Answer], /, *, again: bool = False) -> str | None:
        """Why the server does not have `api`, or None if it has. Asks it to recite, without stops, the first time.

        Raises `ConnectionError`, `TimeoutError` or `RuntimeError` if there is nothing to measure.
        """
        if again or api not in self._probed:
            self._probed[api] = self._probe(api, ask)
        return self._probed[api]

    def _probe(self, api: str, ask: Callable[[Server, Request], Answer]) -> str | None:
        try:
            text = ask(self, Request(f"[{PROBE}]")).text
        except Exception as error:
            refusal = self.refusal(error)
            if refusal is not None:
                return refusal
            if _is_timeout(error):
                message = f"{self.url} is slow: {api} did not recite {len(PROBE_TEXT)} tokens in {self.timeout:g} s"
                raise TimeoutError(message) from error
            if isinstance(error, DOWN):
                raise ConnectionError(f"{self.url} is down: {api}: {self.describe(error)}") from error
            raise RuntimeError(f"{self.url} cannot recite: {api}: {self.describe(error)}") from error
        if text != PROBE_TEXT:
            raise RuntimeError(
                f"{self.url} serves another model than the reciting checkpoint: "
                f"asked for {PROBE_TEXT!r}, {api} answered {text!r}"
            )
        return None

    def refusal(self, error: Exception, /) -> str | None:
        """What the server said if it does not know what it was asked, else None."""
        return self.describe(error) if _status(error) in UNSUPPORTED else None

    def describe(self, error: Exception, /) -> str:
        """The error in one line."""
        if _is_timeout(error):
            return f"no answer in {self.timeout:g} s"
        response = getattr(error, "response", None)
        text = str(error) if response is None else response.text
        status = _status(error)
        cause = error.__cause__ if status is None else None
        parts = [str(status) if status else type(error).__name__, " ".join(text.split())[:200], str(cause or "")]
        return ": ".join(part for part in parts if part)


def _status(error: Exception) -> int | None:
    status = getattr(getattr(error, "response", error), "status_code", None)
    return status if isinstance(status, int) and status > 0 else None  # ollama's is -1 in the midst of a stream


def _is_timeout(error: Exception) -> bool:
    # The clients are built on different HTTP libraries, each with a class of its own.
    return "Timeout" in type(error).__name__
