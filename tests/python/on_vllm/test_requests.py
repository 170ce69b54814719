"""Limits on the cost of a request, requests that end at a loop, and patterns that match because the answer ends."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import FinishReason
from vllm.v1.engine.parallel_sampling import ParentRequest
from vllm_harness import checked, made, run

from stopscan import Repeat
from stopscan.vllm import _engine, install
from stopscan_conformance.reciter import Reciter

pytestmark = pytest.mark.vllm

PIECES = ["This", " is", " a", "END", "<think>", "</think>"]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Reciter]:
    reciter = Reciter({"pieces": PIECES})
    return get_tokenizer(str(reciter.write(tmp_path_factory.mktemp("pieces")))), reciter


@pytest.mark.parametrize("kind", RequestOutputKind)
@pytest.mark.parametrize("pattern", [r"\bis\b", "is$", r"is\z"])
@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        (FinishReason.STOP, ("This ", "stop", "is")),
        (FinishReason.LENGTH, ("This ", "stop", "is")),
        (FinishReason.REPETITION, ("This ", "stop", "is")),
        (FinishReason.ERROR, ("This is", "error", None)),
        (None, ("This is", "abort", None)),
    ],
)
def test_a_pattern_that_the_end_confirms_is_reported(
    pieces: tuple[Any, Reciter], finish: FinishReason | None, expected: tuple[Any, ...], pattern: str, kind: Any
) -> None:
    install()
    tokenizer, reciter = pieces
    ids = reciter.token_ids("pieces")[:2]
    steps = [[token] for token in ids] + ([[reciter.eos_token_id]] if finish is FinishReason.STOP else [])
    params = SamplingParams(extra_args={"stopscan_patterns": pattern}, output_kind=kind)
    result = run(tokenizer, steps, params, finish=finish)
    assert (result.text, result.finish_reason, result.stop_reason) == expected


LOOPS = [{"stopscan_repeat": [3, 1024, 32]}, {"stopscan_repeat": 1}]


@pytest.mark.parametrize("kind", RequestOutputKind)
@pytest.mark.parametrize("stops", [{}, {"stop": ["END"]}, {"stop": ["END"], "min_tokens": 2}])
@pytest.mark.parametrize("fields", LOOPS)
def test_a_loop_ends_at_the_token_that_proves_it(
    pieces: tuple[Any, Reciter], fields: dict[str, Any], stops: dict[str, Any], kind: Any
) -> None:
    install()
    tokenizer, reciter = pieces
    this, is_ = reciter.token_ids("pieces")[:2]
    steps = [[this, is_]] * 60
    params = SamplingParams(logprobs=0, extra_args=fields, output_kind=kind, **stops)
    result = run(tokenizer, steps, params)
    length = 32 if fields is LOOPS[0] else 256
    text = "This is" * 60
    proven = next(end for end in range(len(text)) if end >= length and text[:end].endswith(("This", " is")))
    assert result.text == text[:length]
    assert (result.finish_reason, result.stop_reason) == ("repetition", "repetition_detected")
    assert result.aborted == ["r"]
    assert "".join(tokenizer.decode([token]) for token in result.token_ids) == text[:proven]
    assert len(result.logprobs) == len(result.token_ids)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_loop_in_a_protected_region_ends_too(tmp_path: Path, hidden: bool, pieces: tuple[Any, Reciter]) -> None:
    special = ["<r>", "</r>"] if hidden else []
    reciter = Reciter({"pieces": ["<r>", "ab ", "</r>", "END"]}, special_tokens=special)
    tokenizer = get_tokenizer(str(reciter.write(tmp_path)))
    opening, block, closing, end = reciter.token_ids("pieces")
    fields = {"stopscan_repeat": [3, 64, 32], "stopscan_protect": ["<r>", "</r>"]}
    install()
    params = SamplingParams(stop=["b ab"], extra_args=fields)
    for before in ([], [opening, *[block] * 9, closing]):
        steps = [[token] for token in [*before, opening, *[block] * 40, closing, end]]
        result = run(tokenizer, steps, params)
        assert (result.finish_reason, len(result.token_ids)) == ("repetition", len(before) + 1 + 11)
    # Outside of the region, the stop still fires.
    result = run(tokenizer, [[token] for token in (opening, block, block, closing, block, block)], params)
    assert (result.finish_reason, result.stop_reason) == ("stop", "b ab")


def test_server_repeat_yields_to_request_and_streaming_input(pieces: tuple[Any, Reciter]) -> None:
    install(repeat=Repeat(3, min_length=32))
    tokenizer, reciter = pieces
    steps = [[reciter.token_ids("pieces")[0]]] * 30
    assert run(tokenizer, steps, SamplingParams()).finish_reason == "repetition"
    assert run(tokenizer, steps, SamplingParams(extra_args={"stopscan_repeat": 0})).finish_reason == "abort"
    assert checked(detokenize=False)
    with pytest.raises(VLLMValidationError, match="stopscan_repeat needs detokenize"):
        checked(detokenize=False, extra_args={"stopscan_repeat": 1})
    with pytest.raises(VLLMValidationError, match=r"stopscan_repeat .*must be true, false or"):
        checked(extra_args={"stopscan_repeat": "yes"})


def test_one_set_serves_check_request_children_and_retries(
    pieces: tuple[Any, Reciter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop set of a request is compiled once. The request's 50 answers and the next equal request share it."""
    install()
    tokenizer, reciter = pieces
    steps = [[token] for token in reciter.token_ids("pieces")]
    patterns = ["E[A-Z]D", *(f"(User|Human) {number}: [a-z]{{1,9}}END" for number in range(63))]
    fields = {"stopscan_patterns": patterns, "stopscan_protect": ["<think>", "</think>"]}
    sets = []
    make = _engine.TokenScanner

    def noting(vocabulary: Any, stops: Any, **options: Any) -> Any:
        sets.append(stops)
        return make(vocabulary, stops, **options)

    monkeypatch.setattr(_engine, "TokenScanner", noting)
    for _ in range(2):
        params = checked(n=50, stop=["never"], extra_args=fields, output_kind=RequestOutputKind.DELTA)
        parent = ParentRequest(made(params, [], None))
        for index in range(50):
            assert run(tokenizer, steps, parent.get_child_info(index)[1]).stop_reason == "END"
    assert len(sets) == 100
    assert all(each is sets[0] for each in sets)


def test_a_programs_own_requests_have_no_limits(pieces: tuple[Any, Reciter]) -> None:
    install()
    tokenizer, reciter = pieces
    steps = [[token] for token in reciter.token_ids("pieces")]
    params = SamplingParams(stop=["END", *(f"never {number}" for number in range(2000))])
    assert run(tokenizer, steps, params, by_server=False).stop_reason == "END"
    with pytest.raises(VLLMValidationError, match="stop has 2001 entries; the limit is 1024"):
        checked(stop=params.stop)


def test_long_stops_cost_the_server_no_time() -> None:
    """Requests with very long or very many stops must be checked in a fraction of a second. Before a fix, each took
    seconds, because every ending of each stop was looked up."""
    install()
    for stop in (
        ["a" * 8192],
        [f"{number:05}" + "aaa" for number in range(1024)],
        ["a" * n for n in range(1, 128)],
    ):
        start = process_time()
        checked(stop=stop)
        assert process_time() - start < 0.25


@pytest.mark.parametrize(
    ("limits", "fields", "message"),
    [
        ("patterns=2", {"stopscan_patterns": ["a", "b", "c"]}, "has 3 entries; the limit is 2"),
        ("bytes=4", {"stopscan_patterns": ["abcde"]}, "has 5 bytes of text; the limit is 4"),
        ("regions=1,patterns=9", {"stopscan_protect": list("abcd")}, "has 2 regions; the limit is 1"),
    ],
)
def test_the_limits_of_a_server(
    limits: str, fields: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stopscan.vllm._install import install_as_asked

    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    monkeypatch.setenv("STOPSCAN_VLLM_LIMITS", limits)
    install_as_asked()
    with pytest.raises(VLLMValidationError, match=message):
        checked(extra_args=fields)


@pytest.mark.parametrize("kind", RequestOutputKind)
@pytest.mark.parametrize(
    ("skip", "include", "expected"),
    [(True, False, "ab"), (True, True, "ab"), (False, False, "ab"), (False, True, "ab<|stop|>")],
)
def test_stop_of_a_skipped_special_token_fires(
    tmp_path: Path, kind: RequestOutputKind, skip: bool, include: bool, expected: str
) -> None:
    reciter = Reciter({"pieces": ["a", "b", "<|stop|>", "c"]}, special_tokens=["<|stop|>"])
    tokenizer = get_tokenizer(str(reciter.write(tmp_path)))
    install()
    params = SamplingParams(
        stop=["<|stop|>"], skip_special_tokens=skip, include_stop_str_in_output=include, output_kind=kind
    )
    result = run(tokenizer, [[token] for token in reciter.token_ids("pieces")], params)
    assert (result.text, result.finish_reason, result.stop_reason) == (expected, "stop", "<|stop|>")
    assert len(result.token_ids) == 3
