"""Simulates changes of mlx-lm. After each change, stopscan must refuse to start or still give correct answers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import NEW, serving
from mlx_lm import server
from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan.mlx_lm import stream_generate
from stopscan_conformance.reciter import Reciter

if not NEW:
    pytest.skip("the server needs mlx-lm 0.32", allow_module_level=True)

from stopscan.mlx_lm import batch_generate
from stopscan.mlx_lm import server as ours

generate: Any = sys.modules["mlx_lm.generate"]
Patch = Callable[[pytest.MonkeyPatch], None]


def gone(owner: Any, name: str) -> Patch:
    return lambda patch: patch.delattr(owner, name)


def renamed(owner: Any, name: str) -> Patch:
    def change(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, name + "_v2", getattr(owner, name), raising=False)
        patch.delattr(owner, name)

    return change


def one_more_argument(owner: Any, name: str) -> Patch:
    method = getattr(owner, name)

    def change(patch: pytest.MonkeyPatch) -> None:
        parameters = f"{', '.join(method.__code__.co_varnames[: method.__code__.co_argcount])}, another"
        scope: dict[str, Any] = {"method": method}
        exec(f"def changed({parameters}, **options): return method({parameters.rpartition(',')[0]})", scope)
        patch.setattr(owner, name, scope["changed"])

    return change


def asynchronous(owner: Any, name: str) -> Patch:
    async def changed(*args: Any, **options: Any) -> Any: ...

    return lambda patch: patch.setattr(owner, name, changed)


def another_result(owner: Any, name: str, make: Callable[[Any], Any]) -> Patch:
    """Replaces the method ``owner.name`` by one with the same parameters, which returns ``make(result)``. ``result`` is
    what the old method returns."""
    method = getattr(owner, name)

    def change(patch: pytest.MonkeyPatch) -> None:
        count = method.__code__.co_argcount
        parameters = ", ".join(method.__code__.co_varnames[:count])
        scope: dict[str, Any] = {"method": method, "make": make}
        exec(f"def changed({parameters}=None): return make(method({parameters}))", scope)
        patch.setattr(owner, name, scope["changed"])

    return change


def other_reference(owner: Any, name: str, held: Any) -> Patch:
    """Imitates an mlx-lm in which ``owner.name`` has a reference to the function ``held``. So ``owner.name`` calls
    the original function even after stopscan has replaced ``held`` in its module."""

    def changed(host: str, port: int, model_provider: Any) -> None:
        taken(host, port, model_provider)

    taken = held
    return lambda patch: patch.setattr(owner, name, changed)


def endless(*args: Any, **options: Any) -> Any:
    """Runs mlx-lm's loop, but gives the server the id 0 for each token, instead of the id that the model wrote."""
    return (replace(response, token=0) for response in generate.stream_generate(*args, **options))


class Tuple(NamedTuple):
    text: str
    token: int
    logprob: float
    finish_reason: str | None
    top_tokens: Any


def slots(patch: pytest.MonkeyPatch) -> None:
    old = generate.GenerationResponse
    fields = [
        (field.name, field.type, field) if field.default is not field.default_factory else (field.name, field.type)
        for field in old.__dataclass_fields__.values()
    ]
    patch.setattr(generate, "GenerationResponse", make_dataclass("GenerationResponse", fields, slots=True, frozen=True))


def without_inner(patch: pytest.MonkeyPatch) -> None:
    """Hides ``_tokenizer`` from stopscan, as if ``TokenizerWrapper`` had its tokenizer under another name."""

    def get(wrapper: Any) -> Any:
        if sys._getframe(1).f_globals["__name__"].startswith("stopscan."):
            raise AttributeError("_tokenizer")
        return wrapper.__dict__["_tokenizer"]

    attribute = property(get, lambda wrapper, value: wrapper.__dict__.update(_tokenizer=value))
    patch.setattr(TokenizerWrapper, "_tokenizer", attribute, raising=False)


GENERATOR, HANDLER = server.ResponseGenerator, server.APIHandler
CHANGES: dict[str, Patch] = {
    "matcher gone": gone(generate.StopSequences, "matcher"),
    "next_generated renamed": renamed(generate.BatchGenerator, "next_generated"),
    "insert async": asynchronous(generate.BatchGenerator, "insert"),
    "next async": asynchronous(generate.GenerationBatch, "next"),
    "next with an argument": one_more_argument(generate.GenerationBatch, "next"),
    "_tokenize renamed": renamed(GENERATOR, "_tokenize"),
    "_tokenize with an argument": one_more_argument(GENERATOR, "_tokenize"),
    "_tokenize async": asynchronous(GENERATOR, "_tokenize"),
    "_tokenize returns a dict": another_result(GENERATOR, "_tokenize", lambda parts: dict(enumerate(parts))),
    "_make_state_machine gone": gone(GENERATOR, "_make_state_machine"),
    "_make_state_machine with an argument": one_more_argument(GENERATOR, "_make_state_machine"),
    "_make_state_machine returns one": another_result(GENERATOR, "_make_state_machine", lambda pair: pair[0]),
    "_serve_single renamed": renamed(GENERATOR, "_serve_single"),
    "a row that mlx-lm serves alone is not asked": lambda patch: patch.setattr(server, "stream_generate", endless),
    "generate returns one": another_result(GENERATOR, "generate", lambda pair: pair[1]),
    "generate with an argument": one_more_argument(GENERATOR, "generate"),
    "generate async": asynchronous(GENERATOR, "generate"),
    "__init__ with an argument": one_more_argument(GENERATOR, "__init__"),
    "handle_completion renamed": renamed(HANDLER, "handle_completion"),
    "handle_completion with an argument": one_more_argument(HANDLER, "handle_completion"),
    "handle_completion async": asynchronous(HANDLER, "handle_completion"),
    "generate_response gone": gone(HANDLER, "generate_response"),
    "generate_response async": asynchronous(HANDLER, "generate_response"),
    "completion_usage_response renamed": renamed(HANDLER, "completion_usage_response"),
    "Response is a NamedTuple": lambda patch: patch.setattr(server, "Response", Tuple),
    "the cache's fetch renamed": renamed(server.LRUPromptCache, "fetch_nearest_cache"),
    "the cache's fetch with an argument": one_more_argument(server.LRUPromptCache, "fetch_nearest_cache"),
    "run took the server before": other_reference(server, "run", server.run),
    "_run_http_server gone": gone(server, "_run_http_server"),
    "GenerationResponse with slots": slots,
    "no TokenizerWrapper._tokenizer": without_inner,
}
ANSWERED = {"GenerationResponse with slots", "no TokenizerWrapper._tokenizer"}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_mlx_lm_is_refused_or_right(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reciter = Reciter()
    checkpoint = reciter.write(tmp_path)
    refused = None
    with monkeypatch.context() as patch:
        CHANGES[change](patch)
        try:
            module = importlib.reload(ours)
            with serving(module.main, "--model", checkpoint) as running:
                for chat in (True, False):
                    for stream in (True, False):
                        got = running.ask(reciter.prompt("split"), chat=chat, stream=stream, stop=["END"])
                        assert (got.text, got.matched_stop) == ("This is the ", "END")
        except ImportError as error:
            refused = str(error)
    importlib.reload(ours)
    assert (refused is None) == (change in ANSWERED), refused
    if refused is not None:
        assert "mlx-lm" in refused


@pytest.mark.parametrize("change", ["GenerationResponse with slots", "no TokenizerWrapper._tokenizer"])
def test_a_change_of_the_loop_is_right(
    change: str, mlx: tuple[Any, Any], reciter: Reciter, monkeypatch: pytest.MonkeyPatch
) -> None:
    CHANGES[change](monkeypatch)
    *_, last = stream_generate(*mlx, reciter.prompt("split"), stop="END")
    assert (last.match.sequence, last.tokens_kept) == ("END", 4)
    prompt = mlx[1].encode(reciter.prompt("split"))
    assert batch_generate(*mlx, [prompt], stop="END").texts == ["This is the "]


def test_changed_loop_response_is_refused(mlx: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "GenerationResponse", Tuple)
    with pytest.raises(ImportError, match=r"stream_generate needs mlx-lm 0.29.0 or later.*__dataclass_fields__"):
        stream_generate(*mlx, "x", stop="END")
