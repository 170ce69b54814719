"""Faults at every call that the adapter makes: no text is lost or doubled, and vLLM goes on."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.tokenizers import get_tokenizer
from vllm.v1.engine import FinishReason
from vllm_harness import Run, SlowTokenizer, run

from stopscan._engine.circuit import Circuit
from stopscan.vllm import _adapter, _hooks, install, uninstall
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
    """What a panic of Rust is to Python."""


class Clock:
    """Raises at one of the calls and reads that are counted here."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.now, self.at, self.error = 0, at, error

    def tick(self) -> None:
        self.now += 1
        if self.now == self.at:
            raise self.error("injected")


class Faulty:
    """Stands before an object; each read of it, and each call before and after its effect, is a tick."""

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
    monkeypatch.setattr(Circuit, "strict", False)
    monkeypatch.setattr(Circuit, "LIMIT", 10**9)
    monkeypatch.setattr(logging.getLogger("vllm.stopscan"), "disabled", True)


def through(clock: Clock, *args: Any, **options: Any) -> tuple[Run, list[ScanningDetokenizer]]:
    """What comes with stopscan and a fault, and the detokenizer."""
    made: list[ScanningDetokenizer] = []
    own = _adapter.Adapter._detokenizer

    def build(adapter: Any, *parts: Any) -> ScanningDetokenizer:
        detokenizer = own(adapter, *parts)
        faulty = detokenizer._scanner = Faulty(detokenizer._scanner, clock)
        detokenizer._feed = lambda token_id: faulty.feed(token_id)
        made.append(detokenizer)
        return detokenizer

    install()
    _adapter.Adapter._detokenizer = build  # type: ignore[method-assign]
    try:
        return run(*args, **options), made
    finally:
        _adapter.Adapter._detokenizer = own  # type: ignore[method-assign]
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
    if not made or made[0]._after is None:
        return
    # Without a stop, vLLM gives the whole text; what came of ours is a beginning of it, once.
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
        assert made._after is not None


def test_a_request_that_vllm_cannot_keep_ends_with_an_error(pieces: tuple[Any, Reciter]) -> None:
    tokenizer, reciter = pieces
    tokens = [[token] for token in reciter.token_ids("pieces")[:3]]
    params = SamplingParams(extra_args={"stopscan_patterns": ["E[ND]+"]}, output_kind=RequestOutputKind.DELTA)
    result, _ = through(Clock(4, ValueError), tokenizer, tokens, params)
    assert (result.finish_reason, result.aborted) == ("error", ["r"])


def test_three_failures_turn_stopscan_off_and_are_logged(
    pieces: tuple[Any, Reciter], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Circuit, "LIMIT", 3)
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("vllm.stopscan"), "disabled", False)
    tokenizer, reciter = pieces
    tokens = [[token] for token in reciter.token_ids("pieces")[:4]]
    install()

    def fail(*args: Any) -> Any:
        raise LookupError("injected")

    monkeypatch.setattr(_adapter, "token_scanner", fail)
    for _ in range(3):
        assert run(tokenizer, tokens, SamplingParams(stop=["END"])).stop_reason == "END"
    monkeypatch.undo()
    # Where another test made vLLM configure its loggers again, a record arrives twice.
    logged = {id(record): record.levelname for record in caplog.records if record.name == "vllm.stopscan"}
    assert [*logged.values()] == ["ERROR", "ERROR"]
    monkeypatch.setattr(Circuit, "LIMIT", 3)
    assert run(tokenizer, tokens, SamplingParams(stop=["END"])).stop_reason == "END"
    with pytest.raises(VLLMValidationError, match="off here, because stopscan failed"):
        SamplingParams.from_optional(extra_args={"stopscan_patterns": ["a"]})
    install()
    assert SamplingParams.from_optional(extra_args={"stopscan_patterns": ["a"]})
    assert _hooks.installed()
