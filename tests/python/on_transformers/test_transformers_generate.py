"""``Stops`` in transformers' own ``generate``: greedy decoding, batches, assisted decoding, and all ways to end."""

from __future__ import annotations

import subprocess
import sys
from copy import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

import torch
from recital import recite
from transformers import StoppingCriteria, StoppingCriteriaList, TextIteratorStreamer
from transformers_harness import Engine, Pieces, needs_true_drafts

from stopscan import StopMatch, StopSet
from stopscan.finish import Finish
from stopscan.transformers import Stops
from stopscan.transformers._stops import ASKS_OF_DRAFTS
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

STOPS = [
    ["END"], ["hello world"], ["6"], ["fgh"], ["z"], ["XYZ"], ["STOP"], ["###"], ["abc", "b"], ["ab"], ["aab"], ["ha!"],
    ["!", " "], ["\n\nTwo", "\r\n\t"], ["<|end_of_document|>"], ["</think>"], ["<|message|>"], ["never"], ["e end"],
    ["\N{OCTAGONAL SIGN}"], ["\N{ZERO WIDTH JOINER}"], ["\N{REPLACEMENT CHARACTER}"],
]  # fmt: skip
# Ways to generate. With "greedy", each step brings one token. With "lookup" and "assistant", a step can bring several
# tokens. "lookup" takes them from the prompt, and "assistant" takes them from a second model.
WAYS = {"greedy": {}, "lookup": {"prompt_lookup_num_tokens": 3}, "assistant": {"assistant_model": "draft"}}
ways = pytest.mark.parametrize(
    "way", [pytest.param(way, marks=needs_true_drafts if options else ()) for way, options in WAYS.items()]
)
NAMES = [*SCRIPTS]


def generation(engine: Engine, way: str, **options: Any) -> dict[str, Any]:
    return {name: engine.draft if value == "draft" else value for name, value in WAYS[way].items()} | options


@ways
@pytest.mark.parametrize("name", NAMES)
def test_each_row_has_the_text_before_its_stop(engine: Engine, reciter: Reciter, name: str, way: str) -> None:
    for stop in STOPS:
        if not any(one[0] in reciter.text(name) for one in stop):
            continue
        expected, pieces = recite(SCRIPTS[name], stop), Pieces()
        stops = Stops(engine.tokenizer, stop, skip_special_tokens=False, streamer=pieces)
        engine.generate(reciter.prompt(name), stops, **generation(engine, way))
        assert stops.texts == [expected.text] == ["".join(pieces.texts)], stop
        assert pieces.ends == 1
        (finish,) = stops.finishes
        assert (finish.match and finish.match.sequence) == expected.matched, stop
        assert finish.reason == ("stop_sequence" if expected.matched else "eos")
        if way == "greedy":
            # Text is streamed as soon as a token shows that no stop begins in this text.
            assert pieces.texts[:-1] == [text for text in expected.texts[:-1] if text]


def test_transformers_shows_what_follows_the_stop(engine: Engine, tmp_path: Path) -> None:
    pieces = ["One", " hel", "lo wor", "ld two", " three"]
    reciter = Reciter({"script": pieces})
    one = Engine.load(reciter.write(tmp_path))
    inputs = one.tokenizer(reciter.prompt("script"), return_tensors="pt")
    streamer = TextIteratorStreamer(one.tokenizer, skip_prompt=True, timeout=60)
    options = {"stop_strings": "hello world", "tokenizer": one.tokenizer, "max_new_tokens": 50}
    by_transformers = one.model.generate(**inputs, streamer=streamer, **options)
    assert "".join(streamer) == "One hello world two"
    assert one.tokenizer.decode(by_transformers[0, 1:]) == "One hello world two"
    stops = Stops(one.tokenizer, ["hello world"])
    ours = one.generate(reciter.prompt("script"), stops)
    assert torch.equal(ours, by_transformers)
    assert stops.texts == ["One "]
    assert stops.finishes == [Finish("stop_sequence", "hello world", 4)]
    assert stops.finishes[0].match == StopMatch("hello world", 4)
    # The text ends inside the token " hel", so this token is kept.
    assert one.tokenizer.batch_decode(stops.trim(ours)[:, 1:]) == ["One hel"]


def test_stop_is_found_in_ids_sharing_a_text(engine: Engine, reciter: Reciter) -> None:
    # Each "ha" in this script has its own id. transformers' criterion knows only one id for "ha", so it misses "haha".
    inputs = engine.tokenizer(reciter.prompt("echo"), return_tensors="pt")
    by_transformers = engine.model.generate(
        **inputs, stop_strings=["haha"], tokenizer=engine.tokenizer, max_new_tokens=50
    )
    assert by_transformers.shape[1] == 1 + len(SCRIPTS["echo"]) + 1
    assert engine.text(reciter.prompt("echo"), ["haha"]) == ""


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "criterion"])
def test_rows_of_a_batch_stop_at_different_steps(engine: Engine, reciter: Reciter, streamed: bool) -> None:
    names = ["count", "split", "late", "emoji", "accents", "broken", "empty", "runs"]
    stop = ["hello world", "END", "en e", "then"]
    prompts = [f"{'x' * number} {reciter.prompt(name)}" for number, name in enumerate(names)]
    pieces = [Pieces() for _ in names]
    stops = Stops(engine.tokenizer, stop, streamer=pieces)
    sequences = engine.generate(prompts, stops, streamed=streamed)
    expected = [recite(SCRIPTS[name], stop) for name in names]
    assert stops.texts == [one.text for one in expected]
    assert [finish.matched_stop for finish in stops.finishes] == [one.matched for one in expected]
    assert stops.texts == ["".join(one.texts) for one in pieces]
    assert [one.ends for one in pieces] == [1] * len(names)
    cut = stops.trim(sequences)
    prompt = engine.tokenizer(prompts, padding=True, return_tensors="pt").input_ids.shape[1]
    for row, name, one in zip(cut, names, expected, strict=True):
        ids = [token_id for token_id in row[prompt:].tolist() if token_id != engine.tokenizer.eos_token_id]
        assert ids == reciter.token_ids(name)[: len(ids)]
        assert engine.tokenizer.decode(ids).startswith(one.text)
        if one.matched is None:
            assert ids == reciter.token_ids(name)


@ways
@pytest.mark.parametrize("limit", range(1, 13))
def test_nothing_is_lost_at_max_new_tokens(engine: Engine, reciter: Reciter, limit: int, way: str) -> None:
    for name, stop in {
        "count": "hello world",
        "held": "STOP",
        "broken": "x",
        "emoji": "now \N{OCTAGONAL SIGN}",
    }.items():
        stops = Stops(engine.tokenizer, stop)
        engine.generate(reciter.prompt(name), stops, **generation(engine, way, max_new_tokens=limit))
        expected = recite(SCRIPTS[name], [stop], max_tokens=limit)
        assert stops.texts == [expected.text]
        reason = "stop_sequence" if expected.matched else "length" if expected.finish_reason == "length" else "eos"
        assert stops.finishes[0].reason == reason


@ways
@pytest.mark.parametrize("min_tokens", range(9))
def test_stops_count_from_min_tokens_on(engine: Engine, reciter: Reciter, min_tokens: int, way: str) -> None:
    for name, stop in {"straddle": ["XYZ", "END"], "split": ["END", " of"], "runs-end": ["a"]}.items():
        text = engine.text(reciter.prompt(name), stop, min_tokens=min_tokens, generation=generation(engine, way))
        assert text == recite(SCRIPTS[name], stop, min_tokens=min_tokens).text


@pytest.mark.skipif(not ASKS_OF_DRAFTS, reason="this transformers asks only of what it accepts")
def test_drafts_on_an_older_transformers_are_refused(engine: Engine, reciter: Reciter) -> None:
    with pytest.raises(RuntimeError, match=r"5\.18"):
        engine.generate(reciter.prompt("late"), Stops(engine.tokenizer, "END"), assistant_model=engine.draft)


def test_eos_ends_before_min_tokens_as_in_transformers(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, "STOP", min_tokens=100)
    sequences = engine.generate(reciter.prompt("held"), stops)
    assert (stops.texts, stops.finishes) == ([reciter.text("held")], [Finish("eos")])
    assert torch.equal(stops.trim(sequences), sequences)


def test_a_stop_token_ends_the_row(engine: Engine, reciter: Reciter) -> None:
    token_id = reciter.token_id("count", "ld 4")
    stops = Stops(engine.tokenizer, "never", stop_token_ids=token_id)
    sequences = engine.generate(reciter.prompt("count"), stops)
    assert stops.texts == ["1, 2, 3 hello wor"]
    assert stops.finishes == [Finish("stop_token", token_id)]
    assert stops.trim(sequences)[0, 1:].tolist() == reciter.token_ids("count")[:6]


def test_visible_stops_stay(engine: Engine, reciter: Reciter) -> None:
    assert engine.text(reciter.prompt("count"), "hello wor", include_stop=True) == "1, 2, 3 hello wor"
    assert engine.text(reciter.prompt("count"), StopSet(visible=["o w"])) == "1, 2, 3 hello w"


def test_patterns(engine: Engine, reciter: Reciter) -> None:
    stops = Stops(engine.tokenizer, StopSet(patterns=[r"w\w+d \d"]))
    engine.generate(reciter.prompt("count"), stops)
    assert stops.texts == ["1, 2, 3 hello "]
    assert stops.finishes[0].matched_stop == "world 4"


@ways
def test_no_stop_fires_in_protected_regions(engine: Engine, reciter: Reciter, way: str) -> None:
    protect = [THINKING]
    for name in ("think", "unclosed"):
        expected = recite(SCRIPTS[name], ["END"], protect=protect).text
        text = engine.text(reciter.prompt(name), "END", protect=protect, generation=generation(engine, way))
        assert text == expected
        assert text == engine.text(reciter.prompt(name), StopSet("END", protect=protect))


def test_prompt_ending_in_opening_marker_begins_region(engine: Engine, tmp_path: Path) -> None:
    reciter = Reciter({"thought": ["Is it ", "END", "?", "</think>", "The ", "END", " now"]})
    one = Engine.load(reciter.write(tmp_path))
    # The last token of the prompt decides which script the model writes. Here this token is also the opening marker of
    # the protected region.
    stops = Stops(one.tokenizer, "END", protect=[(reciter.prompt("thought"), "</think>")])
    one.generate(reciter.prompt("thought"), stops)
    assert stops.texts == ["Is it END?</think>The "]
    beams = Stops(one.tokenizer, "END", protect=[(reciter.prompt("thought"), "</think>")])
    beams.trim(one.generate(reciter.prompt("thought"), beams, streamed=False, num_beams=3))
    assert beams.texts == ["Is it END?</think>The "]
    own = StopSet("END", protect=[(reciter.prompt("thought"), "</think>")])
    assert one.text(reciter.prompt("thought"), own) == "Is it END?</think>The "
    assert one.text(reciter.prompt("thought"), "END", protect=[THINKING]) == "Is it "
    assert (
        one.text(reciter.prompt("thought"), "END", protect=[THINKING], start_protected=True) == "Is it END?</think>The "
    )


def test_the_response_template_names_the_regions(engine: Engine, reciter: Reciter) -> None:
    tokenizer = copy(engine.tokenizer)

    def protecting(field: dict[str, Any], name: str = "reasoning") -> Stops:
        tokenizer.response_template = {"fields": {"reasoning_content": field, "content": {"close": "<|im_end|>"}}}
        return Stops(tokenizer, "END", protect=name)

    for opening, closing in (("<think>", "</think>"), (["<thought>", "<think>"], ["</think>", "<|end|>"])):
        stops = protecting({"open": opening, "close": closing})
        engine.generate(reciter.prompt("think"), stops)
        assert stops.texts == [recite(SCRIPTS["think"], ["END"], protect=[THINKING]).text]
    with pytest.raises(ValueError, match="no markers for 'tool_call'"):
        protecting({"open": "<think>", "close": "</think>"}, "tool_call")
    with pytest.raises(ValueError, match="no markers for 'reasoning'"):
        protecting({"open": "<think>", "close": None})


def test_special_tokens_are_left_out_or_in(engine: Engine, reciter: Reciter) -> None:
    left_out = engine.text(reciter.prompt("harmony"), "never")
    assert left_out == engine.tokenizer.decode(reciter.token_ids("harmony"), skip_special_tokens=True)
    left_in = engine.text(reciter.prompt("harmony"), "never", skip_special_tokens=False)
    assert left_in == reciter.text("harmony")
    assert engine.text(reciter.prompt("harmony"), "<|end|>", skip_special_tokens=False).endswith("END?")


@pytest.mark.parametrize("min_tokens", [0, 2])
def test_a_stop_that_is_the_eos_beats_it(engine: Engine, reciter: Reciter, min_tokens: int) -> None:
    # An EOS fires a stop only if the stop is the whole text of the EOS.
    for stop, matched in (("<|eos|>", "<|eos|>"), ("f it<|eos|>", None)):
        stops = Stops(engine.tokenizer, stop, skip_special_tokens=False, min_tokens=min_tokens)
        engine.generate(reciter.prompt("split"), stops)
        assert (stops.texts, stops.finishes[0].matched_stop) == (["This is the END of it"], matched)


def test_without_streamer_all_but_one_token_is_prompt(engine: Engine, reciter: Reciter) -> None:
    ids = reciter.token_ids("count")
    stops = Stops(engine.tokenizer, "hello world")
    for length in range(4, 9):
        stops(torch.tensor([ids[:length]]))
    assert (stops.texts, stops.tokens_seen) == ([", 3 "], [4])


@pytest.mark.parametrize("several", [False, True])
def test_the_models_eos_may_be_others_than_the_tokenizers(engine: Engine, reciter: Reciter, several: bool) -> None:
    five = reciter.token_id("count", "5")
    eos = [reciter.token_id("count", "8"), five] if several else five
    stops = Stops(engine.tokenizer, "never", eos_token_ids=eos)
    sequences = engine.generate(reciter.prompt("count"), stops, eos_token_id=eos)
    assert (stops.texts, stops.finishes) == (["1, 2, 3 hello world 4, "], [Finish("eos")])
    assert stops.trim(sequences)[0, -1] == five


@ways
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "criterion"])
def test_a_second_eos_of_the_model_ends_its_row(engine: Engine, reciter: Reciter, streamed: bool, way: str) -> None:
    """Gemma and Llama 3 have several EOS ids, but the tokenizer knows only one. The padding after one of the
    other EOS ids must not become text. Before a fix, it became text."""
    five, filler = reciter.token_id("count", "5"), reciter.token_id("late", " fox")
    eos = [reciter.eos_token_id, five]
    prompts = [reciter.prompt("count"), reciter.prompt("late")][: 1 if WAYS[way] else 2]  # drafting needs a single row
    stops = Stops(engine.tokenizer, "fox fox")
    options = generation(engine, way, eos_token_id=eos, pad_token_id=filler)
    sequences = engine.generate(prompts, stops, streamed=streamed, **options)
    assert (stops.texts[0], stops.finishes[0]) == ("1, 2, 3 hello world 4, ", Finish("eos"))
    assert stops.tokens_seen[0] == reciter.token_ids("count").index(five) + 1
    assert stops.texts[1:] == [reciter.text("late")][: len(prompts) - 1]
    assert torch.equal(stops.trim(sequences), sequences)


def test_the_users_eos_ids_count_beside_the_models(engine: Engine, reciter: Reciter) -> None:
    five, eight = reciter.token_id("count", "5"), reciter.token_id("count", "8")
    for own, models in ((eight, five), (five, eight)):
        stops = Stops(engine.tokenizer, "never", eos_token_ids=own)
        engine.generate(reciter.prompt("count"), stops, eos_token_id=models)
        assert (stops.texts, stops.finishes) == (["1, 2, 3 hello world 4, "], [Finish("eos")])


@pytest.mark.parametrize("beams", [1, 3])
def test_a_row_that_another_criterion_ends_has_ended(engine: Engine, reciter: Reciter, beams: int) -> None:
    """transformers' `stop_strings` ends the first row early. Before a fix, stopscan read the padding of that row as
    text, and reported the row's end only when the longest row ended."""
    filler = reciter.token_id("late", " fox")
    stops = Stops(engine.tokenizer, "never")
    names = ["count", "late"]
    sequences = engine.generate(
        [reciter.prompt(name) for name in names], stops, streamed=False, stop_strings=["5"],
        tokenizer=engine.tokenizer, pad_token_id=filler, num_beams=beams,
    )  # fmt: skip
    stops.trim(sequences)
    assert stops.texts == ["1, 2, 3 hello world 4, 5", reciter.text("late")]
    assert stops.tokens_seen[0] == reciter.token_ids("count").index(reciter.token_id("count", "5")) + 1
    assert stops.finishes == [Finish("length"), Finish("eos")]


def test_trimmed_rows_have_the_padding_of_the_generation(engine: Engine, reciter: Reciter) -> None:
    filler = reciter.token_id("late", " fox")
    stops = Stops(engine.tokenizer, "hello world")
    prompts = [reciter.prompt(name) for name in ("count", "late")]
    cut = stops.trim(engine.generate(prompts, stops, pad_token_id=filler))
    assert cut[0, 1:].tolist()[:6] == [*reciter.token_ids("count")[:5], filler]


def test_a_generation_without_stops_is_as_before(engine: Engine, reciter: Reciter) -> None:
    Stops(engine.tokenizer, "END")  # installs the hooks in generate
    inputs = engine.tokenizer(reciter.prompt("count"), return_tensors="pt")
    criteria: list[Any] = []

    class Own(StoppingCriteria):
        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            criteria.append(sys._getframe(1).f_locals["self"])
            return torch.zeros(len(input_ids), dtype=torch.bool)

    engine.model.generate(**inputs, max_new_tokens=2, stopping_criteria=[Own()])
    assert type(criteria[0]) is StoppingCriteriaList


def test_importing_changes_nothing_of_transformers() -> None:
    script = """
from transformers import GenerationMixin
before = dict(vars(GenerationMixin))
import stopscan.transformers
assert dict(vars(GenerationMixin)) == before
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reciter, Engine]:
    """A model with two scripts for each length from 0 to 5. Both scripts begin with ``length`` words. Then the script
    ``stop{length}`` has a token that completes a stop, and the script ``eos{length}`` ends with EOS."""
    words = [f" word{number}" for number in range(6)]
    scripts = {f"stop{length}": [*words[:length], "W!ND", *words] for length in range(6)}
    reciter = Reciter(scripts | {f"eos{length}": words[:length] for length in range(6)})
    return reciter, Engine.load(reciter.write(tmp_path_factory.mktemp("ends")))


@ways
@pytest.mark.parametrize("length", range(6))
def test_stop_costs_as_many_steps_as_eos(ends: Any, length: int, way: str) -> None:
    reciter, engine = ends
    shapes = []
    for name in (f"stop{length}", f"eos{length}"):
        with engine.counted() as steps:
            engine.generate(reciter.prompt(name), Stops(engine.tokenizer, "!N"), **generation(engine, way))
        shapes.append(len(steps))
    assert shapes[0] == shapes[1]
    if way == "greedy":
        assert shapes[0] == length + 1
