"""Sends the same tokens through vLLM's detokenizer and through stopscan's. vLLM's own output processor calls both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from hypothesis import given
from hypothesis import strategies as st
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import FinishReason
from vllm.v1.engine.detokenizer import FastIncrementalDetokenizer, IncrementalDetokenizer
from vllm.v1.engine.output_processor import OutputProcessor, RequestState
from vllm_harness import Run, SlowTokenizer, made, run

from stopscan.tokens import TokenScanner
from stopscan.vllm import install, uninstall
from stopscan_conformance.reciter import Reciter

pytestmark = pytest.mark.vllm

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
# The texts of the tokens. Some tokens are halves of "é" or "日", alone or beside a letter. One token is the beginning
# of a character that never ends. U+FFFD is the character that replaces broken characters. One text is that of a special
# token. There are enough letters for stops that contain other stops.
PIECES = ["a", "b", "c", "ab", "bca", b"\xc3", b"\xa9", b"\xe6\x97", b"c\xe6\x97", b"\xa5", b"\xa5a", b"\xf0\x9f",
          "\ufffd", " ", "<think>", "<|end|>"]  # fmt: skip
# If stopscan decodes the tokens, broken characters come out sooner than in vLLM. So tests that compare outputs must
# avoid broken characters. `WHOLE` replaces half a character by both its halves, and U+FFFD by "b". `tokens_of` replaces
# all remaining bytes by "a".
WHOLE = {b"\xc3": [b"\xc3", b"\xa9"], b"\xa9": [b"\xc3", b"\xa9"], b"\xe6\x97": [b"\xe6\x97", b"\xa5"], "\ufffd": ["b"]}


def tokens_of(reciter: Reciter, steps: list[list[int]], *, whole: bool) -> list[list[int]]:
    """Returns the token ids of the pieces in ``steps``. Each number in ``steps`` is an index into ``PIECES``. If
    ``whole`` is true, first replaces the pieces that would leave a character broken."""
    found = []
    for step in steps:
        chosen = [PIECES[number] for number in step]
        if whole:
            mended = [WHOLE.get(piece, ["a"] if isinstance(piece, bytes) else [piece]) for piece in chosen]
            chosen = [piece for some in mended for piece in some]
        found.append([reciter.token_id("pieces", piece) for piece in chosen])
    return found


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Reciter]:
    reciter = Reciter({"pieces": PIECES})
    return get_tokenizer(str(reciter.write(tmp_path_factory.mktemp("pieces")))), reciter


def both(tokenizer: Any, *args: Any, **options: Any) -> tuple[Run, Run]:
    by_vllm = run(tokenizer, *args, **options)
    install()
    try:
        return by_vllm, run(tokenizer, *args, **options)
    finally:
        uninstall()


def held(text: str, stops: list[str]) -> int:
    """How many characters at the end of ``text`` may still become one of the stops that vLLM can report."""
    able = [
        stop
        for place, stop in enumerate(stops)
        if not any(other in stop[:-1] for other in stops) and not stop.endswith(tuple(stops[:place]))
    ]
    return max((k for stop in able for k in range(1, len(stop)) if text.endswith(stop[:k])), default=0)


stops = st.lists(st.text("abcé日 \ufffd", min_size=1, max_size=5), max_size=4)
steps = st.lists(st.lists(st.integers(0, len(PIECES) - 1), min_size=1, max_size=4), min_size=1, max_size=8)
ends = st.sampled_from(["eos", "stop token", "length", "abort"])


@given(
    prompt=st.lists(st.integers(0, len(PIECES) - 1), max_size=3),
    stops=stops,
    steps=steps,
    end=ends,
    slow=st.booleans(),
    include=st.booleans(),
    min_tokens=st.integers(0, 6),
    skip_special=st.booleans(),
    kind=st.sampled_from([RequestOutputKind.DELTA, RequestOutputKind.CUMULATIVE, RequestOutputKind.FINAL_ONLY]),
)
def test_same_outputs_as_vllm_and_never_later(
    pieces: tuple[Any, Reciter],
    prompt: list[int],
    stops: list[str],
    steps: list[list[int]],
    end: str,
    slow: bool,
    include: bool,
    min_tokens: int,
    skip_special: bool,
    kind: RequestOutputKind,
) -> None:
    tokenizer, reciter = pieces
    ids = reciter.token_ids("pieces")
    tokens = tokens_of(reciter, steps, whole=not slow)
    if end == "eos":
        tokens[-1].append(reciter.eos_token_id)
    by_vllm, ours = both(
        SlowTokenizer(tokenizer) if slow else tokenizer,
        tokens,
        SamplingParams(
            stop=stops,
            include_stop_str_in_output=include,
            min_tokens=min_tokens,
            skip_special_tokens=skip_special,
            output_kind=kind,
            logprobs=1,
        ),
        finish={"length": FinishReason.LENGTH, "abort": None}.get(end, FinishReason.STOP),
        stop_reason=tokens[-1][-1] if end == "stop token" else None,
        prompt=[ids[number] for number in prompt],
    )
    assert ours.text == by_vllm.text
    assert (ours.finish_reason, ours.stop_reason) == (by_vllm.finish_reason, by_vllm.stop_reason)
    assert (ours.token_ids, ours.logprobs) == (by_vllm.token_ids, by_vllm.logprobs)
    assert (ours.cumulative_logprob, ours.aborted) == (by_vllm.cumulative_logprob, by_vllm.aborted)
    for place in range(len(by_vllm.texts)):
        assert "".join(ours.texts[: place + 1]).startswith("".join(by_vllm.texts[: place + 1]))


@given(steps=steps)
def test_broken_characters_come_as_soon_as_they_are_certain(
    pieces: tuple[Any, Reciter], steps: list[list[int]]
) -> None:
    tokenizer, reciter = pieces
    tokens = tokens_of(reciter, steps, whole=False)
    params = SamplingParams(stop=["never"], skip_special_tokens=False, output_kind=RequestOutputKind.DELTA)
    by_vllm, ours = both(tokenizer, tokens, params, finish=FinishReason.LENGTH)
    bytes_ = [
        piece if isinstance(piece, bytes) else piece.encode()
        for step in steps
        for piece in map(PIECES.__getitem__, step)
    ]
    text = b"".join(bytes_).decode(errors="replace")
    assert text.startswith(ours.text)
    assert ours.text.startswith(by_vllm.text)
    assert not text[len(ours.text) :].strip("\ufffd")


@pytest.mark.parametrize("kind", RequestOutputKind)
def test_a_long_text_comes_whole(pieces: tuple[Any, Reciter], kind: RequestOutputKind) -> None:
    tokenizer, reciter = pieces
    a, b, c = reciter.token_ids("pieces")[:3]
    steps = [[a] * 1500, [b], [b] * 1500, *[[c]] * 1500]
    by_vllm, ours = both(tokenizer, steps, SamplingParams(stop=["ca"], output_kind=kind), finish=FinishReason.STOP)
    assert ours.text == by_vllm.text == "a" * 1500 + "b" * 1501 + "c" * 1499


def test_an_id_that_is_no_tokens_has_no_text(pieces: tuple[Any, Reciter]) -> None:
    # Many models have more ids than tokens, because the number of ids is rounded up.
    tokenizer, reciter = pieces
    a, half, other_half = (reciter.token_id("pieces", piece) for piece in ("a", b"\xc3", b"\xa9"))
    padding = len(tokenizer) + 7
    steps = [[token] for token in (padding, a, half, padding, other_half, padding)]
    by_vllm, ours = both(tokenizer, steps, SamplingParams(stop=["é"]), finish=FinishReason.LENGTH, prompt=[padding])
    assert (ours.text, ours.stop_reason, ours.token_ids) == (by_vllm.text, by_vllm.stop_reason, by_vllm.token_ids)
    assert (ours.text, ours.stop_reason) == ("a", "é")


@pytest.mark.parametrize("kind", RequestOutputKind)
@pytest.mark.parametrize("end", ["length", "stop token"])
def test_before_0_32_tokens_behind_a_stop_keep_logprobs(
    pieces: tuple[Any, Reciter], kind: RequestOutputKind, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer, reciter = pieces
    monkeypatch.delattr(OutputProcessor, "_trim_surplus_tokens")
    monkeypatch.setattr(OutputProcessor, "__getattr__", lambda self, name: lambda *_: None, raising=False)
    step = reciter.token_ids("pieces")[:5]
    finish, stop_reason = (FinishReason.STOP, step[-1]) if end == "stop token" else (FinishReason.LENGTH, None)
    params = SamplingParams(stop=["b"], output_kind=kind, logprobs=1)
    install()
    result = run(tokenizer, [step], params, finish=finish, stop_reason=stop_reason)
    assert (result.text, result.stop_reason, result.token_ids) == ("a", "b", step)
    assert [next(iter(position)) for position in result.logprobs] == step


def detokenizer(tokenizer: Any, *prompt: int, **params: Any) -> Any:
    """The detokenizer that vLLM makes for a new request."""
    processor, params = OutputProcessor(tokenizer, log_stats=False), SamplingParams(**params)
    processor.add_request(made(params, prompt, None), None)
    return processor.request_states["r"].detokenizer


def test_native_vocabulary_makes_vllms_text(pieces: tuple[Any, Reciter]) -> None:
    tokenizer, reciter = pieces
    letter, half = reciter.token_ids("pieces")[0], reciter.token_ids("pieces")[5]
    install()

    def natively(tokenizer: Any, *prompt: int, **params: Any) -> bool:
        return isinstance(detokenizer(tokenizer, *prompt, **params).scanner, TokenScanner)

    assert natively(tokenizer, stop=["END"])
    assert natively(tokenizer, letter, stop=["END"], skip_special_tokens=False)
    assert natively(tokenizer, stop=["END"], spaces_between_special_tokens=False)
    assert not natively(tokenizer, half, stop=["END"])
    assert not natively(tokenizer, stop=["END"], skip_special_tokens=False, spaces_between_special_tokens=False)
    assert not natively(SlowTokenizer(tokenizer), stop=["END"])


def test_vllms_detokenizer_serves_requests_without_stops(
    pieces: tuple[Any, Reciter],
) -> None:
    install()
    assert type(detokenizer(pieces[0])) is FastIncrementalDetokenizer
    assert type(detokenizer(None, stop=["END"])) is IncrementalDetokenizer


def test_request_without_stops_pays_for_no_hook(pieces: tuple[Any, Reciter]) -> None:
    """stopscan wraps no function that vLLM calls for each token, except in requests with patterns."""
    tokenizer, _ = pieces
    way = [OutputProcessor.process_outputs, RequestState.make_request_output, RequestState._new_completion_output]
    way += [FastIncrementalDetokenizer.update, FastIncrementalDetokenizer.get_next_output_text]
    install()
    now = [OutputProcessor.process_outputs, RequestState.make_request_output, RequestState._new_completion_output]
    now += [FastIncrementalDetokenizer.update, FastIncrementalDetokenizer.get_next_output_text]
    assert now == way
    for fields, hooked in (
        ({}, False),
        ({"stop": ["END"]}, False),
        ({"extra_args": {"stopscan_patterns": "E$"}}, True),
    ):
        processor = OutputProcessor(tokenizer, log_stats=False)
        processor.add_request(made(SamplingParams(**fields), [], None), None)
        assert ("_new_completion_output" in vars(processor.request_states["r"])) == hooked


@given(stops=stops, steps=steps)
def test_withholds_what_may_become_a_stop_and_no_more(
    pieces: tuple[Any, Reciter], stops: list[str], steps: list[list[int]]
) -> None:
    tokenizer, reciter = pieces
    tokens = tokens_of(reciter, steps, whole=True)
    every_token, _ = both(tokenizer, tokens, SamplingParams(output_kind=RequestOutputKind.DELTA))
    _, ours = both(tokenizer, tokens, SamplingParams(stop=stops, output_kind=RequestOutputKind.DELTA))
    running = ours.texts[:-1]
    for place in range(len(running)):
        text = "".join(every_token.texts[: place + 1])
        assert len("".join(ours.texts[: place + 1])) == len(text) - held(text, stops)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vllm_own_cases(case: dict[str, Any], stopscan: str, tmp_path: Path) -> None:
    reciter = Reciter({"case": case["pieces"]})
    tokens = reciter.token_ids("case")
    finish, stop_reason = None, None
    if "stop_token" in case:
        finish, stop_reason = FinishReason.STOP, reciter.token_id("case", case["stop_token"])
        del tokens[tokens.index(stop_reason) + 1 :]
    if case.get("eos"):
        finish = FinishReason.STOP
        tokens.append(reciter.eos_token_id)
    result = run(
        get_tokenizer(str(reciter.write(tmp_path))),
        [tokens] if case.get("one_step") else [[token] for token in tokens],
        SamplingParams(
            stop=case.get("stop", []),
            include_stop_str_in_output=case.get("include_stop", False),
            min_tokens=case.get("min_tokens", 0),
            output_kind=RequestOutputKind.CUMULATIVE,
        ),
        finish=finish,
        stop_reason=stop_reason,
    )
    expected = stop_reason if "stop_token" in case else case["stop_reason"]
    assert (result.text, result.stop_reason) == (case["text"], expected)
    if hasattr(OutputProcessor, "_trim_surplus_tokens") or not case.get("one_step"):
        assert len(result.token_ids) == case["tokens"]


@pytest.mark.parametrize("stops", [["abc", "b"], ["bc", "abcd"]])
def test_min_tokens_with_nested_stops_follows_vllms_rule(pieces: tuple[Any, Reciter], stops: list[str]) -> None:
    # Here one stop contains a shorter stop. If the shorter stop ends within `min_tokens`, vLLM fires the longer one,
    # but stopscan would not. So stopscan leaves requests with these stops and `min_tokens` to vLLM.
    tokenizer, reciter = pieces
    tokens = [[reciter.token_id("pieces", piece)] for piece in ("a", "b", "c", " ", "ab", "c", "a")]
    install()
    assert type(detokenizer(tokenizer, stop=stops, min_tokens=2)) is FastIncrementalDetokenizer
    assert type(detokenizer(tokenizer, stop=stops)) is not FastIncrementalDetokenizer
    uninstall()
    for least in range(8):
        by_vllm, ours = both(tokenizer, tokens, SamplingParams(stop=stops, min_tokens=least))
        assert (ours.text, ours.stop_reason) == (by_vllm.text, by_vllm.stop_reason)
    install()
    beyond = {"stopscan_repeat": 1}, {"stopscan_patterns": "never"}, {"stopscan_protect": ["<think>", "</think>"]}
    for fields in beyond:
        params = SamplingParams(stop=["abc", "b"], min_tokens=2, extra_args=fields)
        ours = run(tokenizer, tokens[:3], params)
        assert (ours.text, ours.stop_reason) == ("abc", None)
