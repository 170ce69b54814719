"""Tests whether stopscan works with the server of the installed mlx-lm. Sends requests through the server's classes.

Needs neither a real model nor a port: a stand-in for the model generates fixed tokens, and a pair of sockets carries
the requests.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from itertools import pairwise
from socket import socketpair
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import mlx.core as mx
import mlx_lm
from mlx_lm import server
from mlx_lm.models.cache import KVCache
from mlx_lm.tokenizer_utils import TokenizerWrapper
from transformers import PreTrainedTokenizerFast

from stopscan.engines import Defaults, Failures
from stopscan.engines.selftest import Tokenizer

PROMPT = "go"
# All tokens are different, because the model chooses the next token only by the token before it.
ANSWER = ["a", "<think>", "E", "ND", "</think>", " b", "EN", "D", " x"]
STREAM = {"stream": True, "stream_options": {"include_usage": True}}


def require_server(generator: Any, handler: Any, failures: Failures) -> None:
    """Tests mlx-lm's server with stopscan's classes ``generator`` and ``handler``. Raises ``ImportError`` if an answer
    is wrong, or if a method of these classes fails."""
    # If several machines run one model, each of them runs the test by itself, as if it were the only machine.
    alone = SimpleNamespace(size=lambda: 1, rank=lambda: 0)
    try:
        with (
            patch.object(mx.distributed, "init", lambda *args, **options: alone),
            # Give the log a handler during the test. Without one, the first message would configure the log, but
            # mlx-lm's command has to do that later.
            patch.object(logging.root, "handlers", [logging.lastResort]),
            Host(generator, handler) as host,
        ):
            problem = _problem(host)
    except Exception as error:
        problem = repr(error)
    if problem or failures.count:
        raise ImportError(
            f"stopscan.mlx_lm.server does not fit mlx-lm {mlx_lm.__version__} (tested to 0.32.2): "
            f"{problem or f'{failures.count} failures'}"
        )


def _problem(host: Host) -> str | None:
    """Returns a text about the first wrong answer, or ``None`` if all answers are right."""
    for chat, options in ((True, {}), (True, STREAM), (True, {"seed": 1}), (False, {}), (False, STREAM)):
        status, reply = host.ask(host.body(chat, stop=["END"], **options), chat=chat)
        expected = ("END", "a b", "END", 8, 2) if chat else ("", "a", "END", 4, None)
        if status != 200 or _parts(reply) != expected:
            return f"the answer to a {'chat' if chat else 'completion'} with {options} is {status} {reply}"
    return None


class Host:
    """mlx-lm's server with stopscan's classes and a model that recites ``ANSWER``."""

    def __init__(self, generator: Any, handler: Any) -> None:
        made = Tokenizer([*ANSWER, *PROMPT], ["<|eos|>"])
        fast = PreTrainedTokenizerFast(tokenizer_object=made.backend, eos_token="<|eos|>")
        fast.chat_template = "{{ messages[-1].content }}"
        tokens = [*made.ids(PROMPT)[-1:], *made.ids(ANSWER), *made.ids(["<|eos|>"])]
        self.tokenizer: Any = TokenizerWrapper(fast)
        provider = SimpleNamespace(
            cli_args=_Arguments(),
            model=_Model(tokens, len(fast)),
            tokenizer=self.tokenizer,
            processor=None,
            draft_model=None,
            is_batchable=True,
            model_key="self-test",
            load_default=lambda: None,
            reset=lambda: None,
        )
        provider.load = lambda *args: (provider.model, provider.tokenizer)
        self.generator: Any = _with_ended_streams(generator)(provider, server.LRUPromptCache(9))
        self._handler = type("Handler", (handler,), {"defaults": Defaults(), "log_message": lambda *args: None})

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *args: object) -> None:
        self.generator.stop_and_join()

    @staticmethod
    def body(chat: bool, **options: Any) -> dict[str, Any]:
        return {**({"messages": [{"role": "user", "content": PROMPT}]} if chat else {"prompt": PROMPT}), **options}

    def ask(self, body: Any, *, chat: bool = True) -> tuple[int, str]:
        """Sends the request ``body`` to the server. Returns the status and the body of the answer."""
        data, client, connection = json.dumps(body).encode(), *socketpair()
        with client:
            with connection:
                path = f"/v1/{'chat/' * chat}completions"
                client.sendall(f"POST {path} HTTP/1.0\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
                self._handler(self.generator, connection, ("", 0), None, system_fingerprint="self-test")
            head, _, reply = client.makefile("rb").read().partition(b"\r\n\r\n")
        return int(head.split()[1]), reply.decode()


def _with_ended_streams(generator: Any) -> Any:
    """Returns a class like ``generator`` whose thread ends its streams of mlx before it ends itself. Otherwise they end
    a little later, and mlx (0.32.0 to 0.32.4) aborts a process that exits meanwhile, such as after a wrong argument."""

    def generate(self: Any) -> None:
        generator._generate(self)
        getattr(mx, "clear_streams", lambda: None)()  # mlx 0.29 has no such function

    return type("Generator", (generator,), {"_generate": generate})


class _Arguments(SimpleNamespace):
    """The arguments of mlx-lm's command. An argument that a new release has added is ``None``."""

    temp, top_p, top_k, min_p, max_tokens, num_draft_tokens = 0.0, 1.0, 0, 0.0, 20, 3
    allowed_origins, chat_template_args = ("*",), dict[str, Any]()
    decode_concurrency, prompt_concurrency, prefill_step_size = 8, 8, 512
    kv_group_size, quantized_kv_start = 64, 0

    def __getattr__(self, name: str) -> None:
        return None


class _Model:
    """A model that recites ``tokens``: after each token it generates the next one."""

    layers = (None,)

    def __init__(self, tokens: Sequence[int], size: int) -> None:
        self._after = [tokens[-1]] * size
        for token_id, following in pairwise(tokens):
            self._after[token_id] = following

    def make_cache(self) -> list[Any]:
        return [KVCache()]

    def __call__(self, inputs: Any, cache: Any = None, **options: Any) -> Any:
        states = mx.zeros((inputs.shape[0], 1, inputs.shape[1], 1))
        cache[0].update_and_fetch(states, states)
        # An array belongs to the thread that makes it. So make it here, in the server's thread.
        return mx.where(mx.array(self._after)[inputs][..., None] == mx.arange(len(self._after)), 0.0, -100.0)


def _parts(reply: str) -> tuple[Any, ...]:
    """Returns five values from the body ``reply`` of an answer: the reasoning, the text, the stop, the count of tokens,
    and the count of reasoning tokens."""
    stream = [line.removeprefix("data: ") for line in reply.splitlines() if line.startswith("data: {")]
    chunks = [json.loads(chunk) for chunk in stream or [reply]]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    messages = [choice.get("message") or choice.get("delta") or {"content": choice.get("text")} for choice in choices]
    reasoning, text = ("".join(each.get(name) or "" for each in messages) for name in ("reasoning", "content"))
    usage = chunks[-1]["usage"]
    details = usage.get("completion_tokens_details", {}).get("reasoning_tokens")
    return reasoning, text, choices[-1].get("matched_stop"), usage["completion_tokens"], details
