"""Whole streams in which one event reports the end. Some tests are for bugs of other projects in this report."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from finish_harness import FINISHES, STRING, as_object, outcome, read, write
from finish_streams import STREAMS, Stream

from stopscan.finish import Finish


def accumulate(api: str, events: Iterable[object]) -> Finish | None:
    """The loop of docs/finish.md: returns the last report."""
    finish = None
    for event in events:
        finish = read(api, event) or finish
    return finish


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_whole_stream_reports_once(stream: Stream) -> None:
    assert [outcome(stream.api, event) for event in stream.events] == stream.reports
    assert [outcome(stream.api, as_object(event)) for event in stream.events] == stream.reports
    finish = accumulate(stream.api, stream.events)
    assert finish is not None
    assert (finish.reason, finish.matched_stop) == stream.report


def test_exo_2122_stop_reason_and_stop_sequence() -> None:
    assert write("anthropic", STRING) == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_rapid_mlx_469_matched_stop_survives_openai_to_anthropic() -> None:
    finish = read("openai", {"choices": [{"index": 0, **write("openai", STRING)}]})
    assert finish is not None
    assert write("anthropic", finish) == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_vllm_45807_stop_token_is_no_stop_sequence() -> None:
    for stop in (2, None):
        finish = read("openai", {"choices": [{"index": 0, "finish_reason": "stop", "stop_reason": stop}]})
        assert finish is not None
        assert write("anthropic", finish) == {"stop_reason": "end_turn", "stop_sequence": None}


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
def test_vllm_55324_null_stop_sequence_is_sent(finish: Finish) -> None:
    delta = json.loads(json.dumps(write("anthropic", finish)))
    assert set(delta) == {"stop_reason", "stop_sequence"}
    assert delta["stop_sequence"] == ("END" if finish is STRING else None)


def test_vllm_55324_a_delta_without_the_key_is_read() -> None:
    assert outcome("anthropic", {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}) == ("length", None)


@pytest.mark.parametrize("stop", ["6", "hello world", "é"])
def test_smg_1447_1524_stop_is_reported_as_string(stop: str) -> None:
    finish = Finish("stop_sequence", stop, 9)
    assert write("openai", finish) == {"finish_reason": "stop", "matched_stop": stop}
    assert write("sglang", finish) == {"finish_reason": {"type": "stop", "matched": stop}}
    for api in ("openai", "sglang"):
        assert outcome(api, write(api, finish)) == ("stop_sequence", stop)


@pytest.mark.parametrize("stop_reason", ["end_turn", "tool_use", "max_tokens", "pause_turn"])
def test_ruby_llm_568_streamed_reason_is_kept(stop_reason: str) -> None:
    finish = accumulate("anthropic", STREAMS[f"anthropic {stop_reason}"].events)
    assert finish is not None
    assert write("anthropic", finish)["stop_reason"] == finish.raw == stop_reason


def test_anthropic_sdk_typescript_1204_reason_survives_later_deltas() -> None:
    later = {"type": "message_delta", "delta": {"container": None}, "usage": {"output_tokens": 26}}
    finish = accumulate("anthropic", [*STREAMS["anthropic tool_use"].events, later])
    assert finish == Finish("tool_calls", raw="tool_use")


def test_sglang_3912_empty_finish_reasons_do_not_end_stream() -> None:
    chunk = {"index": 0, "delta": {"role": None, "content": "A"}, "finish_reason": "", "matched_stop": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop", "matched_stop": "END"}
    chunks = [{"choices": [chunk]}, {"choices": [chunk]}, {"choices": [last]}]
    assert [outcome("openai", chunk) for chunk in chunks] == [None, None, ("stop_sequence", "END")]


def test_litellm_23273_error_in_model_list_keeps_answer() -> None:
    choice = {"index": 0, "finish_reason": "error", "native_finish_reason": "MALFORMED_FUNCTION_CALL"}
    assert outcome("openai", {"choices": [choice], "usage": {}}) == ("abort", None)
