"""Tests ``stream_generate`` and ``generate``, which wrap mlx-lm's own generation loop."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

import mlx.core as mx
import mlx_lm
from mlx_harness import Steps, load
from mlx_lm.models.cache import CacheList, KVCache, RotatingKVCache, make_prompt_cache
from recital import recite

from stopscan import StopMatch, StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm import GenerationResponse, generate, stream_generate
from stopscan_conformance.reciter import SCRIPTS, Reciter

STOPS = [
    ["END"], ["hello world"], ["6"], ["fgh"], ["z"], ["XYZ"], ["STOP"], ["###"], ["abc", "b"], ["ab"], ["aab"], ["ha!"],
    ["!", " "], ["\n\nTwo", "\r\n\t"], ["<|end_of_document|>"], ["</think>"], ["<|message|>"], ["never"], ["e end"],
    ["\N{OCTAGONAL SIGN}"], ["\N{ZERO WIDTH JOINER}"], ["\N{REPLACEMENT CHARACTER}"],
]  # fmt: skip
NAMES = [*SCRIPTS]
drafted = pytest.mark.parametrize("draft", [False, True], ids=["alone", "drafted"])


def stream(mlx: tuple[Any, Any], prompt: Any, *, draft: bool = False, **options: Any) -> list[GenerationResponse]:
    model, tokenizer = mlx
    return list(stream_generate(model, tokenizer, prompt, draft_model=model if draft else None, **options))


@drafted
@pytest.mark.parametrize("name", NAMES)
def test_each_response_has_all_safe_text(mlx: tuple[Any, Any], reciter: Reciter, name: str, draft: bool) -> None:
    for stop in STOPS:
        if not any(one[0] in reciter.text(name) for one in stop):
            continue
        responses = stream(mlx, reciter.prompt(name), stop=stop, draft=draft)
        expected = recite(SCRIPTS[name], stop)
        assert [response.text for response in responses] == expected.texts, stop
        assert [response.finish_reason for response in responses] == [None] * (len(expected.texts) - 1) + ["stop"]
        assert not any(response.match for response in responses[:-1])
        matched = responses[-1].match and responses[-1].match.sequence
        assert matched == expected.matched
        assert responses[-1].finish.reason == ("stop_sequence" if matched else "eos")


@drafted
def test_all_else_is_mlx_lms(mlx: tuple[Any, Any], reciter: Reciter, draft: bool) -> None:
    model, tokenizer = mlx
    draft_model = model if draft else None
    by_mlx_lm = list(mlx_lm.stream_generate(model, tokenizer, reciter.prompt("count"), draft_model=draft_model))
    ours = stream(mlx, reciter.prompt("count"), stop="hello world", draft=draft)
    assert len(ours) == 7
    for one, other in zip(ours, by_mlx_lm, strict=False):
        assert (one.token, one.from_draft) == (other.token, other.from_draft)
        assert (one.prompt_tokens, one.generation_tokens) == (other.prompt_tokens, other.generation_tokens)
        assert mx.array_equal(one.logprobs, other.logprobs)
        assert one.generation_tps > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("max_tokens", [2, 100])
def test_without_stops_the_text_is_untouched(
    mlx: tuple[Any, Any], reciter: Reciter, name: str, max_tokens: int
) -> None:
    model, tokenizer = mlx
    by_mlx_lm = list(mlx_lm.stream_generate(model, tokenizer, reciter.prompt(name), max_tokens=max_tokens))
    ours = stream(mlx, reciter.prompt(name), max_tokens=max_tokens)
    assert [(one.text, one.finish_reason) for one in ours] == [(one.text, one.finish_reason) for one in by_mlx_lm]
    reasons = {"stop": Finish("eos"), "length": Finish("length")}
    assert [one.finish for one in ours] == [*[None] * (len(ours) - 1), reasons[ours[-1].finish_reason]]


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reciter, tuple[Any, Any]]:
    """A model with two scripts for each length from 0 to 5. Both scripts begin with ``length`` words. Then the script
    ``stop{length}`` has a token that completes a stop, and the script ``eos{length}`` ends with EOS."""
    words = [f" word{number}" for number in range(6)]
    scripts = {f"stop{length}": [*words[:length], "W!ND", *words] for length in range(6)}
    reciter = Reciter(scripts | {f"eos{length}": words[:length] for length in range(6)})
    model, tokenizer = load(reciter.write(tmp_path_factory.mktemp("ends")))
    return reciter, (model, tokenizer)


@pytest.mark.parametrize("length", range(6))
def test_stop_costs_as_many_steps_as_eos(ends: Any, length: int) -> None:
    reciter, (model, tokenizer) = ends
    ours, by_mlx_lm = Steps(model), Steps(model)
    responses = stream((ours, tokenizer), reciter.prompt(f"stop{length}"), stop="!N")
    list(mlx_lm.stream_generate(by_mlx_lm, tokenizer, reciter.prompt(f"eos{length}")))
    assert responses[-1].match.sequence == "!N"
    assert len(ours) == len(by_mlx_lm) == length + 2


@pytest.mark.parametrize("length", range(6))
def test_stop_costs_as_many_drafts_as_eos(ends: Any, length: int) -> None:
    reciter, (model, tokenizer) = ends
    counts = []
    for generator, prompt, options in (
        (stream_generate, f"stop{length}", {"stop": "!N"}),
        (mlx_lm.stream_generate, f"eos{length}", {}),
    ):
        target, draft = Steps(model), Steps(model)
        cache = [*make_prompt_cache(model), *make_prompt_cache(model)]
        options |= {"draft_model": draft, "num_draft_tokens": 2, "prompt_cache": cache}
        responses = list(generator(target, tokenizer, reciter.prompt(prompt), **options))
        assert len(responses) == length + 1
        counts.append((len(target), len(draft)))
    assert counts[0] == counts[1]


@drafted
def test_prompt_cache_equals_that_of_an_eos(ends: Any, draft: bool) -> None:
    reciter, (model, tokenizer) = ends
    offsets = []
    for generator, prompt, options in (
        (stream_generate, "stop3", {"stop": "!N"}),
        (mlx_lm.stream_generate, "eos3", {}),
    ):
        cache = make_prompt_cache(model) + (make_prompt_cache(model) if draft else [])
        if draft:
            options["draft_model"] = model
        for response in generator(model, tokenizer, reciter.prompt(prompt), prompt_cache=cache, **options):
            if response.finish_reason is not None and generator is stream_generate:
                offsets.append([part.offset for part in cache])  # the caches must be trimmed by now
        offsets.append([part.offset for part in cache])
    assert offsets[0] == offsets[1] == offsets[2]


def test_closing_closes_mlx_lms_loop(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model = Steps(mlx[0])
    responses = stream_generate(model, mlx[1], reciter.prompt("count"), stop="END")
    next(responses)
    responses.close()
    assert list(responses) == []
    assert len(model) == 2


def test_a_stop_with_the_last_allowed_token_beats_length(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    *_, last = stream(mlx, reciter.prompt("split"), stop="END", max_tokens=6)
    assert (last.finish_reason, last.match) == ("stop", StopMatch("END", 12))
    *_, last = stream(mlx, reciter.prompt("split"), stop="END", max_tokens=5)
    assert (last.finish_reason, last.finish, last.text) == ("length", Finish("length"), "E")


@pytest.mark.parametrize("max_tokens", range(1, 8))
def test_max_tokens_within_a_held_stop(mlx: tuple[Any, Any], reciter: Reciter, max_tokens: int) -> None:
    responses = stream(mlx, reciter.prompt("held"), stop="STOP", max_tokens=max_tokens)
    expected = recite(SCRIPTS["held"], ["STOP"], max_tokens=max_tokens)
    assert [response.text for response in responses] == expected.texts
    assert responses[-1].finish_reason == expected.finish_reason


@pytest.mark.parametrize("min_tokens", range(8))
def test_min_tokens(mlx: tuple[Any, Any], reciter: Reciter, min_tokens: int) -> None:
    responses = stream(mlx, reciter.prompt("straddle"), stop=["END", "XYZ"], min_tokens=min_tokens)
    expected = recite(SCRIPTS["straddle"], ["END", "XYZ"], min_tokens=min_tokens)
    assert [response.text for response in responses] == expected.texts
    assert (responses[-1].match and responses[-1].match.sequence) == expected.matched


def test_eos_ends_before_min_tokens_as_in_mlx_lm(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    responses = stream(mlx, reciter.prompt("held"), stop="STOP", min_tokens=50)
    assert "".join(response.text for response in responses) == reciter.text("held")
    assert responses[-1].finish == Finish("eos")


def test_stop_token_ids(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    five, six = reciter.token_id("count", "5"), reciter.token_id("count", "6")
    responses = stream(mlx, reciter.prompt("count"), stop_token_ids=[six, five])
    assert "".join(response.text for response in responses) == "1, 2, 3 hello world 4, "
    assert responses[-1].finish == Finish("stop_token", five)
    assert (responses[-1].finish_reason, responses[-1].match, responses[-1].token) == ("stop", None, five)


@pytest.mark.parametrize(("stop", "matched"), [("5", "5"), ("6", None), ("4, 5", None)])
def test_the_string_beats_a_stop_token_that_completes_it(
    mlx: tuple[Any, Any], reciter: Reciter, stop: str, matched: str | None
) -> None:
    five = reciter.token_id("count", "5")
    *_, last = stream(mlx, reciter.prompt("count"), stop=stop, stop_token_ids=[five])
    assert last.finish.matched_stop == (matched or five)


def test_include_stop_and_visible_stops(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    assert generate(model, tokenizer, reciter.prompt("inside"), stop="END", include_stop=True) == "The path WEND"
    assert generate(model, tokenizer, reciter.prompt("inside"), stop=StopSet(visible=["END"])) == "The path WEND"


def test_patterns(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    *_, last = stream(mlx, reciter.prompt("count"), patterns=r"w\w+d \d")
    assert last.match == StopMatch("world 4", 14, pattern=r"w\w+d \d")
    assert generate(model, tokenizer, reciter.prompt("count"), stop="3", patterns=[r"w\w+d \d"]) == "1, 2, "
    assert generate(model, tokenizer, reciter.prompt("count"), stop_token_ids=reciter.token_id("count", "2")) == "1, "


def test_bad_options_raise_at_once(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    steps = Steps(model)
    for options, error, message in (
        ({"stop": ""}, ValueError, "stop 0 is empty"),
        ({"stop": ["a", ""]}, ValueError, "stop 1 is empty"),
        ({"stop": 5}, TypeError, "expected str, got int"),
        ({"stop": [b"a"]}, TypeError, "decode"),
        ({"stop_token_ids": ["5"]}, TypeError, "str"),
        ({"stop": "a", "min_tokens": -1}, ValueError, "min_tokens: -1"),
        ({"stop": "a", "min_tokens": 6, "max_tokens": 5}, ValueError, "min_tokens 6"),
        ({"stop": "a", "start_protected": True}, ValueError, "start_protected"),
    ):
        with pytest.raises(error, match=message):
            stream_generate(steps, tokenizer, reciter.prompt("count"), **options)
    assert len(steps) == 0
    # mlx-lm itself refuses `max_tokens=0`. Before 0.32, it fails with an unrelated error.
    with pytest.raises((ValueError, UnboundLocalError), match=r"non-zero|token"):
        list(stream_generate(steps, tokenizer, reciter.prompt("count"), stop="a", max_tokens=0))


def test_unlimited(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    *_, last = stream(mlx, reciter.prompt("count"), stop="8", min_tokens=3, max_tokens=-1)
    assert last.match == StopMatch("8", 32)


@pytest.mark.parametrize("kind", ["text", "ids", "array"])
def test_prompts(mlx: tuple[Any, Any], reciter: Reciter, kind: str) -> None:
    model, tokenizer = mlx
    text = "Say <think> and count: " + reciter.prompt("count")
    prompt = {"text": text, "ids": tokenizer.encode(text), "array": mx.array(tokenizer.encode(text))}[kind]
    assert generate(model, tokenizer, prompt, stop="6") == "1, 2, 3 hello world 4, 5, "
    # A marker in the user's words opens no region.
    assert generate(model, tokenizer, prompt, stop="6", protect="reasoning") == "1, 2, 3 hello world 4, 5, "


def test_a_bare_tokenizer(mlx: tuple[Any, Any], reciter: Reciter, checkpoint: Path) -> None:
    from transformers import AutoTokenizer

    bare = AutoTokenizer.from_pretrained(checkpoint)
    assert generate(mlx[0], bare, reciter.prompt("held"), stop="not") == "Please do "
    assert generate(mlx[0], bare, reciter.prompt("held"), stop="STOP") == reciter.text("held")


def test_generate_prints_what_it_returns(
    mlx: tuple[Any, Any], reciter: Reciter, capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer = mlx
    generate(model, tokenizer, reciter.prompt("count"), stop="6")
    assert capsys.readouterr().out == ""
    text = generate(model, tokenizer, reciter.prompt("count"), verbose=True, stop="6")
    assert text == "1, 2, 3 hello world 4, 5, "
    assert capsys.readouterr().out == text + "\n"


def test_an_id_beyond_the_vocabulary_has_no_text(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    first, second = reciter.token_ids("count")[4:6]
    beyond = model.args.vocab_size - 1
    assert tokenizer.backend_tokenizer.id_to_token(beyond) is None

    def detour(tokens: mx.array, logits: mx.array) -> mx.array:
        """After the token ``first``, makes the model write an id that has no token, and then ``second``."""
        target = {first: beyond, beyond: second}.get(tokens[-1].item())
        return logits if target is None else mx.where(mx.arange(logits.shape[-1]) == target, 200.0, logits)

    responses = stream(mlx, reciter.prompt("count"), stop="hello world", logits_processors=[detour])
    assert [response.token for response in responses][4:7] == [first, beyond, second]
    assert [response.text for response in responses] == ["1", ", ", "2", ", ", "3 ", "", "", ""]
    assert responses[-1].match == StopMatch("hello world", 8)


def test_drafted_tokens_come_in_runs(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    responses = stream(mlx, reciter.prompt("alphabet"), stop="xyz", draft=True, num_draft_tokens=3)
    runs = [one.from_draft for one in responses]
    assert runs == [True, True, True, False] * 6 + [True, True]
    assert all(one.generation_tokens + 1 == other.generation_tokens for one, other in pairwise(responses))


class OfLists:
    """A model whose caches are lists of caches, as in some real models."""

    def __init__(self, model: Any) -> None:
        self.model, self.layers = model, model.layers

    def __call__(self, tokens: Any, cache: Any) -> Any:
        return self.model(tokens, cache=[part[0] for part in cache])


@drafted
@pytest.mark.parametrize("kind", ["plain", "list", "rotating"])
def test_a_prompt_cache_ends_where_the_text_ends(
    mlx: tuple[Any, Any], reciter: Reciter, draft: bool, kind: str
) -> None:
    """After a stop, the cache has the prompt and the tokens of the text. Before a fix, it also had the tokens of the
    stop. A cache that mlx-lm cannot trim (a full ``RotatingKVCache``) keeps the tokens of the stop."""
    if draft and kind == "rotating":
        pytest.skip("mlx-lm refuses drafts with such a cache")
    model, tokenizer = mlx
    prompt = tokenizer.encode(reciter.prompt("count"))
    caches = [RotatingKVCache(4) if kind == "rotating" else KVCache() for _ in range(2 if draft else 1)]
    for cache in caches:
        model(mx.array([prompt * 3]), cache=[cache])  # puts three tokens into the cache, before the generation
    if kind == "list":
        caches, model = [CacheList(cache) for cache in caches], OfLists(model)
    *_, last = stream_generate(
        model, tokenizer, prompt, stop="hello world", prompt_cache=caches, draft_model=model if draft else None
    )
    assert (last.tokens_kept, last.generation_tokens) == (5, 7)
    sizes = {cache[0].offset if kind == "list" else cache.offset for cache in caches}
    assert sizes == {3 + 1 + (7 if kind == "rotating" else 5)}


@drafted
def test_tokens_kept_at_each_end(mlx: tuple[Any, Any], reciter: Reciter, draft: bool) -> None:
    for options, kept, generated in (
        ({"stop": "6"}, 10, 11), ({"stop": "3 h"}, 4, 5), ({"stop": "6", "include_stop": True}, 11, 11),
        ({"stop": "never"}, 15, 16), ({}, 15, 16), ({"max_tokens": 3}, 3, 3),
        ({"stop": "never", "max_tokens": 3}, 3, 3),
    ):  # fmt: skip
        *others, last = stream(mlx, reciter.prompt("count"), draft=draft, **options)
        assert (last.tokens_kept, last.generation_tokens) == (kept, generated), options
        assert not any(other.tokens_kept for other in others)


@pytest.mark.parametrize("stop", [(), "END"], ids=["without stops", "with stops"])
@pytest.mark.parametrize(
    "options",
    [{"min_tokens": -1}, {"min_tokens": "x"}, {"protect": ["thoughts"]}, {"stop_token_ids": [2**40]}, {"stop": {1: 2}}],
    ids=str,
)
def test_a_wrong_value_raises_at_once(mlx: tuple[Any, Any], stop: Any, options: dict[str, Any]) -> None:
    """An option with a wrong value must raise before the first step. Before a fix, it raised only if there were
    stops."""
    with pytest.raises((TypeError, ValueError)):
        stream_generate(*mlx, "x", **{"stop": stop, **options})
