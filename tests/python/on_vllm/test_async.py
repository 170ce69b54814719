"""``AsyncLLM`` streams, with stopscan off and on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm import SamplingParams
from vllm.engine.protocol import StreamingInput
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind
from vllm_async import Engine, collect
from vllm_streams import STREAMS, Stream

from stopscan.vllm import install

pytestmark = pytest.mark.vllm

request_ids = map(str, count())


@pytest.fixture(scope="module")
def engine(checkpoint: Path) -> Iterator[Engine]:
    engine = Engine(checkpoint)
    yield engine
    engine.close()


@pytest.fixture(params=["off", "on"])
def generate(request: pytest.FixtureRequest, engine: Engine) -> Callable[..., AsyncIterator[Any]]:
    """``AsyncLLM.generate``, once as it is ("off") and once with stopscan installed ("on")."""
    if request.param == "on":
        install()

    def stream(prompt: str, **params: Any) -> AsyncIterator[Any]:
        params = SamplingParams(**{"temperature": 0, "max_tokens": 40, **params})
        return engine.engine.generate(prompt, params, next(request_ids))

    stream.row = request.param
    return stream


@pytest.mark.parametrize("row", STREAMS, ids=lambda row: row["name"])
def test_deltas(engine: Engine, reciter: Any, row: dict[str, Any], generate: Any) -> None:
    stream, kind = Stream(row["script"]), RequestOutputKind.DELTA
    outputs = engine.run(collect(generate(reciter.prompt(row["script"]), output_kind=kind, **row["params"])))
    for output in outputs:
        stream.add(output.outputs[0].text, len(output.outputs[0].token_ids))
    expected = row[generate.row]
    stream.check(expected)
    last = outputs[-1].outputs[0]
    assert (last.finish_reason, last.stop_reason) == (expected["finish_reason"], expected["stop_reason"])
    assert [output.finished for output in outputs] == [False] * (len(outputs) - 1) + [True]


@pytest.mark.parametrize("row", STREAMS, ids=lambda row: row["name"])
def test_the_whole_text_each_time_or_at_the_end(
    engine: Engine, reciter: Any, row: dict[str, Any], generate: Any
) -> None:
    prompt, expected = reciter.prompt(row["script"]), row[generate.row]
    cumulative = engine.run(collect(generate(prompt, output_kind=RequestOutputKind.CUMULATIVE, **row["params"])))
    final = engine.run(collect(generate(prompt, output_kind=RequestOutputKind.FINAL_ONLY, **row["params"])))
    texts = [output.outputs[0].text for output in cumulative]
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert len(final) == 1
    for output in (cumulative[-1], final[0]):
        (answer,) = output.outputs
        assert output.finished
        assert (answer.text, len(answer.token_ids)) == (expected["text"], expected["tokens"])
        assert (answer.finish_reason, answer.stop_reason) == (expected["finish_reason"], expected["stop_reason"])


@pytest.mark.parametrize("include", [False, True])
def test_a_stop_token_id(engine: Engine, reciter: Any, generate: Any, include: bool) -> None:
    stop, kind = reciter.token_id("count", "6"), RequestOutputKind.FINAL_ONLY
    request = {"stop": ["nine"], "stop_token_ids": [stop], "include_stop_str_in_output": include, "output_kind": kind}
    (output,) = engine.run(collect(generate(reciter.prompt("count"), **request)))
    (answer,) = output.outputs
    assert answer.text == "1, 2, 3 hello world 4, 5, " + "6" * include
    assert (answer.finish_reason, answer.stop_reason, answer.token_ids[-1]) == ("stop", stop, stop)


def test_two_answers_and_their_logprobs(engine: Engine, reciter: Any, generate: Any) -> None:
    ids = reciter.token_ids("split")[:6]
    for kind in RequestOutputKind:
        params = {"n": 2, "temperature": 1, "stop": ["END"], "logprobs": 0, "output_kind": kind}
        outputs = engine.run(collect(generate(reciter.prompt("split"), **params)))
        assert outputs[-1].finished
        for index in (0, 1):
            answers = [answer for output in outputs for answer in output.outputs if answer.index == index]
            if kind is not RequestOutputKind.DELTA:
                answers = answers[-1:]
            assert "".join(answer.text for answer in answers) == "This is the "
            assert [token for answer in answers for token in answer.token_ids] == ids
            assert [token for answer in answers for position in answer.logprobs for token in position] == ids
            assert (answers[-1].finish_reason, answers[-1].stop_reason) == ("stop", "END")


def test_the_request_ends_with_the_stop(engine: Engine, reciter: Any, generate: Any) -> None:
    async def until_idle() -> int:
        await collect(generate(reciter.prompt("late"), stop=[" brown"]))
        return engine.engine.output_processor.get_num_unfinished_requests()

    assert engine.run(until_idle()) == 0


def test_a_reader_that_leaves_ends_the_request(engine: Engine, reciter: Any, generate: Any) -> None:
    async def leave() -> int:
        params = {"max_tokens": 400, "ignore_eos": True, "stop": ["never"], "output_kind": RequestOutputKind.DELTA}
        outputs = generate(reciter.prompt("late"), **params)
        await anext(outputs)
        await outputs.aclose()
        return engine.engine.output_processor.get_num_unfinished_requests()

    assert engine.run(leave()) == 0


def test_malformed_options_are_refused_and_the_engine_goes_on(engine: Engine, reciter: Any, generate: Any) -> None:
    request = {"stop": ["END"], "extra_args": {"stopscan_protect": ["<think>"]}}
    if generate.row == "off":
        assert engine.run(collect(generate(reciter.prompt("split"), **request)))[-1].outputs[0].text == "This is the "
    else:
        with pytest.raises(VLLMValidationError, match=r"stopscan_protect .*'<think>' is not a region"):
            engine.run(collect(generate(reciter.prompt("split"), **request)))
    assert engine.run(collect(generate(reciter.prompt("split"), stop=["END"])))[-1].outputs[0].text == "This is the "


def test_patterns(engine: Engine, reciter: Any, generate: Any) -> None:
    request = {"extra_args": {"stopscan_patterns": ["E[A-Z]D", "never [0-9]"]}, "stop": ["too late"]}
    for kind in RequestOutputKind:
        outputs = engine.run(collect(generate(reciter.prompt("split"), output_kind=kind, **request)))
        texts = [output.outputs[0].text for output in outputs]
        last = outputs[-1].outputs[0]
        if generate.row == "off":
            assert last.finish_reason == "stop"
            assert last.stop_reason is None
            continue
        assert ("".join(texts) if kind is RequestOutputKind.DELTA else texts[-1]) == "This is the "
        assert (last.finish_reason, last.stop_reason) == ("stop", "END")
        assert engine.engine.output_processor.get_num_unfinished_requests() == 0


def test_streaming_input_takes_neither_patterns_nor_stops(engine: Engine, reciter: Any) -> None:
    install()
    ids = reciter.token_ids("split")[:3]

    async def chunks() -> AsyncIterator[StreamingInput]:
        yield StreamingInput(prompt={"prompt_token_ids": ids})

    def ask(**params: Any) -> Any:
        params = SamplingParams(temperature=0, max_tokens=4, output_kind=RequestOutputKind.DELTA, **params)
        return engine.run(collect(engine.engine.generate(chunks(), params, next(request_ids))))

    assert ask()
    with pytest.raises(VLLMValidationError, match="stop"):
        ask(stop=["END"])
    with pytest.raises(VLLMValidationError, match="cannot be used with streaming input"):
        ask(extra_args={"stopscan_patterns": ["END"]})
