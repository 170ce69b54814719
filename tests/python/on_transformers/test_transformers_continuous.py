"""Stops in transformers' continuous batching. Without stopscan, it ends a request only at an EOS id."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

from recital import recite
from transformers import ContinuousBatchingConfig, GenerationConfig
from transformers.generation.continuous_batching import ContinuousBatchingManager
from transformers.generation.continuous_batching.requests import GenerationOutput, RequestState, RequestStatus
from transformers_harness import Engine

from stopscan import StopSet
from stopscan.finish import EndReason, Finish
from stopscan.segments import FORMATS, SegmentSet
from stopscan.transformers import continuous
from stopscan.transformers.continuous import RowScanner, generate_batch
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

# Without these numbers, continuous batching takes nearly all memory for its cache.
CONFIG = {"num_blocks": 64, "block_size": 32, "max_batch_tokens": 128}
ANSWER = "<think>Is it END?</think>It is 5 or 6 "
NAMES = [name for name in SCRIPTS if name != "harmony"]


def prompts(engine: Engine, reciter: Reciter, names: list[str]) -> list[list[int]]:
    return engine.tokenizer([reciter.prompt(name) for name in names]).input_ids


def batch(engine: Engine, reciter: Reciter, names: list[str], stop: Any, **options: Any) -> Any:
    config = ContinuousBatchingConfig(**CONFIG)
    inputs = prompts(engine, reciter, names)
    return generate_batch(engine.model, engine.tokenizer, inputs, stop, continuous_batching_config=config, **options)


def test_every_request_ends_at_its_stop(engine: Engine, reciter: Reciter) -> None:
    stop = ["hello world", "END", "en e", "then", "ab", "!"]
    results = batch(engine, reciter, NAMES, stop, max_new_tokens=100)
    for name, result in zip(NAMES, results, strict=True):
        expected = recite(SCRIPTS[name], stop)
        assert result.text == expected.text
        assert result.finish.matched_stop == expected.matched
        assert result.finish.reason == ("stop_sequence" if expected.matched else "eos")
        # No token is generated after the one that completes the stop.
        assert len(result.output.generated_tokens) == len(expected.texts)


def test_transformers_own_ignores_stops(engine: Engine, reciter: Reciter) -> None:
    config = ContinuousBatchingConfig(**CONFIG)
    generation = GenerationConfig(
        stop_strings=["hello world"], max_new_tokens=50, eos_token_id=engine.tokenizer.eos_token_id
    )
    (by_transformers,) = engine.model.generate_batch(
        prompts(engine, reciter, ["count"]), generation_config=generation, continuous_batching_config=config
    ).values()
    assert by_transformers.generated_tokens == [*reciter.token_ids("count"), reciter.eos_token_id]


def test_options_hold_for_all_requests(engine: Engine, reciter: Reciter) -> None:
    limited = batch(engine, reciter, ["count", "held"], ["hello world", "STOP"], max_new_tokens=6)
    assert [result.text for result in limited] == ["1, 2, 3 hello wor", "Please do not STO"]
    assert [result.finish for result in limited] == [Finish("length")] * 2
    (protected,) = batch(engine, reciter, ["think"], "END", max_new_tokens=50, protect=[THINKING])
    assert protected.text == recite(SCRIPTS["think"], ["END"], protect=[THINKING]).text
    (opened,) = batch(engine, reciter, ["think"], "END", protect=[(reciter.prompt("think"), "</think>")])
    assert opened.text == protected.text
    token_id = reciter.token_id("count", "ld 4")
    (ended,) = batch(engine, reciter, ["count"], (), max_new_tokens=50, stop_token_ids=token_id)
    assert (ended.text, ended.finish) == ("1, 2, 3 hello wor", Finish("stop_token", token_id))
    config = GenerationConfig(num_return_sequences=2, do_sample=True, max_new_tokens=5)
    with pytest.raises(ValueError, match="one answer of one request"):
        batch(engine, reciter, ["count"], "END", generation_config=config)
    with pytest.raises(TypeError, match="SegmentSet"):
        RowScanner(engine.tokenizer, SegmentSet(FORMATS["think"]))


def test_the_eos_is_that_of_the_generations_configuration(engine: Engine, reciter: Reciter) -> None:
    five, six = reciter.token_id("count", "5"), reciter.token_id("count", "6")
    config = GenerationConfig(eos_token_id=[six, five], max_new_tokens=50)
    (result,) = batch(engine, reciter, ["count"], "END", generation_config=config)
    assert (result.text, result.finish) == ("1, 2, 3 hello world 4, ", Finish("eos"))
    (result,) = batch(engine, reciter, ["count"], "END", generation_config=config, eos_token_ids=six)
    assert (result.text, result.finish) == ("1, 2, 3 hello world 4, 5, ", Finish("eos"))


def test_a_generation_that_fails_raises(engine: Engine, reciter: Reciter) -> None:
    def fail(_module: Any, _args: Any) -> None:
        raise MemoryError("no place left")

    hook = engine.model.register_forward_pre_hook(fail)
    try:
        with pytest.raises(RuntimeError, match="no place left"):
            batch(engine, reciter, ["count", "late"], "END", max_new_tokens=50)
    finally:
        hook.remove()


def test_a_manager_that_is_slow_or_ends(engine: Engine, reciter: Reciter, monkeypatch: pytest.MonkeyPatch) -> None:
    get_result, late = ContinuousBatchingManager.get_result, [1]

    def slow(manager: Any, **options: Any) -> Any:
        return get_result(manager, **options) if not late else late.clear()

    monkeypatch.setattr(ContinuousBatchingManager, "get_result", slow)
    assert [result.text for result in batch(engine, reciter, ["split"], "END", max_new_tokens=50)] == ["This is the "]
    monkeypatch.setattr(ContinuousBatchingManager, "get_result", lambda manager, **_: manager.stop(block=True))
    with pytest.raises(RuntimeError, match="ended before all requests"):
        batch(engine, reciter, ["split"], "END", max_new_tokens=50)


@pytest.mark.parametrize(
    ("name", "stop", "options", "text"),
    [
        ("count", "hello world", {"include_stop": True}, "1, 2, 3 hello world"),
        ("count", StopSet(visible=["hello"]), {}, "1, 2, 3 hello"),
        ("split", "END", {"min_tokens": 9}, "This is the END of it"),
        ("harmony", "<|end|>", {"skip_special_tokens": False}, "<|channel|>analysis<|message|>Is it END?"),
        ("think", "END", {"start_protected": False, "protect": [("<thought>", "</think>")]}, "<think>Is it "),
        ("think", "END", {"start_protected": True, "protect": [("<thought>", "</think>")]}, ANSWER),
        ("think", "END", {"protect": [THINKING], "prompt_token_ids": "<think>"}, ANSWER),
        ("think", "END", {"protect": "reasoning"}, ANSWER),
    ],
)
def test_the_options_of_a_row(
    engine: Engine, reciter: Reciter, name: str, stop: Any, options: dict[str, Any], text: str
) -> None:
    tokenizer = copy(engine.tokenizer)
    tokenizer.response_template = {"fields": {"thinking": {"open": "<think>", "close": "</think>"}}}
    if "prompt_token_ids" in options:
        options = options | {"prompt_token_ids": tokenizer(options["prompt_token_ids"]).input_ids}
    row = RowScanner(tokenizer, stop, **options)
    assert [*row] == [reciter.eos_token_id]
    ids = [*reciter.token_ids(name), reciter.eos_token_id]
    assert any(token_id in row for token_id in ids)
    assert row.flush() == text


@pytest.fixture(scope="module")
def manager(engine: Engine) -> Iterator[Any]:
    with engine.model.continuous_batching_context_manager(
        continuous_batching_config=ContinuousBatchingConfig(**CONFIG), block=True, timeout=10
    ) as manager:
        yield manager


def row_of(engine: Engine, prompt: list[int], stop: Any, **options: Any) -> RowScanner:
    return RowScanner(engine.tokenizer, stop, prompt_token_ids=prompt, **options)


def test_streamed_request_gets_safe_text_at_once(engine: Engine, reciter: Reciter, manager: Any) -> None:
    (prompt,) = prompts(engine, reciter, ["count"])
    row = row_of(engine, prompt, "hello world")
    request_id = manager.add_request(prompt, eos_token_id=row, max_new_tokens=50, streaming=True)
    outputs = [(row.text(output), len(output.generated_tokens)) for output in manager.request_id_iter(request_id)]
    assert "".join(text for text, _ in outputs) == "1, 2, 3 "
    assert outputs[-1][1] == 7
    assert row.finish == Finish("stop_sequence", "hello world", 8)
    assert row.length() == 5


def test_handlers_get_safe_text(engine: Engine, reciter: Reciter, manager: Any) -> None:
    names = ["count", "late", "split"]

    async def ask(name: str) -> str:
        (prompt,) = prompts(engine, reciter, [name])
        row, texts, done = row_of(engine, prompt, ["hello world", "END"]), [], asyncio.Event()

        def take(output: Any) -> None:
            texts.append(row.text(output))
            if output.is_finished():
                done.set()

        manager.register_result_handler(f"handled-{name}", take)
        manager.add_request(prompt, f"handled-{name}", max_new_tokens=50, streaming=True, eos_token_id=row)
        await asyncio.wait_for(done.wait(), 60)
        return "".join(texts)

    async def ask_all() -> list[str]:
        return await asyncio.gather(*map(ask, names))

    assert asyncio.run(ask_all()) == [recite(SCRIPTS[name], ["hello world", "END"]).text for name in names]


def test_a_cancelled_request_gives_its_held_text(engine: Engine, reciter: Reciter, manager: Any) -> None:
    (prompt,) = prompts(engine, reciter, ["late"])
    row = row_of(engine, prompt, "fox runs")
    request_id = manager.add_request(prompt, eos_token_id=row, max_new_tokens=50, streaming=True)
    assert row.length() == 0
    text = ""
    for output in manager.request_id_iter(request_id):
        text += row.text(output)
        if len(output.generated_tokens) == 4:
            manager.cancel_request(request_id)
            break
    text += row.flush()
    assert text.startswith("The quick brown fox")
    assert reciter.text("late").startswith(text)
    assert row.finish in (Finish("abort"), Finish("eos"))
    assert row.flush() == ""


@pytest.mark.parametrize(("error", "reason"), [("no place left", "abort"), (None, "length")])
def test_the_last_output_gives_the_held_text(
    engine: Engine, reciter: Reciter, error: str | None, reason: EndReason
) -> None:
    row = row_of(engine, [], "STOP")
    assert not any(token_id in row for token_id in reciter.token_ids("held"))
    running = GenerationOutput("one", status=RequestStatus.DECODING)
    assert (row.text(running), row.text(running), row.finish) == ("Please do not ", "", None)
    assert row.text(GenerationOutput("one", error=error, status=RequestStatus.FINISHED)) == "STO"
    assert row.finish == Finish(reason)


def test_a_row_scanner_is_for_one_request(engine: Engine, reciter: Reciter, manager: Any) -> None:
    (prompt,) = prompts(engine, reciter, ["empty"])
    row = row_of(engine, prompt, "END")
    manager.add_request(prompt, "first", eos_token_id=row, max_new_tokens=5)
    with pytest.raises(ValueError, match="one request"):
        manager.add_request(prompt, "second", eos_token_id=row, max_new_tokens=5)


def test_a_request_that_made_place_for_others_goes_on(engine: Engine, reciter: Reciter) -> None:
    row = row_of(engine, [], "hello world")
    first = RequestState("one", [1, 2], eos_token_id=row)
    ids = reciter.token_ids("count")
    assert not any(token_id in first._eos_token_ids for token_id in ids[:6])
    first.generated_tokens = ids[:6]
    again = first.create_equivalent_initial_request()
    assert ids[6] in again._eos_token_ids
    assert row.finish == Finish("stop_sequence", "hello world", 8)


def test_other_requests_are_as_before(engine: Engine, reciter: Reciter, manager: Any) -> None:
    (prompt,) = prompts(engine, reciter, ["split"])
    request_id = manager.add_request(prompt, max_new_tokens=50, eos_token_id=[reciter.eos_token_id])
    (output,) = manager.request_id_iter(request_id)
    assert output.generated_tokens == [*reciter.token_ids("split"), reciter.eos_token_id]


@pytest.mark.parametrize("version", ["5.0.0", "5.5.4"])
def test_a_transformers_that_asks_no_row_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions of transformers before 5.6 must be refused. Versions 5.0 to 5.3 end a row only at one EOS id, so they
    would silently ignore all stops. Version 5.5 loses answers."""
    monkeypatch.setattr(sys.modules["transformers"], "__version__", version)
    with pytest.raises(ImportError, match=rf"continuous needs transformers 5\.6\.0 or later; .* {version}"):
        importlib.reload(continuous)


def test_unknown_batch_option_says_where_it_belongs(engine: Engine, reciter: Reciter) -> None:
    with pytest.raises(
        TypeError, match="generate_batch has no option temperature: pass a generation_config; its own are"
    ):
        batch(engine, reciter, ["count"], "END", temperature=0.5)
