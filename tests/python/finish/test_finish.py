"""What the finish mappers write and read: tables, round trips, whole streams, and the official clients' own objects."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import FrozenInstanceError
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, SimpleNamespace
from typing import Any, get_args

import pytest

from stopscan import StopMatch
from stopscan import finish as mappers
from stopscan.finish import Finish, Reason

STRING = Finish("stop_sequence", StopMatch("END", 26))
READ = Finish("stop_sequence", StopMatch("END", 0))  # what a reader makes of it: no API says where the stop was
TOKEN = Finish("stop_token", token_id=2)
FINISHES = {"stop_sequence": STRING, "stop_token": TOKEN} | {
    reason: Finish(reason) for reason in get_args(Reason) if not reason.startswith("stop_")
}
APIS = ("anthropic", "openai", "responses", "ollama", "sglang", "llama_cpp")


def write(api: str, finish: Finish) -> dict[str, Any]:
    return getattr(mappers, f"to_{api}")(finish)


def read(api: str, payload: object) -> Finish | None:
    return getattr(mappers, f"from_{api}")(payload)


def as_object(payload: Any) -> Any:
    """The payload as nested plain objects: what a client without dicts would hand over."""
    if isinstance(payload, list):
        return [as_object(item) for item in payload]
    if isinstance(payload, dict):
        return SimpleNamespace(**{key: as_object(value) for key, value in payload.items()})
    return payload


# Finish


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        (STRING, "END"),
        (TOKEN, 2),
        (Finish("stop_token", token_id=0), 0),
        (Finish("eos"), None),
        (Finish("abort"), None),
    ],
)
def test_matched_stop_is_the_users_own_value(finish: Finish, stop: str | int | None) -> None:
    assert finish.matched_stop == stop


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("stop",), ValueError, "unknown finish reason 'stop'"),
        ((None,), ValueError, "unknown finish reason None"),
        ((["eos"],), ValueError, r"unknown finish reason \['eos'\]"),
        (("stop_sequence",), ValueError, "finish reason 'stop_sequence' needs match"),
        (("stop_token",), ValueError, "finish reason 'stop_token' needs token_id"),
        (("eos", StopMatch("END", 0)), ValueError, "finish reason 'eos' has no match"),
        (("length", None, 0), ValueError, "finish reason 'length' has no token_id"),
        (("stop_sequence", StopMatch("END", 0), 2), ValueError, "finish reason 'stop_sequence' has no token_id"),
        (("stop_token", StopMatch("END", 0), 2), ValueError, "finish reason 'stop_token' has no match"),
        (("stop_sequence", "END"), TypeError, "match must be StopMatch, not str"),
        (("stop_token", None, "2"), TypeError, "token_id must be int, not str"),
    ],
)
def test_a_finish_is_validated(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        Finish(*arguments)


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
def test_a_finish_is_a_value(finish: Finish) -> None:
    assert pickle.loads(pickle.dumps(finish)) == copy.deepcopy(finish) == finish
    assert len({finish, copy.copy(finish)}) == 1
    assert not hasattr(finish, "__dict__")
    with pytest.raises(FrozenInstanceError):
        finish.reason = "eos"  # type: ignore[misc]


# What a server writes


def _anthropic(reason: str, sequence: str | None = None) -> dict[str, Any]:
    return {"stop_reason": reason, "stop_sequence": sequence}


def _responses(status: str, why: str | None = None) -> dict[str, Any]:
    return {"status": status, "incomplete_details": None if why is None else {"reason": why}}


def _sglang(kind: str, matched: str | int | None = None) -> dict[str, Any]:
    return {"finish_reason": {"type": kind, "matched": matched}}


def _ollama(reason: str) -> dict[str, Any]:
    return {"done": True, "done_reason": reason}


def _llama_cpp(kind: str, word: str = "") -> dict[str, Any]:
    return {"stop_type": kind, "stopping_word": word}


WRITTEN: dict[str, dict[str, dict[str, Any]]] = {
    "anthropic": {
        "stop_sequence": _anthropic("stop_sequence", "END"),
        "stop_token": _anthropic("end_turn"),
        "eos": _anthropic("end_turn"),
        "length": _anthropic("max_tokens"),
        "tool_calls": _anthropic("tool_use"),
        "content_filter": _anthropic("refusal"),
        "refusal": _anthropic("refusal"),
        "pause": _anthropic("pause_turn"),
        "abort": _anthropic("max_tokens"),
    },
    "openai": {
        "stop_sequence": {"finish_reason": "stop", "matched_stop": "END"},
        "stop_token": {"finish_reason": "stop", "matched_stop": 2},
        "eos": {"finish_reason": "stop"},
        "length": {"finish_reason": "length"},
        "tool_calls": {"finish_reason": "tool_calls"},
        "content_filter": {"finish_reason": "content_filter"},
        "refusal": {"finish_reason": "content_filter"},
        "pause": {"finish_reason": "stop"},
        "abort": {"finish_reason": "length"},
    },
    "responses": {
        "stop_sequence": _responses("completed"),
        "stop_token": _responses("completed"),
        "eos": _responses("completed"),
        "length": _responses("incomplete", "max_output_tokens"),
        "tool_calls": _responses("completed"),
        "content_filter": _responses("incomplete", "content_filter"),
        "refusal": _responses("incomplete", "content_filter"),
        "pause": _responses("completed"),
        "abort": _responses("cancelled"),
    },
    "ollama": {
        **{reason: _ollama("stop") for reason in get_args(Reason)},
        "length": _ollama("length"),
        "abort": _ollama("length"),
    },
    "sglang": {
        **{reason: _sglang("stop") for reason in get_args(Reason)},
        "stop_sequence": _sglang("stop", "END"),
        "stop_token": _sglang("stop", 2),
        "length": _sglang("length"),
        "abort": _sglang("abort"),
    },
    "llama_cpp": {
        **{reason: _llama_cpp("eos") for reason in get_args(Reason)},
        "stop_sequence": _llama_cpp("word", "END"),
        "length": _llama_cpp("limit"),
        "abort": _llama_cpp("none"),
    },
}


@pytest.mark.parametrize("reason", FINISHES)
@pytest.mark.parametrize("api", APIS)
def test_every_api_has_a_word_for_every_reason(api: str, reason: str) -> None:
    assert write(api, FINISHES[reason]) == WRITTEN[api][reason]


@pytest.mark.parametrize("api", APIS)
def test_what_is_written_belongs_to_the_caller(api: str) -> None:
    first = write(api, Finish("length"))
    for value in first.values():
        if isinstance(value, dict):
            value.clear()
    first.clear()
    assert write(api, Finish("length")) == WRITTEN[api]["length"]


# The reasons that come back as another one, since the API has no word for them.
NEAREST: dict[str, dict[str, Finish]] = {
    "anthropic": {
        "stop_token": Finish("eos"),
        "content_filter": Finish("refusal"),
        "abort": Finish("length"),
    },
    "openai": {"refusal": Finish("content_filter"), "pause": Finish("eos"), "abort": Finish("length")},
    "responses": {
        **dict.fromkeys(("stop_sequence", "stop_token", "tool_calls", "pause"), Finish("eos")),
        "refusal": Finish("content_filter"),
    },
    "ollama": {
        **{reason: Finish("eos") for reason in FINISHES if reason not in ("length", "abort")},
        "abort": Finish("length"),
    },
    "sglang": dict.fromkeys(("tool_calls", "content_filter", "refusal", "pause"), Finish("eos")),
    "llama_cpp": dict.fromkeys(("stop_token", "tool_calls", "content_filter", "refusal", "pause"), Finish("eos")),
}


@pytest.mark.parametrize("reason", FINISHES)
@pytest.mark.parametrize("api", APIS)
def test_what_is_written_is_read_as_the_same_or_the_nearest_reason(api: str, reason: str) -> None:
    payload = write(api, FINISHES[reason])
    expected = NEAREST[api].get(reason, READ if reason == "stop_sequence" else FINISHES[reason])
    assert read(api, payload) == read(api, as_object(payload)) == expected
    assert read(api, json.loads(json.dumps(payload))) == expected


# What a client reads: whole responses and single events


def _choice(**fields: Any) -> dict[str, Any]:
    return {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "A"}, **fields}]}


def _final(event: str, **response: Any) -> dict[str, Any]:
    return {"type": event, "sequence_number": 9, "response": {"object": "response", "output": [], **response}}


ERROR = {"error": {"message": "out of memory"}}
PAYLOADS: list[tuple[str, object, Finish | None]] = [
    ("anthropic", {"type": "message", "content": [], **_anthropic("end_turn")}, Finish("eos")),
    ("anthropic", {"type": "message", "content": [], **_anthropic("model_context_window_exceeded")}, Finish("length")),
    ("anthropic", {"type": "message", "content": [], **_anthropic("compaction")}, Finish("pause")),
    ("anthropic", {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}, Finish("eos")),
    ("anthropic", {"type": "message_delta", "delta": _anthropic("stop_sequence", "END")}, READ),
    ("anthropic", {"type": "message_delta", "delta": {"stop_reason": None, "stop_sequence": None}}, None),
    ("anthropic", {"type": "message_start", "message": {"stop_reason": None, "stop_sequence": None}}, None),
    ("anthropic", {"type": "message_stop"}, None),
    ("anthropic", {"type": "message_stop", "message": _anthropic("stop_sequence", "END")}, READ),  # the client's helper
    ("anthropic", {"type": "ping"}, None),
    ("anthropic", {"type": "error", **ERROR}, Finish("abort")),
    ("openai", _choice(finish_reason="stop"), Finish("eos")),
    ("openai", _choice(finish_reason="stop", matched_stop=None, stop_reason=None), Finish("eos")),
    ("openai", _choice(finish_reason="stop", matched_stop="END"), READ),
    ("openai", _choice(finish_reason="stop", matched_stop=2), TOKEN),
    ("openai", _choice(finish_reason="stop", matched_stop=0), Finish("stop_token", token_id=0)),
    ("openai", _choice(finish_reason="stop", stop_reason="END"), READ),
    ("openai", _choice(finish_reason="stop", stop_reason=2), TOKEN),
    ("openai", _choice(finish_reason="tool_calls", matched_stop=2), Finish("tool_calls")),
    ("openai", _choice(finish_reason="function_call"), Finish("tool_calls")),
    ("openai", _choice(finish_reason="length", stop_reason=None), Finish("length")),
    ("openai", _choice(finish_reason="abort"), Finish("abort")),
    ("openai", _choice(finish_reason="error"), Finish("abort")),
    ("openai", _choice(finish_reason="repetition", stop_reason="repetition_detected"), Finish("abort")),
    ("openai", _choice(finish_reason=None), None),
    ("openai", {"object": "text_completion", "choices": [{"text": "A", "finish_reason": "length"}]}, Finish("length")),
    ("openai", {"choices": [], "usage": {"total_tokens": 9}}, None),
    ("openai", {"choices": [{"index": 1, "finish_reason": "length"}]}, None),
    (
        "openai",
        {"choices": [{"index": 1, "finish_reason": "length"}, {"index": 0, "finish_reason": "stop"}]},
        Finish("eos"),
    ),
    ("openai", {"index": 1, "finish_reason": "length"}, Finish("length")),
    ("openai", ERROR, Finish("abort")),
    ("responses", {"object": "response", "output": [], "error": None, **_responses("completed")}, Finish("eos")),
    ("responses", {"object": "response", "status": "queued", "error": None}, None),
    ("responses", {"object": "response", "status": "in_progress", "error": None}, None),
    (
        "responses",
        {"object": "response", "output": [{"type": "reasoning"}, {"type": "function_call"}], **_responses("completed")},
        Finish("tool_calls"),
    ),
    (
        "responses",
        {"output": [{"type": "message", "content": [{"type": "refusal"}]}], **_responses("completed")},
        Finish("refusal"),
    ),
    (
        "responses",
        {"output": [{"type": "function_call"}], **_responses("incomplete", "max_output_tokens")},
        Finish("length"),
    ),
    ("responses", _final("response.completed", status="completed"), Finish("eos")),
    ("responses", _final("response.incomplete", **_responses("incomplete", "max_output_tokens")), Finish("length")),
    ("responses", _final("response.incomplete", **_responses("incomplete", "max_messages")), Finish("length")),
    (
        "responses",
        _final("response.incomplete", **_responses("incomplete", "content_filter")),
        Finish("content_filter"),
    ),
    ("responses", _final("response.incomplete", **_responses("incomplete", "steered")), Finish("pause")),
    ("responses", _final("response.incomplete", **_responses("incomplete")), Finish("abort")),
    ("responses", _final("response.failed", status="failed", **ERROR), Finish("abort")),
    ("responses", _final("response.created", status="in_progress"), None),
    ("responses", {"type": "response.output_text.delta", "delta": "A"}, None),
    ("responses", {"type": "response.reasoning_summary_part.done", "status": "incomplete"}, None),
    ("responses", {"type": "error", "code": "server_error", "message": "out of memory"}, Finish("abort")),
    ("ollama", {"message": {"content": "A"}, **_ollama("stop")}, Finish("eos")),
    ("ollama", {"response": "A", **_ollama("length")}, Finish("length")),
    ("ollama", {"response": "", **_ollama("load")}, Finish("eos")),
    ("ollama", {"response": "", **_ollama("unload")}, Finish("eos")),
    ("ollama", {"response": "", "done": True}, Finish("eos")),
    ("ollama", {"response": "A", "done": False}, None),
    ("ollama", {"error": "model not found"}, Finish("abort")),
    ("sglang", {"text": "A", "meta_info": _sglang("stop", "END")}, READ),
    ("sglang", {"text": "A", "meta_info": _sglang("stop", 2)}, TOKEN),
    ("sglang", {"text": "A", "meta_info": {"finish_reason": {"type": "length", "length": 9}}}, Finish("length")),
    ("sglang", {"text": "A", "meta_info": {"finish_reason": {"type": "abort", "message": "Aborted"}}}, Finish("abort")),
    ("sglang", {"text": "A", "meta_info": {"finish_reason": None}}, None),
    ("sglang", ERROR, Finish("abort")),
    ("llama_cpp", {"content": "A", "stop": True, **_llama_cpp("word", "END")}, READ),
    ("llama_cpp", {"content": "A", "stop": True, **_llama_cpp("eos")}, Finish("eos")),
    ("llama_cpp", {"content": "A", "stop": True, **_llama_cpp("limit")}, Finish("length")),
    ("llama_cpp", {"content": "A", "stop": True, **_llama_cpp("none")}, Finish("abort")),
    ("llama_cpp", {"content": "A", "stop": False, **_llama_cpp("none")}, None),
    ("llama_cpp", {"content": "A", "stop": False}, None),
    ("llama_cpp", ERROR, Finish("abort")),
    *((api, {}, None) for api in APIS),
]


@pytest.mark.parametrize(
    "kind",
    [
        "function_call",
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
        "apply_patch_call",
        "mcp_approval_request",
    ],
)
def test_a_completed_response_that_waits_for_the_caller_is_tool_calls(kind: str) -> None:
    output = [{"type": "message", "content": [{"type": "output_text"}]}, {"type": kind}]
    assert read("responses", {"output": output, **_responses("completed")}) == Finish("tool_calls")


@pytest.mark.parametrize(
    "kind", ["reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"]
)
def test_a_completed_response_that_used_hosted_tools_is_eos(kind: str) -> None:
    assert read("responses", {"output": [{"type": kind}], **_responses("completed")}) == Finish("eos")


@pytest.mark.parametrize(("api", "payload", "finish"), PAYLOADS)
def test_a_payload_is_read(api: str, payload: object, finish: Finish | None) -> None:
    assert read(api, payload) == finish
    assert read(api, as_object(payload)) == finish


@pytest.mark.parametrize(
    ("api", "payload", "message"),
    [
        ("anthropic", {"stop_reason": "bored"}, "Anthropic stop_reason: unknown value 'bored'"),
        ("openai", {"choices": [{"finish_reason": "bored"}]}, "OpenAI finish_reason: unknown value 'bored'"),
        ("openai", {"choices": [{"finish_reason": {"type": "stop"}}]}, r"OpenAI finish_reason: unknown value \{.*\}"),
        ("responses", {"status": "bored"}, "Responses status: unknown value 'bored'"),
        ("responses", _responses("incomplete", "bored"), "Responses status: unknown value 'bored'"),
        ("ollama", {"done": True, "done_reason": "bored"}, "Ollama done_reason: unknown value 'bored'"),
        ("sglang", {"meta_info": _sglang("bored")}, "sglang finish_reason: unknown value 'bored'"),
        ("llama_cpp", _llama_cpp("bored"), "llama.cpp stop_type: unknown value 'bored'"),
        ("anthropic", _anthropic("stop_sequence"), "Anthropic stop_reason 'stop_sequence': None is not a stop"),
        ("llama_cpp", _llama_cpp("word"), "llama.cpp stop_type 'word': '' is not a stop"),
        ("sglang", _sglang("stop", [1, 2]), r"sglang finish_reason 'stop': \[1, 2\] is not a stop"),  # type: ignore[arg-type]
    ],
)
def test_an_unknown_value_is_an_error_that_names_it(api: str, payload: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        read(api, payload)


@pytest.mark.parametrize("payload", ["{}", b"{}", None, [{}], ({},), 1, 1.5, True], ids=repr)
@pytest.mark.parametrize("api", APIS)
def test_what_is_no_payload_is_an_error_that_names_its_type(api: str, payload: object) -> None:
    with pytest.raises(TypeError, match=f" is read from a dict or an object, not {type(payload).__name__}$"):
        read(api, payload)


# Whole streams, as dicts and through the official clients


class Case:
    """A stream of JSON events and what each of them reports."""

    def __init__(self, api: str, events: list[dict[str, Any]], finish: Finish, last: int = -1) -> None:
        self.api, self.events, self.finish = api, events, finish
        self.reports: list[Finish | None] = [None] * len(events)
        self.reports[last] = finish


USAGE = {"input_tokens": 5, "output_tokens": 26}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": USAGE}
CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
TEXT = {"id": "1", "object": "text_completion", "created": 1, "model": "m"}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "output": [],
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
    "error": None,
    "incomplete_details": None,
}


def anthropic_stream(finish: Finish, stop_reason: str, stop_sequence: str | None = None) -> Case:
    events = [
        {"type": "message_start", "message": {**MESSAGE, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ABC"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": _anthropic(stop_reason, stop_sequence), "usage": {"output_tokens": 26}},
        {"type": "message_stop"},
    ]
    return Case("anthropic", events, finish, last=-2)


def openai_stream(finish: Finish, **last: Any) -> Case:
    choices: list[list[dict[str, Any]]] = [
        [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
        [{"index": 0, "delta": {"content": "ABC"}, "finish_reason": None, "matched_stop": None, "stop_reason": None}],
        [{"index": 0, "delta": {}, **last}],
        [],
    ]
    usage = {"prompt_tokens": 5, "completion_tokens": 26, "total_tokens": 31}
    events = [{**CHUNK, "choices": choice, "usage": None if choice else usage} for choice in choices]
    return Case("openai", events, finish, last=-2)


def completions_stream(finish: Finish, **last: Any) -> Case:
    choices = [{"index": 0, "text": "ABC", "finish_reason": None}, {"index": 0, "text": "", **last}]
    return Case("openai", [{**TEXT, "choices": [choice]} for choice in choices], finish)


def responses_stream(finish: Finish, event: str, **response: Any) -> Case:
    part = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    summary = {"item_id": "rs_1", "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}
    events = [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}},
        {"type": "response.in_progress", "response": {**RESPONSE, "status": "in_progress"}},
        {"type": "response.reasoning_summary_part.done", **summary, "status": "incomplete"},
        {"type": "response.output_text.delta", **part, "delta": "ABC", "logprobs": []},
        {"type": event, "response": {**RESPONSE, **response}},
    ]
    return Case("responses", [{**event, "sequence_number": n} for n, event in enumerate(events)], finish)


def ollama_stream(finish: Finish, text: dict[str, Any], **last: Any) -> Case:
    line = {"model": "m", "created_at": "2026-01-01T00:00:00Z", **text}
    return Case("ollama", [{**line, "done": False}, {**line, "done": True, **last}], finish)


CHAT, GENERATE = {"message": {"role": "assistant", "content": "A"}}, {"response": "A"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}
REFUSAL = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "refusal", "refusal": "No."}],
}

STREAMS = {
    "anthropic stop_sequence": anthropic_stream(READ, "stop_sequence", "END"),
    "anthropic end_turn": anthropic_stream(Finish("eos"), "end_turn"),
    "anthropic tool_use": anthropic_stream(Finish("tool_calls"), "tool_use"),
    "anthropic max_tokens": anthropic_stream(Finish("length"), "max_tokens"),
    "anthropic pause_turn": anthropic_stream(Finish("pause"), "pause_turn"),
    "anthropic refusal": anthropic_stream(Finish("refusal"), "refusal"),
    "chat stop": openai_stream(Finish("eos"), finish_reason="stop"),
    "chat length": openai_stream(Finish("length"), finish_reason="length"),
    "chat tool_calls": openai_stream(Finish("tool_calls"), finish_reason="tool_calls"),
    "chat content_filter": openai_stream(Finish("content_filter"), finish_reason="content_filter"),
    "chat sglang string": openai_stream(READ, finish_reason="stop", matched_stop="END"),
    "chat sglang token": openai_stream(TOKEN, finish_reason="stop", matched_stop=2),
    "chat vllm string": openai_stream(READ, finish_reason="stop", stop_reason="END"),
    "chat vllm token": openai_stream(TOKEN, finish_reason="stop", stop_reason=2),
    "chat vllm eos": openai_stream(Finish("eos"), finish_reason="stop", stop_reason=None),
    "completions stop": completions_stream(Finish("eos"), finish_reason="stop"),
    "completions vllm string": completions_stream(READ, finish_reason="stop", stop_reason="END"),
    "responses completed": responses_stream(Finish("eos"), "response.completed", status="completed"),
    "responses call": responses_stream(Finish("tool_calls"), "response.completed", status="completed", output=[CALL]),
    "responses refusal": responses_stream(
        Finish("refusal"), "response.completed", status="completed", output=[REFUSAL]
    ),
    "responses length": responses_stream(
        Finish("length"), "response.incomplete", **_responses("incomplete", "max_output_tokens")
    ),
    "responses filter": responses_stream(
        Finish("content_filter"), "response.incomplete", **_responses("incomplete", "content_filter")
    ),
    "responses failed": responses_stream(
        Finish("abort"), "response.failed", status="failed", error={"code": "server_error", "message": "out of memory"}
    ),
    "ollama chat stop": ollama_stream(Finish("eos"), CHAT, done_reason="stop"),
    "ollama chat length": ollama_stream(Finish("length"), CHAT, done_reason="length"),
    "ollama generate stop": ollama_stream(Finish("eos"), GENERATE, done_reason="stop"),
    "ollama generate length": ollama_stream(Finish("length"), GENERATE, done_reason="length"),
    "sglang string": Case(
        "sglang",
        [{"text": "A", "meta_info": {"finish_reason": None}}, {"text": "AB", "meta_info": _sglang("stop", "END")}],
        READ,
    ),
    "llama.cpp word": Case(
        "llama_cpp", [{"content": "A", "stop": False}, {"content": "", "stop": True, **_llama_cpp("word", "END")}], READ
    ),
}


def accumulate(api: str, events: Iterable[object]) -> Finish | None:
    """The reader of the README: the last report stands."""
    finish = None
    for event in events:
        finish = read(api, event) or finish
    return finish


@pytest.mark.parametrize("case", STREAMS.values(), ids=STREAMS)
def test_a_whole_stream_reports_once(case: Case) -> None:
    assert [read(case.api, event) for event in case.events] == case.reports
    assert [read(case.api, as_object(event)) for event in case.events] == case.reports
    assert accumulate(case.api, case.events) == case.finish


Serve = Callable[[Any], str]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a server that answers every request with one JSON object, or with a list of them as a stream."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    answer: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            payload, lines = answer[0], self.path.startswith("/api/")
            kind = (
                "application/json"
                if isinstance(payload, dict)
                else "application/x-ndjson"
                if lines
                else "text/event-stream"
            )
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            for event in payload if isinstance(payload, list) else ():
                name = f"event: {event['type']}\n" if "type" in event else ""
                self.wfile.write(
                    (f"{json.dumps(event)}\n" if lines else f"{name}data: {json.dumps(event)}\n\n").encode()
                )
            if isinstance(payload, dict):
                self.wfile.write(json.dumps(payload).encode())
            elif "completions" in self.path:
                self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def start(payload: Any) -> str:
        answer[:] = [payload]
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    server.shutdown()
    thread.join()
    server.server_close()


def streams(prefix: str) -> Any:
    cases = {name: case for name, case in STREAMS.items() if name.startswith(prefix)}
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


@pytest.fixture
def anthropic() -> ModuleType:
    return pytest.importorskip("anthropic", reason="anthropic is not installed")


@pytest.fixture
def openai() -> ModuleType:
    return pytest.importorskip("openai", reason="openai is not installed")


@pytest.fixture
def ollama() -> ModuleType:
    return pytest.importorskip("ollama", reason="ollama is not installed")


QUESTION: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "The alphabet, then END"}]}


@streams("anthropic")
def test_anthropic_client_streams(anthropic: ModuleType, serve: Serve, case: Case) -> None:
    client = anthropic.Anthropic(api_key="key", base_url=serve(case.events), max_retries=0)
    events = list(client.messages.create(**QUESTION, max_tokens=9, stream=True))
    # The client keeps pings to itself.
    assert [read("anthropic", event) for event in events] == [None] * 4 + [case.finish, None]
    with client.messages.stream(**QUESTION, max_tokens=9) as helper:
        assert accumulate("anthropic", helper) == case.finish
        assert read("anthropic", helper.get_final_message()) == case.finish


@streams("anthropic")
def test_anthropic_client_messages(anthropic: ModuleType, serve: Serve, case: Case) -> None:
    message = {**MESSAGE, **case.events[-2]["delta"]}
    client = anthropic.Anthropic(api_key="key", base_url=serve(message), max_retries=0)
    assert read("anthropic", client.messages.create(**QUESTION, max_tokens=9)) == case.finish
    assert read("anthropic", anthropic.types.Message(**message)) == case.finish
    event = anthropic.types.RawMessageDeltaEvent.model_validate(case.events[-2])
    assert read("anthropic", event) == case.finish


@streams("chat")
def test_openai_client_chat_streams(openai: ModuleType, serve: Serve, case: Case) -> None:
    client = openai.OpenAI(api_key="key", base_url=serve(case.events), max_retries=0)
    chunks = list(client.chat.completions.create(**QUESTION, stream=True))
    assert [read("openai", chunk) for chunk in chunks] == case.reports
    assert accumulate("openai", chunks) == case.finish


def test_openai_client_stream_helper(openai: ModuleType, serve: Serve) -> None:
    case = STREAMS["chat sglang string"]
    client = openai.OpenAI(api_key="key", base_url=serve(case.events), max_retries=0)
    with client.chat.completions.stream(**QUESTION) as events:
        assert accumulate("openai", events) == case.finish


@streams("chat")
def test_openai_client_chat(openai: ModuleType, serve: Serve, case: Case) -> None:
    choice = {**case.events[-2]["choices"][0], "message": {"role": "assistant", "content": "ABC"}}
    completion = {**CHUNK, "object": "chat.completion", "choices": [choice]}
    client = openai.OpenAI(api_key="key", base_url=serve(completion), max_retries=0)
    response = client.chat.completions.create(**QUESTION)
    assert read("openai", response) == read("openai", response.choices[0]) == case.finish
    assert read("openai", openai.types.chat.ChatCompletion.model_validate(completion)) == case.finish


@streams("completions")
def test_openai_client_completions(openai: ModuleType, serve: Serve, case: Case) -> None:
    client = openai.OpenAI(api_key="key", base_url=serve(case.events), max_retries=0)
    chunks = list(client.completions.create(model="m", prompt="A", stream=True))
    assert [read("openai", chunk) for chunk in chunks] == case.reports
    serve(case.events[-1])
    assert read("openai", client.completions.create(model="m", prompt="A")) == case.finish
    assert read("openai", openai.types.Completion.model_validate(case.events[-1])) == case.finish


@streams("responses")
def test_openai_client_responses(openai: ModuleType, serve: Serve, case: Case) -> None:
    client = openai.OpenAI(api_key="key", base_url=serve(case.events), max_retries=0)
    events = list(client.responses.create(model="m", input="A", stream=True))
    assert [event.type for event in events] == [event["type"] for event in case.events]
    assert [read("responses", event) for event in events] == case.reports
    response = case.events[-1]["response"]
    serve(response)
    assert read("responses", client.responses.create(model="m", input="A")) == case.finish
    assert read("responses", openai.types.responses.Response.model_validate(response)) == case.finish


@streams("ollama chat")
def test_ollama_client_chat(ollama: ModuleType, serve: Serve, case: Case) -> None:
    client = ollama.Client(host=serve(case.events))
    assert [read("ollama", line) for line in client.chat(**QUESTION, stream=True)] == case.reports
    serve(case.events[-1])
    assert read("ollama", client.chat(**QUESTION)) == case.finish
    assert read("ollama", ollama.ChatResponse(**case.events[-1])) == case.finish


@streams("ollama generate")
def test_ollama_client_generate(ollama: ModuleType, serve: Serve, case: Case) -> None:
    client = ollama.Client(host=serve(case.events))
    assert [read("ollama", line) for line in client.generate("m", "A", stream=True)] == case.reports
    serve(case.events[-1])
    assert read("ollama", client.generate("m", "A")) == case.finish
    assert read("ollama", ollama.GenerateResponse(**case.events[-1])) == case.finish


def literals(annotation: Any) -> set[str]:
    """The strings of a `Literal`, wherever it is inside of an annotation."""
    arguments = get_args(annotation)
    return {a for a in arguments if isinstance(a, str)}.union(
        *(literals(a) for a in arguments if not isinstance(a, str))
    )


@pytest.mark.parametrize("name", ["Message", "beta.BetaMessage"])
def test_every_reason_the_anthropic_client_knows_is_read(anthropic: ModuleType, name: str) -> None:
    model: Any = anthropic.types
    for part in name.split("."):
        model = getattr(model, part)
    reasons = literals(model.model_fields["stop_reason"].annotation)
    assert {"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"} <= reasons
    for reason in reasons:
        assert (
            read("anthropic", {"stop_reason": reason, "stop_sequence": "END" * (reason == "stop_sequence")}) is not None
        )
    assert {write("anthropic", finish)["stop_reason"] for finish in FINISHES.values()} <= reasons


def test_every_reason_the_openai_client_knows_is_read(openai: ModuleType) -> None:
    reasons = literals(openai.types.chat.chat_completion.Choice.model_fields["finish_reason"].annotation)
    assert {"stop", "length", "tool_calls", "content_filter"} <= reasons
    for reason in reasons:
        assert read("openai", {"finish_reason": reason}) is not None
    assert {write("openai", finish)["finish_reason"] for finish in FINISHES.values()} <= reasons


def test_every_status_the_openai_client_knows_is_read(openai: ModuleType) -> None:
    fields = openai.types.responses.Response.model_fields
    statuses = literals(fields["status"].annotation)
    whys = literals(openai.types.responses.response.IncompleteDetails.model_fields["reason"].annotation)
    assert {status for status in statuses if read("responses", {"status": status}) is None} == {"queued", "in_progress"}
    assert "max_output_tokens" in whys
    assert all(read("responses", _responses("incomplete", why)) is not None for why in whys)
    written = [write("responses", finish) for finish in FINISHES.values()]
    assert {words["status"] for words in written} <= statuses
    assert {words["incomplete_details"]["reason"] for words in written if words["incomplete_details"]} <= whys


# Regression tests, named after the reports


def test_exo_2122_stop_reason_was_always_end_turn_and_stop_sequence_always_null() -> None:
    assert write("anthropic", STRING) == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_rapid_mlx_469_a_matched_stop_survives_the_way_from_openai_to_anthropic() -> None:
    finish = read("openai", {"choices": [{"index": 0, **write("openai", STRING)}]})
    assert finish is not None
    assert write("anthropic", finish) == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_vllm_45807_a_stop_token_or_eos_is_no_stop_sequence() -> None:
    for stop in (2, None):
        finish = read("openai", {"choices": [{"index": 0, "finish_reason": "stop", "stop_reason": stop}]})
        assert finish is not None
        assert write("anthropic", finish) == {"stop_reason": "end_turn", "stop_sequence": None}


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
def test_vllm_55324_stop_sequence_is_on_the_wire_when_it_is_null(finish: Finish) -> None:
    delta = json.loads(json.dumps(write("anthropic", finish)))
    assert set(delta) == {"stop_reason", "stop_sequence"}
    assert delta["stop_sequence"] == ("END" if finish is STRING else None)


def test_vllm_55324_a_delta_without_the_key_is_read() -> None:
    assert read("anthropic", {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}) == Finish("length")


@pytest.mark.parametrize("stop", ["6", "hello world", "é"])
def test_smg_1447_and_1524_the_users_own_string_never_a_token_id(stop: str) -> None:
    finish = Finish("stop_sequence", StopMatch(stop, 9))
    assert write("openai", finish) == {"finish_reason": "stop", "matched_stop": stop}
    assert write("sglang", finish) == {"finish_reason": {"type": "stop", "matched": stop}}
    for api in ("openai", "sglang"):
        assert read(api, write(api, finish)) == Finish("stop_sequence", StopMatch(stop, 0))


@pytest.mark.parametrize("stop_reason", ["end_turn", "tool_use", "max_tokens", "pause_turn"])
def test_ruby_llm_568_a_streamed_stop_reason_is_not_lost(stop_reason: str) -> None:
    case = STREAMS[f"anthropic {stop_reason}"]
    assert accumulate("anthropic", case.events) == case.finish
    assert write("anthropic", case.finish)["stop_reason"] == stop_reason


def test_anthropic_sdk_typescript_1204_a_later_delta_without_a_reason_does_not_erase_it() -> None:
    later = {"type": "message_delta", "delta": {"container": None}, "usage": {"output_tokens": 26}}
    assert accumulate("anthropic", [*STREAMS["anthropic tool_use"].events, later]) == Finish("tool_calls")
