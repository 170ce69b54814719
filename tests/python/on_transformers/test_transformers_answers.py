"""``generate``, which returns finished answers, and ``cut``, which returns a pipeline whose texts end at stops."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

import torch
from recital import recite
from tokenizers.processors import TemplateProcessing
from transformers import TextGenerationPipeline
from transformers_harness import Engine, Pieces

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.segments import FORMATS, SegmentSet
from stopscan.transformers import Answer, Stops, cut, generate
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

NAMES = ["count", "split", "late", "emoji", "empty", "runs"]
STOP = ["hello world", "END", "en e"]


@pytest.fixture(scope="module")
def bare(engine: Engine, checkpoint: Path) -> Any:
    """A tokenizer as it is loaded: without a padding token."""
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
    assert answer.segments == [("reasoning", "Is it END?", 1), ("answer", "It is 5 or 6 ", 2)]


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
            one = recite(SCRIPTS[name], STOP)
            assert record["generated_text"] == (prompt if whole else "") + one.text
            assert record["finish"].matched_stop == one.matched
            assert record.keys() == {"generated_text", "finish"}
    # `cut` has returned a new pipeline. The original pipeline still has no stops.
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
    assert record["generated_text"] == [*chat, {"role": "assistant", "content": text}]
    assert record["finish"].matched_stop == "END"


def test_what_a_pipeline_is_not_asked_in(pipeline: Any, reciter: Reciter) -> None:
    with pytest.raises(ValueError, match="stop 0 is empty"):
        cut(pipeline)(reciter.prompt("count"), stop="")
    with pytest.raises(TypeError, match="text-generation"):
        cut("pipeline")


def test_pipeline_streamer_gets_text_before_the_stop(pipeline: Any, reciter: Reciter) -> None:
    """The streamer of a pipeline must get only the text before the stop. Before a fix, it also got the text after the
    stop."""
    pieces = Pieces()
    options = {"stop": "hello world", "streamer": pieces, "max_new_tokens": 100, "return_full_text": False}
    (record,) = cut(pipeline)(reciter.prompt("count"), **options)
    assert record == {"generated_text": "1, 2, 3 ", "finish": Finish("stop_sequence", "hello world", 8)}
    assert ("".join(pieces.texts), pieces.ends) == ("1, 2, 3 ", 1)
    failing = Pieces()
    with pytest.raises(ValueError, match="max_new_tokens"):
        cut(pipeline)(reciter.prompt("count"), **(options | {"max_new_tokens": -5, "streamer": failing}))
    assert failing.ends == 1


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"num_return_sequences": 2, "do_sample": True}])
def test_the_tensors_of_a_pipeline_are_cut(
    pipeline: Any, engine: Engine, reciter: Reciter, options: dict[str, Any]
) -> None:
    """With ``return_tensors``, a pipeline's tensors must end at the stop. Before a fix, they still had the tokens after
    the stop."""
    names = ["count", "split", "late"]
    prompts = [f"{'x' * number} {reciter.prompt(name)}" for number, name in enumerate(names)]
    options = {"max_new_tokens": 100, "return_tensors": True, **options}
    results = cut(pipeline)(prompts, stop=["hello world", "END"], **options)
    for records, name, kept in zip(results, names, [5, 4, None], strict=True):
        for record in records:
            whole = [*reciter.token_ids(name), reciter.eos_token_id]
            ids = record["generated_token_ids"][-(kept or len(whole)) :]
            assert ids == whole[:kept]
            assert (
                record["generated_token_ids"][-len(ids) - 1]
                == engine.tokenizer(f"x {reciter.prompt(name)}").input_ids[-1]
            )


def test_beams_of_a_pipeline(pipeline: Any, reciter: Reciter) -> None:
    options = {"num_beams": 3, "max_new_tokens": 50, "return_full_text": False}
    (record,) = cut(pipeline)(reciter.prompt("count"), stop="hello world", **options)
    assert record == {"generated_text": "1, 2, 3 ", "finish": Finish("stop_sequence", "hello world", 8)}
    with pytest.raises(ValueError, match="streamer"):
        cut(pipeline)(reciter.prompt("count"), stop="hello world", streamer=(pieces := Pieces()), **options)
    assert pieces.ends == 1


def test_a_text_with_its_bos_gets_no_second_one(engine: Engine, bare: Any, reciter: Reciter) -> None:
    """A text that a chat template made begins with the BOS. The tokenizer must not add a second BOS. Before a fix, it
    did."""
    tokenizer = deepcopy(bare)
    tokenizer.bos_token = "<|start|>"
    bos = tokenizer.bos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|start|> $A", special_tokens=[("<|start|>", bos)]
    )
    assert tokenizer("<|start|>x").input_ids[:2] == [bos, bos]
    prompts: list[list[int]] = []
    hook = engine.model.register_forward_pre_hook(
        lambda _model, _args, options: prompts.append(options["input_ids"][0].tolist()), with_kwargs=True
    )
    try:
        for text in (f"<|start|>{reciter.prompt('count')}", reciter.prompt("count")):
            generate(engine.model, tokenizer, text, "6", max_new_tokens=1)
    finally:
        hook.remove()
    assert prompts == [[bos, *bare(reciter.prompt("count")).input_ids]] * 2


def test_ids_and_messages_are_prompts(engine: Engine, bare: Any, reciter: Reciter) -> None:
    """Token ids and messages must be accepted as prompts. Before a fix, only strings were accepted."""
    tokenizer = deepcopy(bare)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}"
        + reciter.prompt("count")
        + "{% endif %}"
    )
    ids = tokenizer(reciter.prompt("count")).input_ids
    chat = [{"role": "user", "content": "Hi"}]
    begun = [*chat, {"role": "assistant", "content": reciter.prompt("split")}]
    for prompts, texts in (
        (ids, ["1, 2, 3 "]),
        ([ids, ids], ["1, 2, 3 "] * 2),
        (chat, ["1, 2, 3 "]),
        ([chat, begun], ["1, 2, 3 ", "This is the "]),
        ([reciter.prompt("split"), ids, chat], ["This is the ", "1, 2, 3 ", "1, 2, 3 "]),
    ):
        answers = generate(engine.model, tokenizer, prompts, ["hello world", "END"], max_new_tokens=50)
        assert [answer.text for answer in answers] == texts
    with pytest.raises(TypeError, match="a prompt is a text, token ids or messages"):
        generate(engine.model, tokenizer, [[1.5]], "END")
    with pytest.raises(FrozenInstanceError):
        answers[0].text = ""


def test_what_a_tokenizer_returned_is_a_prompt(engine: Engine, bare: Any, reciter: Reciter) -> None:
    """If the prompt is the mapping that a tokenizer returns, ``generate`` must use the ids in it. Before a fix, the
    model got the keys "input_ids" and "attention_mask" as two prompts."""
    tokenizer = deepcopy(bare)
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, "left"
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}x{% endif %}"
    )
    count, split = (reciter.prompt(name) for name in ("count", "split"))
    ids = tokenizer(count).input_ids
    chats = [[{"role": "user", "content": text}] for text in (f"xx {split}", count)]
    texts = tokenizer([f"xx {split}", count], return_tensors="pt", padding=True)
    assert 0 in texts["attention_mask"]
    chat = tokenizer.apply_chat_template(chats[1], return_dict=True)
    both = tokenizer.apply_chat_template(chats, return_dict=True, return_tensors="pt", padding=True)
    unmasked = tokenizer(count, return_attention_mask=False)
    array = tokenizer([count, count], return_tensors="np")["input_ids"]
    two, one, twice = ["This is the ", "1, 2, 3 "], ["1, 2, 3 "], ["1, 2, 3 "] * 2
    for prompts, answers in (
        (tokenizer(count), one), (tokenizer(count, return_tensors="pt"), one), (dict(tokenizer(count)), one),
        (unmasked, one), (texts, two), (both, two), (chat, one), ([tokenizer(f"xx {split}"), chat], two),
        ([tokenizer(count, return_tensors="np"), ids], twice), (array, twice), (array[0], one),
        (texts["input_ids"][1], one), (list(array), twice),
        (torch.tensor([ids, ids]), twice), ({"input_ids": [torch.tensor(ids)] * 2}, twice),
        (iter([count, ids]), twice), ((ids, ids), twice), (tuple(ids), one), ([], []),
    ):  # fmt: skip
        made = generate(engine.model, tokenizer, prompts, ["hello world", "END"], max_new_tokens=50)
        assert [answer.text for answer in made] == answers, prompts


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ("", "a prompt has no tokens: pass at least one"),
        ([[]], "a prompt has no tokens"),
        (["x", ""], "a prompt has no tokens"),
        ({"input_ids": [], "attention_mask": []}, "a prompt has no tokens"),
        (5, "a prompt is a text, token ids or messages.*not 5"),
        (None, "a prompt is a text"),
        (b"abc", "a prompt is a text"),
        ({"role": "user", "content": "x"}, "a prompt is a text, token ids or messages; pass one prompt, a list"),
        ([[True, False]], "a prompt is a text"),
        (torch.tensor([1.5]), "a prompt is a text"),
        (torch.tensor([[[1], [2]]]), "a prompt is a text"),
        (torch.tensor(1), "a prompt is a text"),
        ([{"input_ids": [[1], [2]]}], "a prompt is a text"),
        ({"input_ids": [1], "pixel_values": [0.5]}, "tokens alone, not pixel_values: pass a Stops to model.generate"),
    ],
    ids=str,
)
def test_other_prompts_say_what_to_pass(engine: Engine, bare: Any, prompts: Any, message: str) -> None:
    pieces = Pieces()
    with pytest.raises(TypeError, match=message), engine.counted() as steps:
        generate(engine.model, bare, prompts, "END", max_new_tokens=1, streamer=pieces)
    assert steps == []


def test_an_exact_pipeline_is_not_cut_again(pipeline: Any) -> None:
    with pytest.raises(TypeError, match="already has exact stops: pass stop= when you call it"):
        cut(cut(pipeline))


def test_stops_in_a_dict_say_what_to_pass(engine: Engine, bare: Any) -> None:
    with pytest.raises(TypeError, match=r"a mapping as the stop has .*pass stops as a list of strings"):
        Stops(bare, {"END": 1})  # type: ignore[dict-item]
