"""``Repeat``, snapshots and formats of answers, in transformers. With ``Repeat``, an answer ends at the token that
proves a loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

from forms_said import FORMS, write
from looping import LOOPS, ended
from reported_loops import REPORTS
from transformers import ContinuousBatchingConfig
from transformers.generation.continuous_batching.requests import GenerationOutput, RequestStatus
from transformers_harness import Engine

from stopscan import Repeat, StopMatch, StopSet
from stopscan.finish import Finish
from stopscan.segments import FORMATS, SegmentSet
from stopscan.transformers import Stops, generate
from stopscan.transformers.continuous import RowScanner, RowSegmenter, generate_batch
from stopscan_conformance.reciter import SCRIPTS, Reciter

STOPS = StopSet("never", repeat=Repeat())
THINK = SegmentSet(FORMATS["think"], stop="never", stop_in=["answer"], repeat=Repeat())


@pytest.fixture(scope="module")
def reciter() -> Reciter:
    return Reciter(LOOPS | {name: report.script for name, report in REPORTS.items()} | {"think": SCRIPTS["think"]})


@pytest.fixture(scope="module")
def looping(reciter: Reciter, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine.load(reciter.write(tmp_path_factory.mktemp("loops")))


def test_generation_ends_at_the_proving_token(looping: Engine, reciter: Reciter) -> None:
    for name in LOOPS:
        text, tokens, match = ended(name)
        stops = Stops(looping.tokenizer, STOPS)
        with looping.counted() as steps:
            looping.generate(reciter.prompt(name), stops, max_new_tokens=900)
        assert (stops.texts, stops.tokens_seen, len(steps)) == ([text], [tokens], tokens)
        assert stops.finishes == [Finish("repetition", offset=match.offset)]


@pytest.mark.parametrize("name", REPORTS)
def test_the_loops_of_reports(looping: Engine, reciter: Reciter, name: str) -> None:
    report = REPORTS[name]
    stops = Stops(looping.tokenizer, StopSet(repeat=report.repeat))
    with looping.counted() as steps:
        looping.generate(reciter.prompt(name), stops, max_new_tokens=900)
    assert (stops.texts, stops.finishes) == ([report.streamed], [Finish("repetition", offset=report.match.offset)])
    assert (stops.tokens_seen, len(steps)) == ([report.tokens], report.tokens)


def test_the_one_call_and_segments(looping: Engine, reciter: Reciter) -> None:
    prompts = [reciter.prompt(name) for name in LOOPS]
    answers = generate(looping.model, looping.tokenizer, prompts, THINK, max_new_tokens=900)
    for name, answer in zip(LOOPS, answers, strict=True):
        text, _, match = ended(name)
        region = "reasoning" if name == "thoughts" else "answer"
        assert answer.segments == [(region, text.removeprefix("<think>"), region == "reasoning")]
        assert answer.finish == Finish("repetition", offset=match.offset)


def test_continuous_batching(looping: Engine, reciter: Reciter) -> None:
    inputs = looping.tokenizer([reciter.prompt(name) for name in LOOPS]).input_ids
    config = ContinuousBatchingConfig(num_blocks=64, block_size=32, max_batch_tokens=128)
    results = generate_batch(
        looping.model, looping.tokenizer, inputs, STOPS, max_new_tokens=900, continuous_batching_config=config
    )
    for name, result in zip(LOOPS, results, strict=True):
        text, tokens, match = ended(name)
        assert (result.text, len(result.output.generated_tokens)) == (text, tokens)
        assert result.finish == Finish("repetition", offset=match.offset)


def ends(row: Any, ids: list[int]) -> bool:
    """Whether the row has ended after the last of ``ids``. Asks the row after each id, as transformers does."""
    return [token_id in row for token_id in ids][-1]


@pytest.mark.parametrize("place", [0, 2, 5, 12])
def test_a_row_goes_on_from_its_snapshot(looping: Engine, reciter: Reciter, place: int) -> None:
    ids = reciter.token_ids("think")
    row, other = (RowScanner(looping.tokenizer, "END", protect=["<think>", "</think>"]) for _ in range(2))
    running = GenerationOutput("one", status=RequestStatus.DECODING)
    for token_id in ids[:place]:
        assert token_id not in row
    text = row.text(running)
    other.restore(row.snapshot())
    for one in (row, other):
        assert ends(one, ids[place:])
        assert text + one.flush() == "<think>Is it END?</think>It is 5 or 6 "
        assert one.match == StopMatch("END", 38)
    with pytest.raises(ValueError, match="the snapshot was made with another set or other options"):
        RowScanner(looping.tokenizer, "6").restore(row.snapshot())


def test_a_segmenter_goes_on_from_its_snapshot(looping: Engine, reciter: Reciter) -> None:
    ids = reciter.token_ids("think")
    segments = SegmentSet(FORMATS["think"], stop="END", stop_in=["answer"])
    row, other = (RowSegmenter(looping.tokenizer, segments) for _ in range(2))
    assert not ends(row, ids[:9])
    with pytest.raises(ValueError, match="was not read yet"):
        row.snapshot()
    received = row.segments(GenerationOutput("one", status=RequestStatus.DECODING))
    other.restore(row.snapshot())
    assert ends(other, ids[9:])
    assert received == [("reasoning", "Is it END?", 1), ("answer", "It", 2)]
    assert other.flush() == [("answer", " is 5 or 6 ", 2)]
    assert other.tokens_in == {"reasoning": 6, "answer": 6}


def test_pipelines(looping: Engine, reciter: Reciter, tmp_path: Path) -> None:
    from transformers import pipeline

    from stopscan.transformers import cut

    made: Any = pipeline("text-generation", model=looping.model, tokenizer=looping.tokenizer)
    (record,) = cut(made)(reciter.prompt("lines"), stop=STOPS, max_new_tokens=900, return_full_text=False)
    assert record["generated_text"] == ended("lines")[0]


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_that_chat_templates_tell(form: str, tmp_path: Path) -> None:
    _, thought, answered = FORMS[form]
    engine = Engine.load(write(form, tmp_path))
    for protect, text in (((), thought), ("reasoning", answered)):
        options: Any = {"protect": protect, "skip_special_tokens": False, "max_new_tokens": 100}
        (answer,) = generate(engine.model, engine.tokenizer, "[said]", "END", **options)
        assert (answer.text, answer.finish.matched_stop) == (text, "END")


def test_a_row_has_a_limit_of_its_own(looping: Engine, reciter: Reciter) -> None:
    """A row ends at its ``max_tokens``. Before a fix, this option raised a ``TypeError``."""
    ids = reciter.token_ids("think")[:5]
    row = RowScanner(looping.tokenizer, "END", max_tokens=5)
    assert [token_id in row for token_id in ids] == [False] * 4 + [True]
    assert (row.flush(), row.finish) == ("<think>Is it E", Finish("length"))
    segmenter = RowSegmenter(looping.tokenizer, FORMATS["think"], max_tokens=5)
    assert ends(segmenter, ids)
    assert segmenter.finish == Finish("length")
