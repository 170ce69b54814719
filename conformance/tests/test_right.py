"""Right servers, even unusual ones, pass the kit. Official clients read the same from unusual and plain answers.

The kit sends each server a part of the cases, or all cases with `--thorough` (ci/kit-thorough).
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from urllib.parse import quote

import anthropic
import httpx
import ollama
import openai
import pytest
from every import BY_NAME, EVERY
from quietly import quietly
from staged.right import FAILURES, REFUSALS, RIGHT, Right

from stopscan_conformance import COLUMNS, Case, Result, Server

APART = [case for case in EVERY if not case.timed]
PATIENT = 120  # seconds, because the machine may be busy with other work
# Times do not depend on the API, so most timed cases run for one API only. Those of the topic "pace" run for three.
TIMED = [
    case
    for case in EVERY
    if case.timed and (case.api == "openai-chat" or (case.topic == "pace" and case.api in ("anthropic", "ollama-chat")))
]


def named(value: Right | str) -> str:
    return value if isinstance(value, str) else value.staged.name


def part(every: list[Case], listed: int, generated: int) -> list[Case]:
    """Returns each `listed`th of the listed cases, and each `generated`th of the generated ones, which take longer."""
    made = [case for case in every if case.topic == "generated"]
    return [case for case in every if case.topic != "generated"][::listed] + made[::generated]


def results_of(server: Server, chosen: list[Case]) -> dict[str, Result]:
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(map(str, chosen), pool.map(lambda case: case.run(server, level="advice"), chosen), strict=True))


def test_right_server_passes(staged_url: str, thorough: bool) -> None:
    server = Server(f"{staged_url}/right", timeout=PATIENT)
    results = results_of(server, APART if thorough else part(APART, 3, 9))
    results |= {str(case): quietly(case, server) for case in TIMED}
    assert {name: result for name, result in results.items() if result.outcome != "pass"} == {}
    assert {column for result in results.values() for column in result.columns} == {*COLUMNS}


@pytest.mark.parametrize(("right", "api"), [(one, api) for one in RIGHT for api in one.apis], ids=named)
def test_unusual_right_server_passes(staged_url: str, thorough: bool, right: Right, api: str) -> None:
    server = Server(f"{staged_url}/{quote(right.staged.name)}", model="reciter", timeout=PATIENT)
    every = [case for case in APART if case.api == api]
    # The last case has 63 stops. A server that refuses 63 stops must be judged "not supported", not wrong.
    results = results_of(server, every if thorough else [*part(every, 23, 80), BY_NAME[f"{api}-whole-sixty-three"]])
    may = {"pass", "not supported"} if right.lacks else {"pass"}
    assert {name: result for name, result in results.items() if result.outcome not in may} == {}
    assert "pass" in {result.outcome for result in results.values()}


@pytest.mark.parametrize("api", ["openai-chat", "anthropic", "generate"])
def test_a_line_separator_within_a_text_does_not_end_a_line(staged_url: str, api: str) -> None:
    server = Server(f"{staged_url}/as%20they%20are", model="reciter", timeout=PATIENT)
    names = [f"{api}-stream-line-separators", f"{api}-stream-separator-stop"]
    assert [BY_NAME[name].run(server).outcome for name in names] == ["pass", "pass"]


@pytest.mark.parametrize("status", REFUSALS + FAILURES)
def test_only_a_refusal_is_not_a_failure(staged_url: str, status: int) -> None:
    result = BY_NAME["openai-chat-whole-split"].run(Server(f"{staged_url}/stops%20are%20a%20{status}", model="reciter"))
    assert result.outcome == ("not supported" if status in REFUSALS else "fail")
    assert f"{status}: " in result.detail
    assert "stop is not supported" in result.detail


@pytest.mark.parametrize("name", ["split", "at-once", "null"])
def test_a_server_that_stays_busy_is_told_and_not_judged(staged_url: str, name: str) -> None:
    result = BY_NAME[f"openai-chat-whole-{name}"].run(Server(f"{staged_url}/always%20busy", model="reciter"))
    assert (result.outcome, result.detail[:4]) == ("not supported", "503:")


def test_the_first_delta_may_be_without_a_role_as_far_as_a_sentence_says(staged_url: str) -> None:
    result = BY_NAME["openai-chat-stream-split"].run(Server(f"{staged_url}/no%20role"), level="documented")
    assert (result.outcome, [*result.broken]) == ("pass", ["usual-form"])


def test_exact_usage_after_a_stop_within_a_speculative_step_is_an_advice(staged_url: str) -> None:
    server = Server(f"{staged_url}/a%20speculative%20step%20behind%20a%20stop")
    results = [BY_NAME[f"openai-chat-{name}"].run(server) for name in ("whole-split", "stream-stop-in-the-last-token")]
    assert [(result.outcome, [*result.broken]) for result in results] == [("pass", ["cost-of-a-stop"]), ("pass", [])]


# The official clients.

STOP = ["5", "END"]
# Without `verify=False`, a client takes 20 ms to load certificates that are not needed.
HTTP = httpx.Client(verify=False, follow_redirects=True, timeout=60)
OPTIONS: dict[str, Any] = {"api_key": "none", "max_retries": 0}
FOR_OPENAI = openai.DefaultHttpxClient(verify=False)
FOR_ANTHROPIC = anthropic.DefaultHttpxClient(verify=False)


def whole_and_stream(client: Any, **options: Any) -> list[Any]:
    return [client(**options, stream=False), list(client(**options, stream=True))]


def chat(url: str, prompt: str) -> Any:
    create = openai.OpenAI(base_url=f"{url}/v1", http_client=FOR_OPENAI, **OPTIONS).chat.completions.create
    messages: Any = [{"role": "user", "content": prompt}]
    whole, chunks = whole_and_stream(create, model="reciter", messages=messages, stop=STOP)
    deltas = [chunk.choices[0] for chunk in chunks if chunk.choices]
    text = "".join(one.delta.content or "" for one in deltas)
    thought = "".join(getattr(one.delta, "reasoning_content", None) or "" for one in deltas)
    (choice,) = whole.choices
    return [
        (choice.message.content, getattr(choice.message, "reasoning_content", ""), choice.finish_reason),
        (text, thought, deltas[-1].finish_reason),
    ]


def completions(url: str, prompt: str) -> Any:
    create = openai.OpenAI(base_url=f"{url}/v1", http_client=FOR_OPENAI, **OPTIONS).completions.create
    whole, chunks = whole_and_stream(create, model="reciter", prompt=prompt, stop=STOP)
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    text = "".join(one.text for one in choices)
    return [(whole.choices[0].text, whole.choices[0].finish_reason), (text, choices[-1].finish_reason)]


def responses(url: str, prompt: str) -> Any:
    create = openai.OpenAI(base_url=f"{url}/v1", http_client=FOR_OPENAI, **OPTIONS).responses.create
    whole, events = whole_and_stream(create, model="reciter", input=prompt, extra_body={"stop": STOP})
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return [(whole.output_text, whole.status), (text, events[-1].response.status)]


def messages(url: str, prompt: str) -> Any:
    client = anthropic.Anthropic(base_url=url, http_client=FOR_ANTHROPIC, **OPTIONS).messages
    asked: Any = {"model": "reciter", "max_tokens": 100, "stop_sequences": STOP}
    asked["messages"] = [{"role": "user", "content": prompt}]
    with client.stream(**asked) as stream:
        answers = [client.create(**asked), stream.get_final_message()]
    return [
        (["".join(getattr(block, kind, "") for block in one.content) for kind in ("text", "thinking")],
         one.stop_reason, one.stop_sequence, one.usage.output_tokens)
        for one in answers
    ]  # fmt: skip


def ollama_chat(url: str, prompt: str) -> Any:
    asked: Any = {"model": "reciter", "messages": [{"role": "user", "content": prompt}], "options": {"stop": STOP}}
    whole, chunks = whole_and_stream(ollama.Client(url, verify=False).chat, **asked)
    text = "".join(chunk.message.content or "" for chunk in chunks)
    return [(whole.message.content, whole.done_reason), (text, chunks[-1].done_reason)]


def ollama_generate(url: str, prompt: str) -> Any:
    whole, chunks = whole_and_stream(
        ollama.Client(url, verify=False).generate, model="reciter", prompt=prompt, options={"stop": STOP}
    )
    return [(whole.response, whole.done_reason), ("".join(one.response for one in chunks), chunks[-1].done_reason)]


def generate(url: str, prompt: str) -> Any:
    asked: Any = {"text": prompt, "sampling_params": {"stop": STOP, "max_new_tokens": 100}}
    whole = HTTP.post(f"{url}/generate", json=asked).json()
    lines = HTTP.post(f"{url}/generate", json={**asked, "stream": True}).text.split("\n\n")
    *_, last = (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {"))
    return [(one["text"], one["meta_info"]["finish_reason"]) for one in (whole, last)]


ASK = {
    "openai-chat": chat, "openai-completions": completions, "responses-with-stop": responses, "anthropic": messages,
    "ollama-chat": ollama_chat, "ollama-generate": ollama_generate, "generate": generate,
}  # fmt: skip


@cache
def plain(api: str, url: str, prompt: str) -> Any:
    return ASK[api](url, prompt)


@pytest.mark.parametrize(("right", "api"), [(one, api) for one in RIGHT if one.alike for api in one.apis], ids=named)
def test_clients_get_the_right_answer(staged_url: str, right: Right, api: str) -> None:
    for prompt in ("[think]", "[emoji]"):
        assert ASK[api](f"{staged_url}/{quote(right.staged.name)}", prompt) == plain(api, f"{staged_url}/right", prompt)


def test_there_are_enough() -> None:
    assert len({one.staged.name for one in RIGHT}) == len(RIGHT) >= 60
