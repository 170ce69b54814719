"""Which fields of a payload count as a tool call. Some have the shape of a tool call but are empty."""

from __future__ import annotations

from typing import Any

import pytest
from finish_harness import as_object, outcome

from stopscan.finish import Finish, Reading, is_call

CALLS = {
    "chat": {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
    "chat, arguments that go on": {"index": 0, "function": {"arguments": '{"city"'}},
    "chat, an id alone": {"index": 0, "id": "a", "type": "function", "function": {"name": "", "arguments": ""}},
    "chat, custom": {"index": 0, "type": "custom", "custom": {"name": "", "input": "ls"}},
    "functions of 2023": {"name": "f", "arguments": ""},
    "Ollama": {"function": {"name": "f", "arguments": {}}},
    "Anthropic": {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    "Bedrock": {"toolUseId": "a", "name": "f", "input": {}},
    "Responses": {"type": "local_shell_call", "call_id": "a", "action": {}},
    "Gemini": {"name": "f", "args": {}},
    "Gemini, arguments that go on": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "L"}], "willContinue": True},
}
STUBS: dict[str, Any] = {
    "workbuddy-gateway#3": {"name": "", "arguments": ""},
    "Snowflake Cortex": {"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": ""}},
    "only nulls": {"index": 0, "id": None, "type": "function", "function": {"name": None, "arguments": None}},
    "no function": {"index": 0, "type": "function", "function": None},
    "empty": {},
    "empty arguments": {"type": "tool_use", "id": "", "name": "", "input": []},
    "None": None,
    "a string": "f",
    "a list": [],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_has_a_name_an_id_or_arguments(call: dict[str, Any]) -> None:
    assert is_call(call)
    assert is_call(as_object(call))


@pytest.mark.parametrize("stub", STUBS.values(), ids=STUBS)
def test_a_stub_is_no_call(stub: Any) -> None:
    assert not is_call(stub)
    assert not is_call(as_object(stub))


def test_arguments_without_a_field_are_empty() -> None:
    assert not is_call({"name": "", "args": {}})


STUB: dict[str, Any] = {"name": "", "arguments": ""}
STOPPED = {
    "openai": [
        {"choices": [{"index": 0, "message": {"content": "A", "function_call": STUB}, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "message": {"content": "A", "tool_calls": [{"function": STUB}]},
                      "finish_reason": "stop"}]},
    ],
    "anthropic": [{"type": "message", "content": [{"type": "tool_use", **STUB}], "stop_reason": "end_turn"}],
    "bedrock": [{"output": {"message": {"content": [{"toolUse": STUB}]}}, "stopReason": "end_turn"}],
    "gemini": [{"candidates": [{"content": {"parts": [{"functionCall": STUB}]}, "finishReason": "STOP"}]}],
    "ollama": [{"message": {"content": "A", "tool_calls": [{"function": STUB}]}, "done": True, "done_reason": "stop"}],
    "responses": [{"output": [{"type": "function_call", "call_id": "", **STUB}], "status": "completed"}],
}  # fmt: skip


@pytest.mark.parametrize(("api", "payload"), [(api, one) for api, all_ in STOPPED.items() for one in all_])
def test_an_answer_with_a_stub_is_no_tool_calls(api: str, payload: dict[str, Any]) -> None:
    assert outcome(api, payload) == outcome(api, as_object(payload)) == ("eos", None)


def chunk(finish_reason: str | None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def test_workbuddy_gateway_3_stub_on_last_chunk() -> None:
    reading = Reading("openai")
    events = [chunk("", content="Hi"), chunk("", content="!"), chunk("stop", function_call=STUB)]
    assert [reading.feed(event) for event in events] == [None, None, Finish("eos", raw="stop")]


def test_workbuddy_gateway_3_stub_behind_a_call() -> None:
    reading = Reading("openai")
    events = [chunk("", tool_calls=[CALLS["chat"]]), chunk("tool_calls", function_call=STUB)]
    assert [reading.feed(event) for event in events] == [None, Finish("tool_calls", raw="tool_calls")]
