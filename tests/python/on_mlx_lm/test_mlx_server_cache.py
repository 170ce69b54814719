"""The prompt cache of mlx_lm.server. Agents send their last prompt again, followed by the answer and the stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import Server, serving
from mlx_lm.models.cache import KVCache, LRUPromptCache

from stopscan.mlx_lm import server
from stopscan_conformance.reciter import Reciter

ENGINES: dict[str, dict[str, Any]] = {"batched": {}, "seeded": {"seed": 1}}


def completion(running: Server, prompt: str, **body: Any) -> tuple[str, int]:
    got = running.ask(prompt, chat=False, **body)
    return got.text, got.tokens


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_prompt_that_the_cache_has_whole_is_answered(tmp_path: Path, engine: str, stream: bool) -> None:
    """The second prompt has the tokens of the first prompt, its answer and the stop. Before a fix, such a prompt ended
    the generation thread, so mlx_lm.server never answered again."""
    # Each character of the script is a token of its own, so a character that occurs twice has two ids. The tokenizer
    # encodes such a character into the id of its first occurrence. The script begins with "It's 5END", in which no
    # character occurs twice. So this part of the second prompt is encoded into the ids that the model generated.
    reciter = Reciter({"chat": list("It's 5END and 6END.")})
    with serving(server.main, "--model", reciter.write(tmp_path)) as running:
        options = {"stop": ["END"], "stream": stream, **ENGINES[engine]}
        assert completion(running, "[chat]", **options) == ("It's 5", 9)
        for _ in range(2):
            assert completion(running, "[chat]It's 5END", **options) == (" and 6", 9)


@pytest.mark.parametrize("trimmable", [True, False])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_token_is_left_to_compute(trimmable: bool, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KVCache, "is_trimmable", lambda _: trimmable)
    caches, tokens = LRUPromptCache(), [*range(length)]
    caches.insert_cache("model", tokens, [KVCache()])
    fetched: list[Any] = []

    def fetch(*key: Any) -> Any:
        fetched.append(caches.fetch_nearest_cache(*key))
        return fetched[-1]

    cache, rest = server._nearest(fetch, "model", tokens)
    assert 1 <= len(rest) <= length
    assert tokens[length - len(rest) :] == rest
    assert (cache is not None) == (trimmable and length > 1)
    # mlx-lm's own cache has the whole prompt, so it leaves no token to compute. With this result, mlx-lm's generation
    # thread would end.
    assert fetched[0][1] == []
    assert server._nearest(caches.fetch_nearest_cache, "other", tokens) == (None, tokens)
    assert server._nearest(caches.fetch_nearest_cache, "other", []) == (None, [])
