"""Where `from_*` finds the reason and the stop: in whole responses and single events, as dicts and as objects."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from enum import Enum, IntEnum
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from finish_harness import APIS, as_object, outcome, read
from finish_payloads import CALLS, CASES, EOS, ERROR, REFUSAL, Report, chat, gemini, sglang

from stopscan.finish import Finish


@pytest.mark.parametrize(
    ("api", "payload", "report"),
    [(api, payload, report) for api, cases in CASES.items() for payload, report in [*cases, ({}, None)]],
)
def test_a_payload_is_read(api: str, payload: Any, report: Report) -> None:
    assert outcome(api, payload) == report
    assert outcome(api, as_object(payload)) == report
    for mapping in (OrderedDict, UserDict, MappingProxyType):
        assert outcome(api, mapping(payload)) == report


@pytest.mark.parametrize(
    ("api", "payload", "raw"),
    [
        ("openai", chat(finish_reason="stop", matched_stop="END"), "stop"),
        ("openai", chat(finish_reason="stop", matched_stop=2), "stop"),
        ("openai", chat(finish_reason="stop", native_finish_reason="end_turn"), "stop"),
        ("openai", chat(finish_reason="stop", native_finish_reason="refusal"), "refusal"),
        ("responses", {"status": "incomplete", "incomplete_details": {"reason": "max_tokens"}}, "max_tokens"),
        ("responses", {"status": "incomplete"}, "incomplete"),
        (
            "responses",
            {"status": "completed", "output": [{"type": "custom_tool_call", "call_id": "a"}]},
            "custom_tool_call",
        ),
        ("responses", {"status": "completed", "output": [REFUSAL]}, "refusal"),
        ("gemini", {"promptFeedback": {"blockReason": "JAILBREAK"}}, "JAILBREAK"),
        ("gemini", gemini({"functionCall": {"name": "f"}}, finishReason="STOP"), "STOP"),
        ("llama_cpp", {"stop": True, "stopped_eos": True}, "stopped_eos"),
        ("sglang", sglang("FINISH_LENGTH: 16"), "FINISH_LENGTH: 16"),
        ("ollama", {"done": True}, None),
        (
            "ollama",
            {"message": {"tool_calls": [{"function": {"name": "f"}}]}, "done": True, "done_reason": "stop"},
            "stop",
        ),
        ("openai", ERROR, None),
    ],
)
def test_the_word_that_decided_is_kept(api: str, payload: Any, raw: str | None) -> None:
    finish = read(api, payload)
    assert finish is not None
    assert finish.raw == raw


@pytest.mark.parametrize(
    "item",
    [
        *({"type": kind} for kind in ("function_call", "custom_tool_call", "computer_call", "local_shell_call",
                                      "apply_patch_call", "mcp_approval_request")),
        {"type": "shell_call", "environment": {"type": "local"}},
        {"type": "shell_call", "environment": None},
        {"type": "tool_search_call", "execution": "client"},
    ],
    ids=str,
)  # fmt: skip
def test_completed_response_awaiting_caller_is_tool_calls(item: dict[str, Any]) -> None:
    output = [{"type": "message", "content": [{"type": "output_text"}]}, {**item, "call_id": "a"}]
    assert outcome("responses", {"output": output, "status": "completed"}) == CALLS


@pytest.mark.parametrize(
    "item",
    [
        *({"type": kind} for kind in ("reasoning", "web_search_call", "file_search_call", "code_interpreter_call",
                                      "mcp_call", "image_generation_call")),
        {"type": "shell_call", "environment": {"type": "container_reference", "container_id": "c"}},
        {"type": "tool_search_call", "execution": "server"},
    ],
    ids=str,
)  # fmt: skip
def test_a_completed_response_that_used_hosted_tools_is_eos(item: dict[str, Any]) -> None:
    assert outcome("responses", {"output": [{**item, "call_id": "a"}], "status": "completed"}) == EOS


FIELDS = {
    "anthropic": "Anthropic stop_reason",
    "openai": "OpenAI finish_reason",
    "responses": "Responses status",
    "ollama": "Ollama done_reason",
    "sglang": "sglang finish_reason",
    "llama_cpp": "llama.cpp stop_type",
    "gemini": "Gemini finishReason",
    "bedrock": "Bedrock stopReason",
    "tgi": "TGI finish_reason",
}


NO_PAYLOADS = [
    "{}",
    b"{}",
    bytearray(b"{}"),
    memoryview(b"{}"),
    None,
    [{}],
    ({},),
    {1},
    frozenset([1]),
    1,
    1.5,
    1j,
    True,
]


@pytest.mark.parametrize("payload", NO_PAYLOADS, ids=lambda payload: type(payload).__name__)
@pytest.mark.parametrize("api", APIS)
def test_wrong_payload_is_an_error_naming_its_type(api: str, payload: object) -> None:
    problem = f"^{FIELDS[api]} is read from a dict or an object, not {type(payload).__name__}$"
    with pytest.raises(TypeError, match=problem):
        read(api, payload)


def test_enums_are_read_by_their_words() -> None:
    """In google-genai, the finish reasons are an enum of strings. In the older google-generativeai, they are an enum of
    numbers, in which 0 means that the stream goes on. An engine may have an enum of other values."""

    class Word(str, Enum):
        STOP = "STOP"

    class Number(IntEnum):
        FINISH_REASON_UNSPECIFIED = 0
        MAX_TOKENS = 2

    class Reason(Enum):
        LENGTH = "length"

    finish = read("gemini", {"candidates": [{"finish_reason": Word.STOP}]})
    assert finish == Finish("eos", raw="STOP")
    assert type(finish.raw) is str  # type: ignore[union-attr]
    assert read("gemini", {"candidates": [{"finish_reason": Number.MAX_TOKENS}]}) == Finish("length", raw="MAX_TOKENS")
    assert read("gemini", {"candidates": [{"finish_reason": Number.FINISH_REASON_UNSPECIFIED}]}) is None
    for api, payload in (("openai", chat(finish_reason=Reason.LENGTH)), ("sglang", sglang(Reason.LENGTH))):
        assert read(api, payload) == Finish("length", raw="length")


def test_a_payload_of_a_payload_of_itself_is_read() -> None:
    payload = SimpleNamespace()
    for name in ("chunk", "choices", "delta", "message", "response", "meta_info", "details", "messageStop", "nvext"):
        setattr(payload, name, payload)
    for api in APIS:
        assert read(api, payload) is None
