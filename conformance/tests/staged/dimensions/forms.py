"""The form of an answer, and what a request gets that is wrong."""

from __future__ import annotations

import json
from typing import Any

from staged.dimensions.mutant import mutant
from staged.edits import every, put, with_choices
from staged.request import Refusal, right_stops


def nan(data: Any) -> str:
    """A number that JSON does not have."""
    return json.dumps({**data, "score": float("nan")}) if isinstance(data, dict) else json.dumps(data)


def cut_utf8(text: str) -> bytes:
    """The first byte of each character beyond ASCII is lost, now and then."""
    return text.encode().replace(b"\xc3", b"", 1)


def unescaped(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def takes_all(given: Any) -> list[str]:
    """Whatever it is."""
    stops = given if isinstance(given, list) else [given]
    return [stop for stop in stops if isinstance(stop, str) and stop]


def as_text(given: Any) -> list[str]:
    stops = [] if given is None else given if isinstance(given, list) else [given]
    return [str(stop) for stop in stops if stop != ""]


def crashes(given: Any) -> list[str]:
    try:
        return right_stops(given)
    except Refusal as refusal:
        raise Refusal("internal error", 500) from refusal


def without_limit_check(body: Any) -> Any:
    limit = body.get("max_tokens")
    return body if limit is None or (type(limit) is int and limit > 0) else {**body, "max_tokens": 5}


def without_number_check(body: Any) -> Any:
    return {key: value for key, value in body.items() if key != "temperature"}


def whole(**changes: Any) -> Any:
    return lambda data: {**data, **changes}


def first_choice(data: Any, **changes: Any) -> Any:
    return put({**data["choices"][0], **changes}, "choices", 0)(data)


def junk(data: Any) -> Any:
    return first_choice(data, logprobs="none")


MUTANTS = [
    mutant("NaN in an answer", dumps=nan),
    mutant("NaN in Ollama", "ollama-generate", dumps=nan),
    mutant("status 202", status=202),
    mutant("status 201 in Anthropic", "anthropic", status=201),
    mutant("another reason why it is incomplete", "responses-with-stop",
           whole_answer=lambda data: {**data, "incomplete_details": data["incomplete_details"] and {"reason": "full"}}),
    mutant("created_at is text", "responses-with-stop", whole_answer=whole(created_at="now")),
    mutant("created in milliseconds", whole_answer=lambda data: {**data, "created": data["created"] * 1000}),
    mutant("created_at of Ollama is a number", "ollama-chat", whole_answer=whole(created_at="1763800000")),
    mutant("junk as logprobs", whole_answer=junk),
    mutant("junk as logprobs in chunks", events=every(with_choices, junk)),
    mutant("one token for every prompt", "openai-completions",
           whole_answer=lambda data: {**data, "usage": {**data["usage"], "prompt_tokens": 1,
                                      "total_tokens": 1 + data["usage"]["completion_tokens"]}}),
    mutant("a thousand tokens for every prompt", "anthropic",
           whole_answer=lambda data: {**data, "usage": {**data["usage"], "input_tokens": 1000}}),
    mutant("items are never done", "responses-with-stop",
           whole_answer=lambda data: {**data, "output": [{**one, "status": "in_progress"} for one in data["output"]]}),
    mutant("UTF-8 that is cut", dumps=unescaped, encoded=cut_utf8),
    mutant("stops that are no text are passed over", stops=takes_all),
    mutant("stops that are numbers are text", "anthropic", stops=as_text),
    mutant("wrong stops crash", stops=crashes),
    mutant("a body that is no JSON crashes", unreadable=500),
    mutant("wrong limits are passed over", "openai-completions", body=without_limit_check),
    mutant("a temperature that is text is passed over", body=without_number_check),
]  # fmt: skip
