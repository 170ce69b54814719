"""Whatever a client sends, the server keeps running, and other answers stay the same. No request counts as a failure
of stopscan, because a few failures would switch stopscan off."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from traceback import extract_tb
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import NEW, joined
from mlx_lm import server
from wrong_values import OPTIONS, pairs, singles

if not NEW:
    pytest.skip("the server needs mlx-lm 0.32", allow_module_level=True)

from stopscan.engines import Failures
from stopscan.mlx_lm import server as ours
from stopscan.mlx_lm._selftest import Host

OWN = [*OPTIONS, "stop", "stop_sequences", "stop_token_ids", "min_tokens", "include_stop"]
# The fields that mlx-lm reads.
MLX = [
    "stream", "stream_options", "model", "draft_model", "num_draft_tokens", "adapters", "max_completion_tokens",
    "max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "repetition_context_size",
    "presence_penalty", "presence_context_size", "frequency_penalty", "frequency_context_size", "xtc_probability",
    "xtc_threshold", "logit_bias", "logprobs", "top_logprobs", "seed", "chat_template_kwargs", "messages", "prompt",
    "tools", "role_mapping",
]  # fmt: skip


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> Failures:
    count = Failures(logging.Logger("door", 99))
    monkeypatch.setattr(ours, "failures", count)
    monkeypatch.setattr(logging.getLogger(), "disabled", True)
    return count


@contextmanager
def hosting(*classes: Any) -> Iterator[Host]:
    with Host(*classes) as host:
        yield host
    joined(host.generator)


def is_ours(error: BaseException) -> bool:
    return "python/stopscan" in extract_tb(error.__traceback__)[-1].filename


def ends(body: dict[str, Any], chat: bool, *classes: Any) -> bool:
    """Whether a request ends the thread that makes all answers."""
    with hosting(*classes) as host:
        with suppress(Exception):
            host.ask(body, chat=chat)
        return not host.generator.generation_available()


@pytest.mark.parametrize("prompt", [["x"], [""], [["<", ">"]], 5, None], ids=str)
def test_a_prompt_that_is_no_text_is_a_400(prompt: Any, failures: Failures) -> None:
    """A prompt that is a list of strings must get a 400. Before a fix, it counted as a failure of stopscan: three such
    requests switched stopscan off for all clients."""
    with hosting(ours._ResponseGenerator, ours._Handler) as host:
        status, reply = host.ask({"prompt": prompt, "stop": ["END"]}, chat=False)
    assert (status, failures.count) == (400, 0)
    assert json.loads(reply)["error"]["message"] == "prompt must be a string"


def test_wrong_values_change_no_other_request(failures: Failures) -> None:
    requests = enumerate([*singles([*OWN, *MLX]), *list(pairs(OWN))[::3]])
    counted, escaped, changed, ended = [], [], [], []
    request = next(requests, None)
    while request is not None:
        with hosting(ours._ResponseGenerator, ours._Handler) as host, ThreadPoolExecutor(1) as pool:
            while request is not None and host.generator.generation_available():
                number, values = request
                chat, before = bool(number % 3), failures.count
                body = {**host.body(chat, stop=["END"], stream=not number % 4), **values}
                beside = pool.submit(host.ask, host.body(True, stop=["END"]))
                try:
                    host.ask(body, chat=chat)
                except Exception as error:
                    escaped.extend([(values, error)] * is_ours(error))
                counted.extend([values] * (failures.count > before))
                if not host.generator.generation_available():
                    ended.append((body, chat))
                elif '"content": "a b"' not in (reply := beside.result()[1]):
                    changed.append((values, reply))
                request = next(requests, None)
    assert (counted, escaped, changed, failures.off) == ([], [], [], False)
    # Some requests, such as one with the temperature 2**63, end the thread that makes all answers. Each of them must
    # also end this thread in mlx-lm without stopscan, which shows that the fault is in mlx-lm.
    assert all(ends(*each, server.ResponseGenerator, server.APIHandler) for each in ended)
