"""Injects a fault into each call that stopscan's adapter makes. After the fault, vLLM must keep running, and no text
may be lost or doubled."""

from __future__ import annotations

import logging
import random
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.exceptions import VLLMValidationError
from vllm.parser import ParserManager
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import FinishReason
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.detokenizer import FastIncrementalDetokenizer
from vllm.v1.engine.output_processor import OutputProcessor
from vllm_harness import Run, SlowTokenizer, checked, made, run
from vllm_parsers import calls

from stopscan.engines import Failures
from stopscan.vllm import _adapter, _install, install, uninstall
from stopscan.vllm._detokenizer import ScanningDetokenizer
from stopscan_conformance.reciter import Reciter

pytestmark = pytest.mark.vllm

PIECES = [
    "a",
    "b",
    "E",
    "ND",
    "END",
    "\n\n",
    "<think>",
    "</think>",
    b"\xe4",
    b"\xbd",
    b"\xa0",
    b"\xff",
    "\ufffd",
    "<|end|>",
]


class Panic(BaseException):
    """Stands for a panic of Rust, which Python sees as a ``BaseException``."""


class Clock:
    """Counts the ticks (reads and calls) of a ``Faulty`` object, and raises ``error`` at tick number ``at``."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.now, self.at, self.error = 0, at, error

    def tick(self) -> None:
        self.now += 1
        if self.now == self.at:
            raise self.error("injected")


class Faulty:
    """Wraps an object. A read of an attribute is a tick, and a call is two ticks: before and after its effect."""

    def __init__(self, target: Any, clock: Clock) -> None:
        self.__dict__.update(target=target, clock=clock)

    def __getattr__(self, name: str) -> Any:
        self.clock.tick()
        value = getattr(self.target, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            self.clock.tick()
            result = value(*args, **options)
            self.clock.tick()
            return result

        return call


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Reciter]:
    reciter = Reciter({"pieces": PIECES})
    return get_tokenizer(str(reciter.write(tmp_path_factory.mktemp("pieces")))), reciter


@pytest.fixture(autouse=True)
def _way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failures, "strict", False)
    monkeypatch.setattr(Failures, "LIMIT", 10**9)
    monkeypatch.setattr(logging.getLogger("vllm.stopscan"), "disabled", True)


def through(clock: Clock, *args: Any, **options: Any) -> tuple[Run, list[ScanningDetokenizer]]:
    """Calls ``run`` while stopscan is installed and its scanners fail when ``clock`` says so. Returns the result of
    ``run``, and the detokenizers to which stopscan has given a scanner."""
    armed: list[ScanningDetokenizer] = []
    own = _adapter.arm

    def arm(theirs: Any, *parts: Any, **more: Any) -> None:
        own(theirs, *parts, **more)
        theirs.scanner = Faulty(theirs.scanner, clock)
        armed.append(theirs)

    install()
    _adapter.arm = arm
    try:
        return run(*args, **options), armed
    finally:
        _adapter.arm = own
        uninstall()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    steps=st.lists(st.lists(st.integers(0, len(PIECES) - 1), min_size=1, max_size=3), min_size=1, max_size=8),
    stops=st.lists(st.text("abEND\n日\ufffd", min_size=1, max_size=4), min_size=1, max_size=3),
    kind=st.sampled_from([RequestOutputKind.DELTA, RequestOutputKind.CUMULATIVE, RequestOutputKind.FINAL_ONLY]),
    finish=st.sampled_from([FinishReason.STOP, FinishReason.LENGTH, None]),
    include=st.booleans(),
    min_tokens=st.sampled_from([0, 0, 3]),
    slow=st.booleans(),
    extra=st.sampled_from(
        [None, None, {"stopscan_patterns": ["[ab]E"]}, {"stopscan_protect": ["<think>", "</think>"]}]
    ),
    at=st.integers(1, 60),
    error=st.sampled_from([ValueError, RuntimeError, MemoryError, AttributeError, IndexError, Panic]),
)
def test_nothing_is_lost_or_doubled_whichever_call_fails(
    pieces: tuple[Any, Reciter],
    steps: list[list[int]],
    stops: list[str],
    kind: RequestOutputKind,
    finish: FinishReason | None,
    include: bool,
    min_tokens: int,
    slow: bool,
    extra: dict[str, Any] | None,
    at: int,
    error: type[BaseException],
) -> None:
    tokenizer, reciter = pieces
    tokenizer = SlowTokenizer(tokenizer) if slow else tokenizer
    ids = reciter.token_ids("pieces")
    tokens = [[ids[number] for number in step] for step in steps]

    def params(stop: list[str]) -> SamplingParams:
        return SamplingParams(
            stop=stop, include_stop_str_in_output=include, min_tokens=min_tokens, output_kind=kind, extra_args=extra
        )

    ours, made = through(Clock(at, error), tokenizer, tokens, params(stops), finish=finish)
    if not made or made[0].scanner is not None:
        return
    # Without a stop, vLLM returns the whole text. The text that stopscan returns must be a prefix of it, so that
    # nothing is lost or doubled.
    whole = run(tokenizer, tokens, params([]), finish=finish).text
    assert whole.startswith(ours.text)
    if extra:
        assert ours.finish_reason == "error" or ours.text == whole or ours.finish_reason in ("abort", "length", "stop")
        return
    if ours.stop_reason in stops:
        end = len(ours.text) + (0 if include else len(ours.stop_reason))
        assert whole[:end].endswith(ours.stop_reason)
    else:
        assert ours.text == whole


def test_a_stream_goes_on_with_vllms_stops(pieces: tuple[Any, Reciter]) -> None:
    tokenizer, reciter = pieces
    ids = reciter.token_ids("pieces")
    tokens = [[ids[PIECES.index(piece)]] for piece in ("a", "b", "E", "ND", "a")]
    for at in range(1, 12):
        params = SamplingParams(stop=["END"], output_kind=RequestOutputKind.DELTA)
        result, (made,) = through(Clock(at, ValueError), tokenizer, tokens, params)
        assert (result.text, result.finish_reason, result.stop_reason) == ("ab", "stop", "END")
        assert made.scanner is None


def test_failed_request_vllm_lacks_ends_with_error(pieces: tuple[Any, Reciter]) -> None:
    tokenizer, reciter = pieces
    tokens = [[token] for token in reciter.token_ids("pieces")[:3]]
    params = SamplingParams(extra_args={"stopscan_patterns": ["E[ND]+"]}, output_kind=RequestOutputKind.DELTA)
    result, _ = through(Clock(4, ValueError), tokenizer, tokens, params)
    assert (result.finish_reason, result.aborted) == ("error", ["r"])


def test_500_faulty_streams_lose_nothing(pieces: tuple[Any, Reciter]) -> None:
    """After a fault, a request with only stop strings must have the same result as without stopscan. A request with
    options that vLLM does not have must end with an error."""
    tokenizer, reciter = pieces
    ids = dict(zip(PIECES, reciter.token_ids("pieces"), strict=True))
    whole = ["a", "b", "E", "ND", "END", "\n\n", "<think>", "</think>", "<|end|>"]
    broken = 0
    for seed in range(500):
        chosen = random.Random(seed)
        steps = [[ids[chosen.choice(whole)] for _ in range(chosen.randint(1, 3))] for _ in range(chosen.randint(1, 9))]
        beyond = chosen.choice([None, None, {"stopscan_patterns": ["[ab]EN"]}, {"stopscan_repeat": [3, 8, 32]}])
        params = SamplingParams(
            stop=chosen.sample(["END", "aE", "\n\n", "bb", "NDa", "a", "ENDE"], chosen.randint(1, 3)),
            include_stop_str_in_output=chosen.random() < 0.3,
            min_tokens=chosen.choice([0, 0, 3]),
            output_kind=chosen.choice([*RequestOutputKind]),
            extra_args=beyond,
        )
        kind = SlowTokenizer if chosen.random() < 0.3 else lambda same: same
        finish = chosen.choice([FinishReason.STOP, FinishReason.LENGTH, None])
        # `run` also asserts that a cumulative text never shrinks.
        ours, made = through(Clock(chosen.randint(1, 25), RuntimeError), kind(tokenizer), steps, params, finish=finish)
        theirs = run(kind(tokenizer), steps, params, finish=finish)
        failed = bool(made) and made[0].scanner is None
        broken += failed
        if failed and beyond:
            assert ours.finish_reason == "error"
            alone = SamplingParams(include_stop_str_in_output=params.include_stop_str_in_output)
            assert run(kind(tokenizer), steps, alone, finish=finish).text.startswith(ours.text)
        elif not beyond:
            assert (ours.text, ours.token_ids) == (theirs.text, theirs.token_ids), seed
            assert (ours.finish_reason, ours.stop_reason) == (theirs.finish_reason, theirs.stop_reason), seed
    assert broken > 200


@pytest.fixture
def _logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failures, "LIMIT", 3)
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("vllm.stopscan"), "disabled", False)


def fail(*args: Any, **options: Any) -> Any:
    raise LookupError("injected")


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    # A record arrives twice if another test made vLLM configure its loggers again.
    return [*{id(record): record.levelname for record in caplog.records if record.name == "vllm.stopscan"}.values()]


@pytest.mark.usefixtures("_logged")
@pytest.mark.parametrize("broken", ["arm", "read_options"])
def test_three_failures_turn_stopscan_off_and_are_logged(
    broken: str, pieces: tuple[Any, Reciter], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer, reciter = pieces
    tokens = [[token] for token in reciter.token_ids("pieces")[:4]]
    install()
    with monkeypatch.context() as broke:
        broke.setattr(_adapter, broken, fail)
        with pytest.raises(VLLMValidationError, match="stop: stopscan failed"):
            run(tokenizer, tokens, SamplingParams(stop=["END"], extra_args={"stopscan_patterns": ["a"]}))
        for _ in range(3):
            assert run(tokenizer, tokens, SamplingParams(stop=["END"])).stop_reason == "END"
    assert logged(caplog) == ["ERROR", "ERROR"]
    for asked in ({"stopscan_patterns": ["a"]}, {"stopscan_protect": ["<a>", "</a>"]}, {"stopscan_repeat": 1}):
        with pytest.raises(VLLMValidationError, match="switched off, because stopscan failed"):
            checked(stop=["END"], extra_args=asked)
    ours, _ = through_detokenizer(tokenizer, stop=["END"])
    assert ours is FastIncrementalDetokenizer
    assert run(tokenizer, tokens, SamplingParams(stop=["END"])).stop_reason == "END"
    install()
    assert checked(extra_args={"stopscan_patterns": ["a"]})
    ours, _ = through_detokenizer(tokenizer, stop=["END"])
    assert ours is not FastIncrementalDetokenizer


def through_detokenizer(tokenizer: Any, **params: Any) -> tuple[type, Any]:
    processor = OutputProcessor(tokenizer, log_stats=False)
    processor.add_request(made(SamplingParams(**params), [], None), None)
    detokenizer = processor.request_states["r"].detokenizer
    return type(detokenizer), detokenizer


@pytest.mark.usefixtures("_logged")
def test_three_failed_streams_switch_stopscan_off(pieces: tuple[Any, Reciter]) -> None:
    tokenizer, reciter = pieces
    install()
    for _ in range(3):
        cls, detokenizer = through_detokenizer(tokenizer, stop=["END"])
        assert cls is not FastIncrementalDetokenizer
        detokenizer.scanner = None
        vars(detokenizer).update(scanner=object(), native=True)
        assert detokenizer.update(reciter.token_ids("pieces")[:1], False) is None
        assert detokenizer.output_text == "a"
    assert through_detokenizer(tokenizer, stop=["END"])[0] is FastIncrementalDetokenizer


HOSTILE: list[Any] = [
    5, True, "x", [], [[]], {"a": 1}, [1], [["a"]], -1, 2**70, 1.5, float("nan"), "(", "a.*b", "\ud800",
    ["\ud800", "b"], ["<a>"], ["<a>", ""], "x" * 100_000, ["x"] * 5000, [0, 0, 0], [4, 0, 256], None, b"x",
]  # fmt: skip


@pytest.mark.usefixtures("_logged")
def test_what_a_client_sends_never_counts_as_a_failure(pieces: tuple[Any, Reciter]) -> None:
    tokenizer, reciter = pieces
    tokens = [[token] for token in reciter.token_ids("pieces")[:4]]
    install()
    for name in ("patterns", "max_held", "protect", "start_protected", "repeat", "nonsense", ""):
        for value in HOSTILE:
            for stop in ([], ["END"], ["\ud800"], ["x" * 70_000]):
                with suppress(VLLMValidationError):  # vLLM itself refuses some of these values
                    params = SamplingParams(stop=stop, extra_args={f"stopscan_{name}": value, "other": value})
                    with suppress(VLLMValidationError):
                        AsyncLLM.generate(None, "", params, "r")
                    run(tokenizer, tokens, params)
    for min_tokens in (2**31, 2**70):
        run(tokenizer, tokens, SamplingParams(stop=["END"], min_tokens=min_tokens, max_tokens=None))
    assert _install._adapter.failures.count == 0


def test_no_exception_of_ours_leaves_a_hook(pieces: tuple[Any, Reciter], monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, reciter = pieces
    tokens = [[token] for token in reciter.token_ids("pieces")[:4]]
    monkeypatch.setattr(_adapter.Adapter, "_read", fail)
    monkeypatch.setattr(_adapter.Engine, "know", fail)
    install()
    assert checked(stop=["END"]).stop == ["END"]
    assert run(tokenizer, tokens, SamplingParams(stop=["END"])).stop_reason == "END"
    assert ParserManager.get_parser("hermes", None, True) is not None
    chat = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}], stop=["END"])
    assert chat.to_sampling_params(40, {}).stop == ["END"]
    assert ResponsesRequest(model="m", input="x", stop=["END"]).to_sampling_params(40, {}).stop == ["END"]


def test_chat_uses_vllms_stops_while_off(marked: Any, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While stopscan is switched off, vLLM's own stops apply, even in regions that are protected by default. If a
    request asks for protected regions, it is refused."""
    install()
    start(None, "deepseek_r1")
    calls(None, "deepseek_r1")
    chat = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}], stop=["END"])
    tokens = [[token] for token in marked.encode("a</think>END", add_special_tokens=False)]
    assert run(marked, tokens, chat.to_sampling_params(40, {})).stop_reason == "END"
    _install._adapter.failures.off = True
    assert run(marked, tokens, chat.to_sampling_params(40, {})).stop_reason == "END"
    monkeypatch.setattr(chat, "vllm_xargs", {"stopscan_protect": ["reasoning"]})
    with pytest.raises(VLLMValidationError, match="stopscan_protect is switched off"):
        chat.to_sampling_params(40, {})
