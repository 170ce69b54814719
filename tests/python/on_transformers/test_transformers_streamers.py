"""The texts that ``Stops`` passes to transformers' own streamers, and all ways in which a stream can end."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

import torch
from recital import recite
from transformers import AsyncTextIteratorStreamer, TextIteratorStreamer, TextStreamer
from transformers_harness import Engine, Pieces, needs_true_drafts

from stopscan.finish import Finish
from stopscan.transformers import Stops
from stopscan_conformance.reciter import SCRIPTS, Reciter


def in_thread(target: Callable[[], Any]) -> Thread:
    thread = Thread(target=target)
    thread.start()
    return thread


def test_an_iterator_gets_the_safe_text(engine: Engine, reciter: Reciter) -> None:
    streamer = TextIteratorStreamer(engine.tokenizer, timeout=60)
    stops = Stops(engine.tokenizer, "hello world", streamer=streamer)
    thread = in_thread(lambda: engine.generate(reciter.prompt("count"), stops))
    assert "".join(streamer) == "1, 2, 3 "
    thread.join()
    assert stops.finishes == [Finish("stop_sequence", "hello world", 8)]


def test_an_async_iterator_gets_the_safe_text(engine: Engine, reciter: Reciter) -> None:
    async def read() -> list[str]:
        streamer = AsyncTextIteratorStreamer(engine.tokenizer, timeout=60)
        stops = Stops(engine.tokenizer, "hello world", streamer=streamer)
        thread = in_thread(lambda: engine.generate(reciter.prompt("count"), stops))
        texts = [text async for text in streamer]
        await asyncio.to_thread(thread.join)
        return texts

    assert [text for text in asyncio.run(read()) if text] == ["1", ", ", "2", ", ", "3 "]


def test_a_printing_streamer_prints_the_safe_text(
    engine: Engine, reciter: Reciter, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.generate(reciter.prompt("split"), Stops(engine.tokenizer, "END", streamer=TextStreamer(engine.tokenizer)))
    assert capsys.readouterr().out == "This is the \n"


def test_each_row_has_a_streamer_of_its_own(engine: Engine, reciter: Reciter) -> None:
    streamers = tuple(TextIteratorStreamer(engine.tokenizer, timeout=60) for _ in range(2))
    stops = Stops(engine.tokenizer, ["hello world", "END"], streamer=streamers)
    engine.generate([reciter.prompt("count"), reciter.prompt("late")], stops)
    assert ["".join(streamer) for streamer in streamers] == ["1, 2, 3 ", reciter.text("late")]


def test_row_without_streamer_raises_at_once(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, "END", streamer=Pieces())
    with engine.counted() as steps, pytest.raises(ValueError, match="2 rows need a list of 2 streamers, not 1"):
        engine.generate([reciter.prompt("count")] * 2, stops)
    assert not steps


def test_a_reader_that_goes_ends_the_generation(engine: Engine, reciter: Reciter) -> None:
    class Reader(Pieces):
        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            super().on_finalized_text(text, stream_end)
            if len(self.texts) == 3:
                stops.close()

    reader = Reader()
    stops = Stops(engine.tokenizer, "###", streamer=reader)
    with engine.counted() as steps:
        sequences = engine.generate(reciter.prompt("late"), stops)
    assert (reader.texts, reader.ends) == (["The", " quick", " brown", ""], 1)
    assert len(steps) == 3
    assert torch.equal(stops.trim(sequences), sequences)
    assert (stops.texts, stops.finishes) == (["The quick brown"], [Finish("abort")])


def test_to_ask_for_the_text_ends_the_generation(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, "###", streamer=(pieces := Pieces()))

    def ask(_module: Any, _args: Any) -> None:
        if len(pieces.texts) == 3:
            assert stops.texts == ["The quick brown"]

    hook = engine.model.register_forward_pre_hook(ask)
    with engine.counted() as steps:
        engine.generate(reciter.prompt("late"), stops)
    hook.remove()
    assert (len(steps), pieces.ends, stops.finishes) == (4, 1, [Finish("length")])


def test_stream_closed_elsewhere_gets_its_held_text(engine: Engine, reciter: Reciter) -> None:
    pieces = Pieces()
    stops = Stops(engine.tokenizer, "fox runs", streamer=pieces)

    def close(_module: Any, _args: Any) -> None:
        if "".join(pieces.texts) == "The quick brown ":
            thread = in_thread(stops.close)
            thread.join()

    hook = engine.model.register_forward_pre_hook(close)
    with engine.counted() as steps:
        engine.generate(reciter.prompt("late"), stops)
    hook.remove()
    assert (stops.texts, stops.finishes) == (["The quick brown fox"], [Finish("abort")])
    assert (pieces.texts[-1], pieces.ends) == ("fox", 1)
    assert len(steps) == 5


def test_a_stream_closed_before_the_first_step_is_empty(engine: Engine, reciter: Reciter) -> None:
    pieces = Pieces()
    stops = Stops(engine.tokenizer, "END", streamer=pieces)
    stops.close()
    stops.close("length")
    with engine.counted() as steps:
        engine.generate(reciter.prompt("late"), stops)
    assert (len(steps), pieces.texts, pieces.ends) == (1, [""], 1)
    assert (stops.texts, stops.finishes) == ([""], [Finish("abort")])


def test_reader_of_a_failed_generation_is_released(engine: Engine, reciter: Reciter) -> None:
    def fail(_module: Any, _args: Any) -> None:
        if len(engine.steps) == 5:
            raise MemoryError

    hook = engine.model.register_forward_pre_hook(fail)
    streamer = TextIteratorStreamer(engine.tokenizer, timeout=60)
    stops = Stops(engine.tokenizer, "fox runs", streamer=streamer)

    def generate() -> None:
        try:
            with engine.counted():
                engine.generate(reciter.prompt("late"), stops)
        except MemoryError:
            stops.close()

    thread = in_thread(generate)
    assert "".join(streamer) == "The quick brown fox"
    thread.join()
    hook.remove()
    assert stops.finishes == [Finish("abort")]


def test_streamer_error_comes_through_and_loses_nothing(engine: Engine, reciter: Reciter) -> None:
    class Full(Pieces):
        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            if len(self.texts) == 2:
                raise BufferError
            super().on_finalized_text(text, stream_end)

    stops = Stops(engine.tokenizer, "END", streamer=(full := Full()))
    with pytest.raises(BufferError):
        engine.generate(reciter.prompt("late"), stops)
    assert full.texts == ["The", " quick"]
    full.texts.clear()
    assert stops.texts == ["The quick brown"]


def test_stops_given_only_as_streamer_fails(engine: Engine, reciter: Reciter) -> None:
    """If a ``Stops`` is passed only as the streamer, an error must be raised at the first token. Before a fix, it was
    raised only after the whole generation."""
    inputs = engine.tokenizer(reciter.prompt("count"), return_tensors="pt")
    with engine.counted() as steps, pytest.raises(RuntimeError, match="stopping_criteria"):
        engine.model.generate(**inputs, streamer=Stops(engine.tokenizer, "END"))
    assert len(steps) == 1


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "criterion"])
def test_a_stops_is_for_one_generation(engine: Engine, reciter: Reciter, streamed: bool) -> None:
    stops = Stops(engine.tokenizer, "END")
    engine.generate(reciter.prompt("split"), stops, streamed=streamed)
    for prompts in (reciter.prompt("count"), [reciter.prompt("count")] * 2):
        with engine.counted() as steps, pytest.raises(ValueError, match="was already used"):
            engine.generate(prompts, stops, streamed=streamed)
        # If the Stops is only a criterion, transformers calls it for the first time after a model step.
        assert len(steps) == (0 if streamed else 1)
    assert stops.texts == ["This is the "]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "criterion"])
def test_a_refused_generation_leaves_the_results(engine: Engine, reciter: Reciter, streamed: bool) -> None:
    """A ``Stops`` that was used for one prompt must refuse another prompt, however long the prompt is."""
    stops = Stops(engine.tokenizer, "END")
    engine.generate(reciter.prompt("split"), stops, streamed=streamed)
    with pytest.raises(ValueError, match="was already used"):
        engine.generate("x" * 50 + reciter.prompt("count"), stops, streamed=False)
    assert stops.texts == ["This is the "]


@needs_true_drafts
@pytest.mark.parametrize("draft", ["assistant_model", "prompt_lookup_num_tokens"])
def test_drafts_tell_the_prompt_without_a_streamer(engine: Engine, reciter: Reciter, draft: str) -> None:
    options = {draft: engine.draft if draft == "assistant_model" else 3}
    stops = Stops(engine.tokenizer, "en e")
    engine.generate(reciter.prompt("late"), stops, streamed=False, **options)
    assert stops.texts == [recite(SCRIPTS["late"], ["en e"]).text]


def test_a_loop_at_the_top_level_of_a_script(checkpoint: Path) -> None:
    """``Stops`` must also work at the top level of a script. Before a fix, it read the name of a function further up
    the call stack, and failed because a script's stack is short."""
    script = """
import sys, torch
from transformers import AutoTokenizer
from stopscan.transformers import Stops
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
stops = Stops(tokenizer, "END")
ids = tokenizer("a END", return_tensors="pt").input_ids
for length in range(2, ids.shape[1] + 1):
    done = stops(ids[:, :length], None)
print(stops.texts, done.tolist())
"""
    command = [sys.executable, "-c", script, str(checkpoint)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[' '] [True]", done.stderr


@pytest.mark.parametrize("place", range(3))
def test_unknown_ids_count_for_min_tokens(engine: Engine, reciter: Reciter, place: int) -> None:
    ids = reciter.token_ids("count")
    ids.insert(place, engine.model.config.vocab_size - 1)
    stops = Stops(engine.tokenizer, ["2", "hello world"], min_tokens=4)
    sequences = torch.tensor([[5]])
    stops.put(sequences)
    for token_id in ids:
        sequences = torch.cat([sequences, torch.tensor([[token_id]])], dim=1)
        if stops(sequences)[0]:
            break
    assert stops.texts == ["1, 2, 3 "]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"stop_token_ids": ["6"]}, TypeError),
        ({"min_tokens": -1}, ValueError),
        ({"protect": "reasoning"}, ValueError),
        ({"protect": ["<think>"]}, ValueError),
        ({"eos_token_ids": "</s>"}, TypeError),
    ],
)
def test_bad_options_raise_at_once(engine: Engine, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        Stops(engine.tokenizer, "END", **options)
    with pytest.raises(ValueError, match="empty"):
        Stops(engine.tokenizer, ["END", ""])


def test_texts_equal_the_reference_for_every_script(engine: Engine, reciter: Reciter) -> None:
    names = [name for name in SCRIPTS if name != "harmony"]
    streamers = [Pieces() for _ in names]
    stops = Stops(engine.tokenizer, ["ow", "E!"], streamer=streamers, skip_special_tokens=False)
    engine.generate([reciter.prompt(name) for name in names], stops)
    for name, pieces, text in zip(names, streamers, stops.texts, strict=True):
        assert "".join(pieces.texts) == text == recite(SCRIPTS[name], ["ow", "E!"]).text


def test_the_example(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    example = Path(__file__).parents[3] / "examples" / "transformers_generate.py"
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out == "1, 2, 3 \nstop_sequence: StopMatch('hello world', 8), 5 tokens\n"
