"""The official clients get from each unusual server of `staged.unusual` what they get from the right one."""

from __future__ import annotations

import json
from functools import cache
from typing import Any
from urllib.parse import quote

import anthropic
import httpx
import ollama
import openai
import pytest
from staged.unusual import UNUSUAL

STOP = ["5", "END"]
# Certificates that nobody needs take a client 20 ms.
HTTP = httpx.Client(verify=False, follow_redirects=True, timeout=60)
OPTIONS: dict[str, Any] = {"api_key": "none", "max_retries": 0}
FOR_OPENAI = openai.DefaultHttpxClient(verify=False)
FOR_ANTHROPIC = anthropic.DefaultHttpxClient(verify=False)
CASES = [(one.staged.name, api) for one in UNUSUAL for api in one.apis]


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
    "openai-chat": chat, "openai-completions": completions, "openai-responses": responses, "anthropic": messages,
    "ollama-chat": ollama_chat, "ollama-generate": ollama_generate, "generate": generate,
}  # fmt: skip


@cache
def right(api: str, url: str, prompt: str) -> Any:
    return ASK[api](url, prompt)


@pytest.mark.parametrize(("name", "api"), CASES, ids=lambda value: value)
def test_clients_get_the_right_answer(staged_url: str, name: str, api: str) -> None:
    for prompt in ("[think]", "[emoji]"):
        assert ASK[api](f"{staged_url}/{quote(name)}", prompt) == right(api, f"{staged_url}/right", prompt)


def test_there_are_enough() -> None:
    names = [one.staged.name for one in UNUSUAL]
    assert len({*names}) == len(names) >= 30
