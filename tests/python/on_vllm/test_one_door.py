"""Whatever a client sends to vLLM, it does not change other requests. It never counts as a failure of stopscan,
because a few failures would switch stopscan off."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import Any

import pytest
import wrong_values

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from pydantic import ValidationError
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm_harness import made, run
from vllm_parsers import answer as answer_of
from vllm_parsers import calls
from wrong_values import pairs, singles

from stopscan import Repeat
from stopscan.engines import Defaults, Failures
from stopscan.vllm import _install, install
from stopscan.vllm._install import install_as_asked

pytestmark = pytest.mark.vllm

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
MESSAGES = [{"role": "user", "content": "x"}]
FIELDS: dict[str, Any] = {"model": "m", "messages": MESSAGES, "stop": ["END"], "stream": True}


@pytest.fixture
def tokenizer(marked: Any) -> Any:
    return marked


@pytest.fixture
def forgiving(monkeypatch: pytest.MonkeyPatch) -> Failures:
    """Counts failures instead of raising them."""
    monkeypatch.setattr(Failures, "strict", False)
    monkeypatch.setattr(logging.getLogger("vllm.stopscan"), "disabled", True)
    install()
    return _install._adapter.failures


def answer(tokenizer: Any, params: SamplingParams, text: str, prompt: str = "x") -> str:
    """The text that a client gets if the model writes ``text``."""
    params.skip_special_tokens = False
    ids, prompt_ids = (tokenizer.encode(each, add_special_tokens=False) for each in (text, prompt))
    return run(tokenizer, [[token] for token in ids], params, prompt=prompt_ids).text


def test_rendered_default_is_readable_by_any_process(tokenizer: Any, start: Any) -> None:
    """vLLM's HTTP route `/v1/chat/completions/render` does not answer a chat. It returns the parameters of the chat,
    and the client sends them to another process, a token server. The token server must be able to read the regions in
    the parameters. Before a fix, only the first process could read them."""
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    params = ChatCompletionRequest(**FIELDS, tools=[TOOL]).to_sampling_params(40, {})
    assert params.extra_args == {"stopscan_default": ["reasoning", "tool_call"]}
    sent = json.loads(json.dumps({"stop": params.stop, "extra_args": params.extra_args}))
    _install._adapter._parser = None  # a token server has no chat routes
    text = 'So END?</think>Well. <tool_call>{"END": 1}</tool_call> END'
    assert answer(tokenizer, SamplingParams(**sent, output_kind=RequestOutputKind.DELTA), text) == text[:-3]


@pytest.mark.parametrize(("stop", "cached"), [("END", True), ("x" * 2_000, False)], ids=["short", "long"])
def test_only_short_options_are_cached(tokenizer: Any, start: Any, stop: str, cached: bool) -> None:
    """The stop set of a request must be cached only if the stops and the other options of the request are short. Before
    a fix, clients could fill the cache with 256 large sets."""
    install()
    start(None, "deepseek_r1")
    assert answer(tokenizer, SamplingParams(stop=[stop], output_kind=RequestOutputKind.DELTA), "a") == "a"
    assert bool(_install._adapter._kept) is cached


@pytest.mark.parametrize("value", [5, None, "thoughts", [["a"]], {"reasoning": 1}, [None], ["<a>"]], ids=str)
def test_what_a_client_writes_for_the_route_is_checked(tokenizer: Any, forgiving: Failures, value: Any) -> None:
    for _ in range(Failures.LIMIT):
        with suppress(VLLMValidationError):
            params = SamplingParams(stop=["END"], extra_args={"stopscan_default": value})
            answer(tokenizer, params, "So END")
            assert value is None
        # An unknown option in a chat must not count as a failure, either.
        ChatCompletionRequest(**FIELDS, vllm_xargs={"stopscan told 1": "x"}).to_sampling_params(40, {})
    assert (forgiving.count, forgiving.off) == (0, False)


# Parsers of models whose chat templates often end the prompt without a marker, so that the model decides whether it
# reasons.
BY_THE_WHOLE_PROMPT = ["deepseek_r1", "glm45", "minimax_m2", "kimi_k2", "step3", "qwen3"]


@pytest.mark.parametrize("parser", BY_THE_WHOLE_PROMPT)
def test_no_stop_in_content_after_prompt_closes_reasoning(tokenizer: Any, start: Any, parser: str) -> None:
    """If `</think>` is anywhere in the prompt, vLLM streams the whole answer as content, even if the user or an earlier
    message wrote this marker. So a stop must fire in the whole answer."""
    install()
    start(None, parser)
    calls(None, parser)
    for prompt in ("What does </think> mean?", "<think>Well.</think>Yes.<|im_end|>And then?"):
        params = ChatCompletionRequest(**FIELDS).to_sampling_params(40, {})
        params.output_kind = RequestOutputKind.DELTA
        reader = _install._adapter._newest()._parser()  # type: ignore[union-attr]
        ended = reader.is_reasoning_end(tokenizer.encode(prompt, add_special_tokens=False))
        text = answer(tokenizer, params, "So END</think>It is END", prompt)
        assert text == ("So " if ended else "So END</think>It is ")
        assert ended == (parser != "qwen3") or parser == "qwen3"


@pytest.mark.parametrize("parser", ["qwen3_coder", "glm45", "kimi_k2", "minimax_m2"])
def test_calls_that_are_dropped_are_not_content(tokenizer: Any, start: Any, parser: str) -> None:
    """Some parsers remove tool calls from the content even with `tool_choice: "none"`. No stop may fire in these calls,
    because no client sees them. Before a fix, a stop fired there."""
    install()
    start(None, "")
    calls(parser)
    graph = _install._adapter._newest().graph  # type: ignore[union-attr]
    opening = next(mark for mark, to in graph["answer"].items() if to.startswith("tool_call"))
    closing = next(iter(graph["tool_call"]), "")
    params = ChatCompletionRequest(**FIELDS, tools=[TOOL], tool_choice="none").to_sampling_params(40, {})
    text = f"Well. {opening}END{closing} So END"
    assert answer(tokenizer, params, text) == text[:-3]


def test_a_programs_own_install_stands_beside_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    install(protect=["reasoning"], repeat=Repeat(5))
    install_as_asked()  # the plugin calls this function when the first engine is made
    assert _install._adapter.defaults == Defaults(protect=("reasoning",), repeat=Repeat(5))


@pytest.mark.parametrize(
    "request_of",
    [
        lambda **fields: ChatCompletionRequest(model="m", messages=MESSAGES, **fields),
        lambda **fields: CompletionRequest(model="m", prompt="x", **fields),
    ],
    ids=["chat", "completion"],
)
@pytest.mark.parametrize("option", [{"stopscan_patterns": ["a+b"]}, {"stopscan_nonsense": 5}], ids=str)
def test_beam_search_refuses_the_options(request_of: Any, option: dict[str, Any]) -> None:
    install()
    request = request_of(use_beam_search=True, stop=["END"], vllm_xargs=option)
    with pytest.raises(VLLMValidationError, match=rf"^{next(iter(option))} cannot be used with beam search"):
        request.to_beam_search_params(40, {})
    request_of(use_beam_search=True, stop=["END"], vllm_xargs={"other": 1}).to_beam_search_params(40, {})


def test_chat_past_its_route_hook_warns_once(tokenizer: Any, start: Any, caplog: pytest.LogCaptureFixture) -> None:
    install()
    start(None, "deepseek_r1")
    params = SamplingParams(stop=["END"])
    for name, count in (("0", 0), ("cmpl-1", 0), ("chatcmpl-1", 1), ("chatcmpl-2", 0)):
        caplog.clear()
        request = made(params, [], None)
        request.external_req_id = name
        _install._adapter._warn_of_missing_regions(request, params, _install._adapter._newest())
        assert len([each for each in caplog.records if "a chat came without" in each.getMessage()]) == count


# Wrong requests: each field with each wrong JSON value, alone and in pairs, through vLLM's own request objects.
OWN = ["stop", "stop_token_ids", "min_tokens", "include_stop_str_in_output", "skip_special_tokens", "detokenize", "n"]
OWN += ["max_tokens", "ignore_eos", "spaces_between_special_tokens", "logprobs"]
OPTIONS = [f"stopscan_{name}" for name in (*wrong_values.OPTIONS, "stop", "min_tokens")]
FIELD_NAMES = [*OPTIONS, *OWN]


def through(tokenizer: Any, values: dict[str, Any]) -> None:
    """Makes a request with ``values`` in each of vLLM's request classes, so that stopscan's hooks read it."""
    options = {name: value for name, value in values.items() if name.startswith("stopscan")}
    fields = {"stop": ["END"], **{name: value for name, value in values.items() if name not in options}}
    errors = (
        VLLMValidationError,
        ValidationError,
        ValueError,
        TypeError,
        OverflowError,
        RecursionError,
        AssertionError,
    )
    ways = [
        lambda: SamplingParams(**fields, extra_args=options),
        lambda: SamplingParams.from_optional(**fields, extra_args=options),
        lambda: ChatCompletionRequest(model="m", messages=MESSAGES, vllm_xargs=options, **fields).to_sampling_params(
            9, {}
        ),
        lambda: CompletionRequest(model="m", prompt="x", vllm_xargs=options, **fields).to_sampling_params(9, {}),
        lambda: ResponsesRequest(model="m", input="x", vllm_xargs=options, **fields).to_sampling_params(9, {}),
    ]
    for way in ways:
        try:
            params = way()
        except errors:  # vLLM or stopscan refuses the request
            continue
        with suppress(VLLMValidationError):
            AsyncLLM.generate(None, "", params, "r")  # type: ignore[arg-type]
        if params.n == 1 and isinstance(params.stop, list):
            with suppress(*errors):
                run(tokenizer, STEPS, params)


STEPS = [[5], [6]]


def test_wrong_values_change_no_other_request(tokenizer: Any, start: Any, forgiving: Failures) -> None:
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    # stopscan's hook adds options to the parameters of a chat. vLLM has an HTTP route that shows these parameters to
    # clients. So clients can send options with these names.
    handed_out = ChatCompletionRequest(**FIELDS).to_sampling_params(40, {}).extra_args or {}
    assert handed_out
    counted = []
    for values in (*singles([*handed_out, *FIELD_NAMES]), *pairs([*OPTIONS, "stop", "min_tokens"])):
        before = forgiving.count
        through(tokenizer, values)
        if forgiving.count > before:
            counted.append(values)
    assert (counted, forgiving.off) == ([], False)
    assert answer_of(tokenizer, "So END here") == "So "
    assert answer_of(tokenizer, "Well</think>So END") == "Well</think>So "
