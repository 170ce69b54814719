"""Requests as official clients and ordinary programs send them, and answers in the form that both expect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from server_harness import Engine, clients, served

from stopscan_conformance.reciter import Reciter

COUNT = "1, 2, 3 hello world 4, 5, 6, 7, 8"
CHAT = [{"role": "user", "content": "[count]"}]
CALL = ["<tool_call>", '\n{"name": "look",', ' "arguments": {"at": "here"}}', "\n</tool_call>"]
PARAMETERS = {"type": "object", "properties": {"at": {"type": "string"}}}


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The clients of a server whose model calls a tool."""
    reciter = Reciter({"call": ["I", " look.", *CALL]}, special_tokens=[])
    with served(Engine(str(reciter.write(tmp_path_factory.mktemp("caller") / "reciter")))) as url:
        yield clients(url)


@pytest.mark.parametrize("prompt", ["[count]", ["[count]"], "ids", ["ids"]])
def test_forms_of_a_prompt(client: SimpleNamespace, reciter: Reciter, prompt: Any) -> None:
    ids = [reciter.tokens.index(b"[count]")]
    prompt = {"ids": ids}.get(prompt, prompt) if isinstance(prompt, str) else [{"ids": ids}.get(p, p) for p in prompt]
    assert client.openai.completions.create(model=client.model, prompt=prompt).choices[0].text == COUNT


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": [{"type": "text", "text": "[cou"}, {"type": "text", "text": "nt]"}]}],
        [
            {"role": "system", "content": "Be brief."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "a", "content": "[count]"},
        ],
    ],
    ids=["parts", "tool result"],
)
def test_forms_of_messages(client: SimpleNamespace, messages: Any) -> None:
    reply = client.openai.chat.completions.create(model=client.model, messages=messages)
    assert reply.choices[0].message.content == COUNT


def test_anthropic_tool_result(client: SimpleNamespace) -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": "[count]"}
    use = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    messages = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    reply = client.anthropic.messages.create(model=client.model, messages=messages, max_tokens=99)
    assert reply.content[0].text == COUNT


@pytest.mark.parametrize("script", ["think", "count"])
def test_responses_takes_its_own_output_back(client: SimpleNamespace, script: str) -> None:
    first = client.openai.responses.create(model=client.model, input=f"[{script}]")
    again = [*first.output, {"role": "user", "content": "[count]"}]
    assert client.openai.responses.create(model=client.model, input=again).output_text == COUNT


@pytest.mark.parametrize("api", ["chat.completions", "completions"])
def test_the_usual_loop_over_choices(client: SimpleNamespace, api: str) -> None:
    given: Any = {"messages": CHAT} if api.startswith("chat") else {"prompt": "[count]"}
    resource = client.openai.chat.completions if api.startswith("chat") else client.openai.completions
    for chunk in resource.create(model=client.model, stream=True, **given):
        assert len(chunk.choices) == 1
    *chunks, last = resource.create(model=client.model, stream=True, stream_options={"include_usage": True}, **given)
    assert (last.choices, last.usage.completion_tokens) == ([], 16)
    assert all(len(chunk.choices) == 1 for chunk in chunks)


def test_sampling_of_a_sure_model(client: SimpleNamespace) -> None:
    reply = client.openai.chat.completions.create(
        model=client.model, messages=CHAT, temperature=1, top_p=0.9, presence_penalty=0.0
    )
    assert reply.choices[0].message.content == COUNT


def test_calls_through_openai(caller: SimpleNamespace) -> None:
    function = {"name": "look", "parameters": PARAMETERS}
    asked: Any = {
        "model": caller.model,
        "messages": [{"role": "user", "content": "[call]"}],
        "tools": [{"type": "function", "function": function}],
    }
    (choice,) = caller.openai.chat.completions.create(**asked).choices
    (call,) = choice.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("look", '{"at": "here"}')
    assert (choice.message.content, choice.finish_reason) == ("I look.", "tool_calls")
    with caller.openai.chat.completions.stream(**asked) as stream:
        (choice,) = stream.get_final_completion().choices
    (call,) = choice.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("look", '{"at": "here"}')
    assert (choice.message.content, choice.finish_reason) == ("I look.", "tool_calls")


def test_calls_through_responses(caller: SimpleNamespace) -> None:
    tools = [{"type": "function", "name": "look", "parameters": PARAMETERS}]
    whole = caller.openai.responses.create(model=caller.model, input="[call]", tools=tools)
    with caller.openai.responses.stream(model=caller.model, input="[call]", tools=tools) as stream:
        streamed = stream.get_final_response()
    for reply in (whole, streamed):
        said, call = reply.output
        assert (said.content[0].text, call.type, call.name, call.arguments) == (
            "I look.", "function_call", "look", '{"at": "here"}'
        )  # fmt: skip


def test_calls_through_anthropic(caller: SimpleNamespace) -> None:
    asked: Any = {
        "model": caller.model,
        "messages": [{"role": "user", "content": "[call]"}],
        "max_tokens": 99,
        "tools": [{"name": "look", "input_schema": PARAMETERS}],
    }
    with caller.anthropic.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for reply in (caller.anthropic.messages.create(**asked), streamed):
        said, use = reply.content
        assert (said.text, use.type, use.name, use.input) == ("I look.", "tool_use", "look", {"at": "here"})
        assert reply.stop_reason == "tool_use"


@pytest.mark.parametrize("stream", [False, True])
def test_calls_through_ollama(caller: SimpleNamespace, stream: bool) -> None:
    reply = caller.ollama.chat(caller.model, [{"role": "user", "content": "[call]"}], stream=stream)
    parts = [*reply] if stream else [reply]
    calls = [call.function for part in parts for call in part.message.tool_calls or ()]
    assert [(call.name, call.arguments) for call in calls] == [("look", {"at": "here"})]
    assert "".join(part.message.content for part in parts) == "I look."
