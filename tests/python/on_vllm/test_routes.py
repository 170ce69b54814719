"""Where stops fire by default. It depends on a request's route, tools and tool choice, and on the server's parsers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.exceptions import VLLMValidationError
from vllm.parser import ParserManager
from vllm.sampling_params import SamplingParams
from vllm_harness import run
from vllm_parsers import calls

from stopscan.regions import graph_of
from stopscan.vllm import install

pytestmark = pytest.mark.vllm

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
NAMED = {"type": "function", "function": {"name": "f"}}
# An answer that begins inside its reasoning and has a tool call. "END" occurs in each part.
TEXT = 'Is it END?</think>Well. <tool_call>{"name": "f", "arguments": {"END": 1}}</tool_call> So END'
IN_REASONING, IN_CALL = "Is it ", TEXT[: TEXT.index('END": 1')]


@pytest.fixture
def tokenizer(marked: Any) -> Any:
    return marked


def chat(**fields: Any) -> SamplingParams:
    """The parameters that vLLM makes from a chat request."""
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}], stop=["END"], **fields)
    return request.to_sampling_params(40, {})


def responses(**fields: Any) -> SamplingParams:
    tools = [{"type": "function", **tool["function"]} for tool in fields.pop("tools", [])]
    return ResponsesRequest(model="m", input="x", stop=["END"], tools=tools, **fields).to_sampling_params(40, {})


def completion(**fields: Any) -> SamplingParams:
    return CompletionRequest(model="m", prompt="x", stop=["END"], **fields).to_sampling_params(40, {})


def answer(tokenizer: Any, params: SamplingParams, text: str = TEXT) -> str:
    """The text that a client gets if the model writes ``text``."""
    params.skip_special_tokens = False
    ids = tokenizer.encode(text, add_special_tokens=False)
    return run(tokenizer, [[token] for token in ids], params, prompt=tokenizer.encode("x")).text


def test_a_chat_protects_its_reasoning_and_its_calls(tokenizer: Any, start: Any) -> None:
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    assert answer(tokenizer, chat(tools=[TOOL])) == TEXT[:-3]
    assert answer(tokenizer, responses(tools=[TOOL])) == TEXT[:-3]
    assert answer(tokenizer, completion()) == IN_REASONING
    assert answer(tokenizer, chat(tools=[TOOL], vllm_xargs={"stopscan_protect": []})) == IN_REASONING
    assert answer(tokenizer, chat(tools=[TOOL], vllm_xargs={"stopscan_protect": ["reasoning"]})) == IN_CALL
    assert answer(tokenizer, completion(vllm_xargs={"stopscan_protect": ["reasoning", "tool_call"]})) == TEXT[:-3]


def test_a_chat_without_tools_has_no_calls(tokenizer: Any, start: Any) -> None:
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    assert answer(tokenizer, chat()) == IN_CALL
    assert answer(tokenizer, responses()) == IN_CALL


def test_a_chat_with_tool_choice_none_has_no_calls(tokenizer: Any, start: Any) -> None:
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    assert answer(tokenizer, chat(tools=[TOOL], tool_choice="none")) == IN_CALL
    assert answer(tokenizer, responses(tools=[TOOL], tool_choice="none")) == IN_CALL


def test_tool_parser_without_auto_choice_finds_no_calls(tokenizer: Any, start: Any) -> None:
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1", auto=False)
    assert answer(tokenizer, chat(tools=[TOOL])) == IN_CALL
    calls("hermes", auto=False)
    assert answer(tokenizer, chat(tools=[TOOL])) == IN_REASONING


def test_server_without_parsers_protects_nothing(tokenizer: Any, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "chat_template", "<think></think><tool_call></tool_call>")
    assert graph_of(tokenizer)
    install()
    start(None)
    assert answer(tokenizer, chat(tools=[TOOL]), "<think>END") == "<think>"
    assert answer(tokenizer, chat(tools=[TOOL], vllm_xargs={"stopscan_protect": ["reasoning"]}), "<think>END") != ""


def test_a_reasoning_parser_alone_protects_the_reasoning_alone(tokenizer: Any, start: Any) -> None:
    install()
    start(None, "deepseek_r1")
    calls(None, "deepseek_r1")
    assert answer(tokenizer, chat(tools=[TOOL])) == IN_CALL


def test_a_tool_parser_alone_protects_the_calls_alone(tokenizer: Any, start: Any) -> None:
    install()
    start(None)
    calls("hermes")
    text = TEXT.partition("</think>")[2]
    assert answer(tokenizer, chat(tools=[TOOL]), text) == text[:-3]
    assert answer(tokenizer, chat(tools=[TOOL]), "<think>END") == "<think>"


def test_the_ids_of_requests_say_nothing(tokenizer: Any, start: Any) -> None:
    """A client can choose the id of its request, so stopscan must not infer the route from the id."""
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    for own in ("mine", "cmpl-1", "chatcmpl-1", "resp_1"):
        assert answer(tokenizer, responses(tools=[TOOL], request_id=own)) == TEXT[:-3]
        assert answer(tokenizer, chat(tools=[TOOL], request_id=own)) == TEXT[:-3]
        assert answer(tokenizer, completion(request_id=own)) == IN_REASONING


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_answer_that_is_one_call_has_no_stops(tokenizer: Any, start: Any, choice: Any) -> None:
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    text = 'Is it END?</think>[{"name": "f", "parameters": {"END": 1}}]'
    parser = ParserManager.get_parser("hermes", "deepseek_r1", True)
    whole = parser.tool_parser_cls.supports_required_and_named
    assert (answer(tokenizer, chat(tools=[TOOL], tool_choice=choice), text) == text) == whole
    # If `whole` is true, the tool parser reads the whole answer as the call that the request requires, so no stop
    # fires. Otherwise, the tool parser looks for a call between markers, and the stop END fires after the markers.
    assert answer(tokenizer, chat(tools=[TOOL], tool_choice=choice)) == (TEXT if whole else TEXT[:-3])


def test_stop_spans_a_marker_the_route_ignores(tokenizer: Any, start: Any) -> None:
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    for text in ('x</think>So <tool_call>{"a": 1}', "x</think>So </tool_call>{"):
        stop = text[text.index("So ") :][1:-3] + text[-3:-1]
        params = chat()
        params.stop = [stop]
        assert answer(tokenizer, params, text) == "x</think>S"


def test_a_servers_default_counts_on_every_route(tokenizer: Any, start: Any) -> None:
    install(protect=["reasoning"])
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    for params in (chat(tools=[TOOL]), chat(), responses(), completion()):
        assert answer(tokenizer, params) == IN_CALL


def test_no_client_says_what_its_route_tells_apart(tokenizer: Any, start: Any) -> None:
    install()
    start(None, "deepseek_r1")
    calls("hermes", "deepseek_r1")
    assert answer(tokenizer, completion(vllm_xargs={"stopscan told": ["reasoning"]})) == IN_REASONING
    with pytest.raises(VLLMValidationError, match="stopscan_told is not an option"):
        answer(tokenizer, completion(vllm_xargs={"stopscan_told": ["reasoning"]}))


CHOICES: list[dict[str, Any]] = [
    {}, {"tools": [TOOL]}, {"tools": [TOOL], "tool_choice": "none"}, {"tools": [TOOL], "tool_choice": "required"},
    {"tools": [TOOL], "tool_choice": NAMED}, {"tool_choice": None},
]  # fmt: skip
CALL = '<tool_call>{"name": "f", "arguments": {"a": "END"}}</tool_call>'
TEXTS = [
    TEXT,
    f"a</think>b {CALL}",
    f"a {CALL} b</think> END",
    f"<think>a</think>{CALL}{CALL} END",
    "END",
    "a</think>END",
]


@pytest.mark.parametrize("auto", [True, False], ids=["auto", ""])
@pytest.mark.parametrize(
    "reasoning", [None, "deepseek_r1", "qwen3", "glm45", "nemotron_v3", "mimo", "granite_thinking_parser"]
)
@pytest.mark.parametrize("tools", [None, "hermes", "longcat"])
def test_no_stop_of_the_client_stands_in_its_content(
    tokenizer: Any, start: Any, tools: str | None, reasoning: str | None, auto: bool
) -> None:
    """No stop may be left in the content of an answer. vLLM's own parser decides which part of the answer is the
    content."""
    install()
    start(None, reasoning or "")
    calls(tools, reasoning, auto=auto)
    parser = ParserManager.get_parser(tools, reasoning, auto)
    for fields in CHOICES:
        request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}], stop=["END"], **fields)
        for text in TEXTS:
            came = answer(tokenizer, request.to_sampling_params(40, {}), text)
            content = came
            if parser is not None:
                ids = tokenizer.encode(came, add_special_tokens=False)
                parsed = parser(tokenizer, request.tools)
                _, content, _ = parsed.parse(came, request, enable_auto_tools=auto, model_output_token_ids=ids)
            assert "END" not in (content or ""), (fields, text, came)
