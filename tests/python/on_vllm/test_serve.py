"""``vllm serve`` with the plugin off and on, through the official openai and anthropic clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

import anthropic
import httpx
import openai
from vllm_harness import THINK
from vllm_serving import Server, serve
from vllm_streams import STREAMS, Stream

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module", params=["off", "on"])
def plugin(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def server(checkpoint: Path, plugin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("serve") / "log"
    with serve(checkpoint, log, STOPSCAN_VLLM="1" if plugin == "on" else "") as running:
        yield running


def options(reciter: Any, row: dict[str, Any]) -> dict[str, Any]:
    """Returns the parameters of a case in `STREAMS` for the openai client. Parameters that only vLLM has go into
    ``extra_body``."""
    params = dict(row["params"])
    body: dict[str, Any] = {"return_token_ids": True}
    for name, field in (("extra_args", "vllm_xargs"), ("min_tokens",) * 2, ("include_stop_str_in_output",) * 2):
        if name in params:
            body[field] = params.pop(name)
    return {"model": "reciter", "temperature": 0, "max_tokens": 40, **params, "extra_body": body}


def message(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


@pytest.mark.parametrize("row", STREAMS, ids=lambda row: row["name"])
@pytest.mark.parametrize("route", ["completions", "chat"])
def test_openai(server: Server, plugin: str, reciter: Any, route: str, row: dict[str, Any]) -> None:
    prompt, expected, stream = reciter.prompt(row["script"]), row[plugin], Stream(row["script"])
    if route == "chat":
        create, content = server.openai.chat.completions.create, {"messages": message(prompt)}
    else:
        create, content = server.openai.completions.create, {"prompt": prompt}
    for chunk in create(**content, stream=True, **options(reciter, row)):
        (choice,) = chunk.choices
        token_ids = choice.model_extra.get("token_ids") or []
        text = (choice.delta.content or "") if route == "chat" else choice.text
        if token_ids:
            stream.add(text, len(token_ids))
        else:
            assert text == ""
    stream.check(expected)
    reasons = {"finish_reason": expected["finish_reason"], "stop_reason": expected["stop_reason"]}
    assert {"finish_reason": choice.finish_reason, "stop_reason": choice.model_extra["stop_reason"]} == reasons

    (choice,) = create(**content, **options(reciter, row)).choices
    assert (choice.message.content if route == "chat" else choice.text) == expected["text"]
    assert {"finish_reason": choice.finish_reason, "stop_reason": choice.model_extra["stop_reason"]} == reasons


@pytest.mark.parametrize(
    "row",
    [row for row in STREAMS if not {"min_tokens", "include_stop_str_in_output"} & set(row["params"])],
    ids=lambda row: row["name"],
)
def test_anthropic(server: Server, plugin: str, reciter: Any, row: dict[str, Any]) -> None:
    expected, stream = row[plugin], Stream(row["script"])
    released = {stream.length(tokens) - withheld for tokens, withheld in enumerate(expected["withheld"], 1)}
    request = {
        "model": "reciter",
        "messages": message(reciter.prompt(row["script"])),
        "max_tokens": row["params"].get("max_tokens", 40),
        "stop_sequences": row["params"]["stop"],
        "extra_body": {"temperature": 0, "vllm_xargs": row["params"].get("extra_args", {})},
    }
    reached = 0
    with server.anthropic.messages.stream(**request) as events:
        for text in events.text_stream:
            reached += len(text)
            assert reached in released | {len(expected["text"])}
        streamed = events.get_final_message()
    whole = server.anthropic.messages.create(**request)
    stop_reason = "end_turn" if expected["finish_reason"] == "stop" else "max_tokens"
    for answer in (streamed, whole):
        assert "".join(block.text for block in answer.content) == expected["text"]
        assert answer.stop_sequence == expected["stop_reason"]
        assert answer.stop_reason == ("stop_sequence" if expected["stop_reason"] else stop_reason)


def test_responses_have_stops_too(server: Server, plugin: str) -> None:
    body = {"stop": ["END"], "vllm_xargs": {"stopscan_protect": THINK}}
    response = server.openai.responses.create(model="reciter", input="[think]", temperature=0, extra_body=body)
    expected = {"off": "<think>Is it ", "on": "<think>Is it END?</think>It is 5 or 6 "}
    assert response.output_text == expected[plugin]


MALFORMED = [
    ({"stopscan_protect": "<think>"}, "'<think>' is not a region"),
    ({"stopscan_protect": ["<think>"]}, "'<think>' is not a region"),
    ({"stopscan_protect": ["tool_call"]}, "stopscan_protect: this model has no markers for 'tool_call'"),
    ({"stopscan_start_protected": 1}, "stopscan_start_protected needs a region"),
    ({"stopscan_start_protected": "yes"}, "stopscan_start_protected must be true or false, not 'yes'"),
    ({"stopscan_protected": 1}, "stopscan_protected is not an option of stopscan"),
    ({"stopscan_patterns": "(a"}, "stopscan_patterns is malformed"),
    (
        {"stopscan_patterns": [f"a{number}" for number in range(300)]},
        "stopscan_patterns has 300 entries; the limit is",
    ),
    ({"stopscan_patterns": "a" * 70_000}, "stopscan_patterns has 7000"),
    ({"stopscan_protect": ["<a>", "</a>", "<a>", "</b>"]}, "has two closing markers"),
    ({"stopscan_protect": [f"<{number}>" for number in range(200)]}, "stopscan_protect has 100 regions; the limit is"),
    ({"stopscan_max_held": -1}, "stopscan_max_held must be"),
]


# Marks tests that run only with the plugin on. A server without stopscan ignores stopscan's options.
ON = pytest.mark.parametrize("plugin", ["on"], indirect=True, scope="module")


@ON
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ["completions", "chat", "responses", "messages"])
@pytest.mark.parametrize(("xargs", "text"), MALFORMED)
def test_malformed_option_is_a_400_and_engine_continues(
    server: Server, route: str, stream: bool, xargs: dict[str, Any], text: str
) -> None:
    def ask(xargs: dict[str, Any]) -> None:
        body = {"temperature": 0, "vllm_xargs": xargs}
        common = {"model": "reciter", "stream": stream}
        if route == "completions":
            result = server.openai.completions.create(prompt="[split]", stop=["END"], extra_body=body, **common)
        elif route == "chat":
            chat = server.openai.chat.completions
            result = chat.create(messages=message("[split]"), stop=["END"], extra_body=body, **common)
        elif route == "responses":
            result = server.openai.responses.create(input="[split]", extra_body={"stop": ["END"], **body}, **common)
        else:
            messages = server.anthropic.messages
            content = {"messages": message("[split]"), "max_tokens": 40, "stop_sequences": ["END"]}
            result = messages.create(**content, extra_body=body, **common)
        if stream:
            list(result)

    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as refusal:
        ask(xargs)
    assert refusal.value.status_code == 400
    assert text in refusal.value.message
    ask({})


@ON
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("xargs", "text"), MALFORMED)
def test_the_route_for_tokens_answers_400_too(
    server: Server, reciter: Any, stream: bool, xargs: dict[str, Any], text: str
) -> None:
    def ask(xargs: dict[str, Any]) -> httpx.Response:
        sampling = {"temperature": 0, "max_tokens": 40, "stop": ["END"], "extra_args": xargs}
        prompt = {"prompt": reciter.prompt("split"), "add_special_tokens": False}
        token_ids = httpx.post(f"{server.url}/tokenize", json=prompt, timeout=60).json()["tokens"]
        body = {"token_ids": token_ids, "sampling_params": sampling, "stream": stream}
        return httpx.post(f"{server.url}/inference/v1/generate", json=body, timeout=60)

    answer = ask(xargs)
    assert answer.status_code == 400
    assert text in answer.json()["error"]["message"]
    assert ask({}).status_code == 200


@pytest.mark.parametrize("plugin", ["off"], indirect=True, scope="module")
def test_a_server_without_stopscan_passes_over_its_options(server: Server) -> None:
    body = {"temperature": 0, "vllm_xargs": MALFORMED[0][0]}
    answer = server.openai.completions.create(model="reciter", prompt="[split]", stop=["END"], extra_body=body)
    assert answer.choices[0].text == "This is the "


def test_patterns(server: Server, plugin: str) -> None:
    body = {"temperature": 0, "vllm_xargs": {"stopscan_patterns": [r"E[A-Z]\w", "never"]}}
    answer = server.openai.chat.completions.create(model="reciter", messages=message("[split]"), extra_body=body)
    (choice,) = answer.choices
    expected = {"off": ("This is the END of it", None), "on": ("This is the ", "END")}
    assert (choice.message.content, choice.model_extra["stop_reason"]) == expected[plugin]
    assert choice.finish_reason == "stop"


def test_a_pattern_that_the_end_of_the_answer_confirms(server: Server, plugin: str) -> None:
    body = {"temperature": 0, "vllm_xargs": {"stopscan_patterns": r"it\b"}}
    for stream in (False, True):
        create, common = server.openai.chat.completions.create, {"model": "reciter", "extra_body": body}
        answer = create(messages=message("[split]"), max_tokens=40, stream=stream, **common)
        choices = [chunk.choices[0] for chunk in (answer if stream else [answer]) if chunk.choices]
        text = "".join((choice.delta.content if stream else choice.message.content) or "" for choice in choices)
        assert text == {"off": "This is the END of it", "on": "This is the END of "}[plugin]
        assert choices[-1].finish_reason == "stop"
        assert choices[-1].model_extra["stop_reason"] == {"off": None, "on": "it"}[plugin]
