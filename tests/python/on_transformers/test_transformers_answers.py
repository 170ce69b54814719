"""``generate``, the one call for those who want texts, and pipelines whose text is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

from recital import recite
from transformers import TextGenerationPipeline
from transformers_harness import Engine, Pieces

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.segments import FORMATS, SegmentSet
from stopscan.transformers import Answer, cut, generate
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

NAMES = ["count", "split", "late", "emoji", "empty", "runs"]
STOP = ["hello world", "END", "en e"]


@pytest.fixture(scope="module")
def bare(engine: Engine, checkpoint: Path) -> Any:
    """A tokenizer as it is loaded: without padding."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    assert tokenizer.pad_token is None
    return tokenizer


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"num_return_sequences": 2, "do_sample": True}])
def test_each_prompt_and_sequence_has_its_answer(
    engine: Engine, bare: Any, reciter: Reciter, options: dict[str, Any]
) -> None:
    prompts = [f"{'x' * number} {reciter.prompt(name)}" for number, name in enumerate(NAMES)]
    answers = generate(engine.model, bare, prompts, STOP, max_new_tokens=100, **options)
    expected = [recite(SCRIPTS[name], STOP) for name in NAMES for _ in range(options.get("num_return_sequences", 1))]
    assert [answer.text for answer in answers] == [one.text for one in expected]
    assert [answer.finish.matched_stop for answer in answers] == [one.matched for one in expected]
    assert all(answer.segments is None for answer in answers)
    assert bare.pad_token is None


def test_one_prompt_streams_and_takes_the_options_of_stops(engine: Engine, bare: Any, reciter: Reciter) -> None:
    pieces, prompt = Pieces(), reciter.prompt("think")
    options = {"protect": [THINKING], "max_new_tokens": 50, "streamer": pieces}
    (answer,) = generate(engine.model, bare, prompt, ["END"], **options)
    assert answer.text == "".join(pieces.texts) == recite(SCRIPTS["think"], ["END"], protect=[THINKING]).text
    assert pieces.ends == 1
    (answer,) = generate(engine.model, bare, prompt, max_new_tokens=2)
    assert answer == Answer("<think>Is", Finish("length"))
    assert generate(engine.model, bare, [], "END") == []


def test_segments(engine: Engine, bare: Any, reciter: Reciter) -> None:
    segments = SegmentSet(FORMATS["think"], stop="END", stop_in=["answer"])
    (answer,) = generate(engine.model, bare, [reciter.prompt("think")], segments, max_new_tokens=50)
    assert answer.segments == [("reasoning", "Is it END?"), ("answer", "It is 5 or 6 ")]


def test_a_generation_that_fails_ends_the_stream(engine: Engine, bare: Any, reciter: Reciter) -> None:
    pieces = Pieces()
    with pytest.raises(ValueError, match="max_new_tokens"):
        generate(engine.model, bare, reciter.prompt("count"), "END", max_new_tokens=-5, streamer=pieces)
    assert pieces.ends == 1
    with pytest.raises(ValueError, match="stop 0 is empty"):
        generate(engine.model, bare, reciter.prompt("count"), "")


@pytest.fixture
def pipeline(engine: Engine) -> Any:
    return TextGenerationPipeline(model=engine.model, tokenizer=engine.tokenizer)


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"num_return_sequences": 2, "do_sample": True}])
@pytest.mark.parametrize("whole", [False, True])
def test_a_pipelines_text_is_cut(pipeline: Any, reciter: Reciter, options: dict[str, Any], whole: bool) -> None:
    prompts = [reciter.prompt(name) for name in NAMES]
    options = {"max_new_tokens": 100, "return_full_text": whole, **options}
    results = cut(pipeline)(prompts, stop=STOP, **options)
    for prompt, name, records in zip(prompts, NAMES, results, strict=True):
        assert len(records) == options.get("num_return_sequences", 1)
        for record in records:
            assert record == {"generated_text": (prompt if whole else "") + recite(SCRIPTS[name], STOP).text}
    # The pipeline itself is as it was.
    plain = pipeline(reciter.prompt("count"), max_new_tokens=100, return_full_text=False)
    assert plain == [{"generated_text": reciter.text("count")}]


def test_a_pipelines_generation_ends_at_the_stop(engine: Engine, pipeline: Any, reciter: Reciter) -> None:
    with engine.counted() as steps:
        cut(pipeline)(reciter.prompt("count"), stop=StopSet("hello world"), max_new_tokens=100)
    assert len(steps) == 7


def test_a_chat_of_a_pipeline(engine: Engine, pipeline: Any, reciter: Reciter) -> None:
    engine.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    try:
        chat = [{"role": "user", "content": reciter.prompt("think")}]
        (record,) = cut(pipeline)(chat, stop="END", protect=[THINKING], max_new_tokens=100)
    finally:
        engine.tokenizer.chat_template = None
    text = recite(SCRIPTS["think"], ["END"], protect=[THINKING]).text
    assert record == {"generated_text": [*chat, {"role": "assistant", "content": text}]}


def test_what_a_pipeline_is_not_asked_in(pipeline: Any, reciter: Reciter) -> None:
    with pytest.raises(ValueError, match="stop 0 is empty"):
        cut(pipeline)(reciter.prompt("count"), stop="")
    with pytest.raises(TypeError, match="text-generation"):
        cut("pipeline")
