"""What the functions `to_*` write for each finish reason, and what the functions `from_*` read from it."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from finish_harness import APIS, FINISHES, STRING, as_object, outcome, read, write

from stopscan import StopMatch
from stopscan.finish import Finish, Reason


def _responses(status: str, why: str | None = None) -> dict[str, Any]:
    return {"status": status, "incomplete_details": None if why is None else {"reason": why}}


# The words of each API. A reason that is missing here is written as the API's word for the end of a turn.
WORDS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "stop_sequence": "stop_sequence",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
        "refusal": "refusal",
        "pause": "pause_turn",
        "abort": "max_tokens",
    },
    "openai": {
        "length": "length",
        "tool_calls": "tool_calls",
        "content_filter": "content_filter",
        "refusal": "content_filter",
        "abort": "length",
    },
    "responses": {
        "length": ("incomplete", "max_output_tokens"),
        "content_filter": ("incomplete", "content_filter"),
        "refusal": ("incomplete", "content_filter"),
        "abort": ("cancelled",),
    },
    "ollama": {"length": "length", "abort": "length"},
    "sglang": {"length": "length", "abort": "abort"},
    "llama_cpp": {"stop_sequence": "word", "length": "limit", "abort": "none"},
    "gemini": {
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
        "refusal": "SAFETY",
        "abort": "OTHER",
        "unknown": "FINISH_REASON_UNSPECIFIED",
    },
    "bedrock": {
        "stop_sequence": "stop_sequence",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "content_filtered",
        "refusal": "content_filtered",
        "abort": "max_tokens",
    },
    "tgi": {"stop_sequence": "stop_sequence", "length": "length", "abort": "length"},
}


def expected(api: str, reason: str) -> dict[str, Any]:
    word = WORDS[api].get(reason)
    stop = FINISHES[reason].matched_stop
    string = stop if isinstance(stop, str) else None
    match api:
        case "anthropic":
            return {"stop_reason": word or "end_turn", "stop_sequence": string}
        case "openai":
            return {"finish_reason": word or "stop", **({} if stop is None else {"matched_stop": stop})}
        case "responses":
            return _responses(*(word or ("completed",)))
        case "ollama":
            return {"done": True, "done_reason": word or "stop"}
        case "sglang":
            return {"finish_reason": {"type": word or "stop", "matched": stop}}
        case "llama_cpp":
            return {"stop_type": word or "eos", "stopping_word": string or ""}
        case "gemini":
            return {"finishReason": word or "STOP"}
        case "bedrock":
            return {"stopReason": word or "end_turn"}
    return {"finish_reason": word or "eos_token"}


@pytest.mark.parametrize("reason", get_args(Reason))
@pytest.mark.parametrize("api", APIS)
def test_every_api_has_a_word_for_every_reason(api: str, reason: str) -> None:
    assert write(api, FINISHES[reason]) == expected(api, reason)


@pytest.mark.parametrize("api", APIS)
def test_unnamed_stop_is_written_without_a_name(api: str) -> None:
    written = json.dumps(write(api, Finish("stop_sequence")))
    assert "END" not in written
    assert written == json.dumps(write(api, STRING)).replace('"END"', '""' if api == "llama_cpp" else "null").replace(
        ', "matched_stop": null', ""
    )


@pytest.mark.parametrize("api", APIS)
def test_what_is_written_belongs_to_the_caller(api: str) -> None:
    first = write(api, Finish("length"))
    for value in first.values():
        if isinstance(value, dict):
            value.clear()
    first.clear()
    assert write(api, Finish("length")) == expected(api, "length")


# For each API: the reasons that it has no word for, and the reason that a client reads instead.
EOS = dict.fromkeys(("stop_token", "tool_calls", "content_filter", "refusal", "pause", "unknown"), "eos")
NEAREST: dict[str, dict[str, str]] = {
    "anthropic": {"stop_token": "eos", "content_filter": "refusal", "abort": "length", "unknown": "eos"},
    "openai": {"refusal": "content_filter", "pause": "eos", "abort": "length", "unknown": "eos"},
    "responses": {**EOS, "stop_sequence": "eos", "content_filter": "content_filter", "refusal": "content_filter"},
    "ollama": {**EOS, "stop_sequence": "eos", "abort": "length"},
    "sglang": {**EOS, "stop_token": "stop_token"},
    "llama_cpp": EOS,
    "gemini": {
        **dict.fromkeys(("stop_sequence", "stop_token", "tool_calls", "pause"), "eos"),
        "refusal": "content_filter",
    },
    "bedrock": {
        **dict.fromkeys(("stop_token", "pause", "unknown"), "eos"),
        "refusal": "content_filter",
        "abort": "length",
    },
    "tgi": {**EOS, "abort": "length"},
}
NAMELESS = ("bedrock", "tgi")  # these APIs report that a stop fired, but not which one


@pytest.mark.parametrize("reason", get_args(Reason))
@pytest.mark.parametrize("api", APIS)
def test_written_reason_is_read_as_same_or_nearest(api: str, reason: str) -> None:
    finish = FINISHES[reason]
    nearest = NEAREST[api].get(reason, "eos" if reason == "repetition" else reason)
    stop = finish.matched_stop if nearest == reason and api not in NAMELESS else None
    payload = write(api, finish)
    assert outcome(api, payload) == outcome(api, as_object(payload)) == (nearest, stop)
    assert outcome(api, json.loads(json.dumps(payload))) == (nearest, stop)
    assert read(api, payload).offset is None  # type: ignore[union-attr] # no API reports the offset


def literals(annotation: Any) -> set[str]:
    """The strings of every `Literal` in an annotation, at any depth."""
    arguments = get_args(annotation)
    return {a for a in arguments if isinstance(a, str)}.union(
        *(literals(a) for a in arguments if not isinstance(a, str))
    )


def written(api: str, *path: str) -> set[str]:
    """Returns all words that the function `to_*` of the API writes into the field at `path`, for any finish reason."""
    values = set()
    for finish in FINISHES.values():
        part = write(api, finish)
        for name in path:
            part = part and part[name]
        values.add(part)
    return values - {None}


@pytest.mark.parametrize("name", ["Message", "beta.BetaMessage"])
def test_the_anthropic_client_knows_every_word_that_is_written(name: str) -> None:
    model: Any = pytest.importorskip("anthropic", reason="anthropic is not installed").types
    for part in name.split("."):
        model = getattr(model, part)
    assert written("anthropic", "stop_reason") <= literals(model.model_fields["stop_reason"].annotation)


def test_the_openai_client_knows_every_word_that_is_written() -> None:
    types = pytest.importorskip("openai", reason="openai is not installed").types
    choice, responses = types.chat.chat_completion.Choice, types.responses
    assert written("openai", "finish_reason") <= literals(choice.model_fields["finish_reason"].annotation)
    assert written("responses", "status") <= literals(responses.Response.model_fields["status"].annotation)
    details = responses.response.IncompleteDetails.model_fields["reason"].annotation
    assert written("responses", "incomplete_details", "reason") <= literals(details)


def test_the_google_client_knows_every_word_that_is_written() -> None:
    types = pytest.importorskip("google.genai.types", reason="google-genai is not installed")
    assert written("gemini", "finishReason") <= set(types.FinishReason.__members__)


def test_the_aws_client_knows_every_word_that_is_written() -> None:
    session = pytest.importorskip("botocore.session", reason="botocore is not installed")
    model = session.get_session().get_service_model("bedrock-runtime")
    assert written("bedrock", "stopReason") <= set(model.shape_for("StopReason").enum)


def test_the_huggingface_client_knows_every_word_that_is_written() -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    assert written("tgi", "finish_reason") == set(get_args(hub.TextGenerationOutputFinishReason))


@pytest.mark.parametrize("value", [StopMatch("END", 26), None, "stop"], ids=repr)
@pytest.mark.parametrize("api", APIS)
def test_what_is_not_a_finish_is_named(api: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^finish must be Finish, not {type(value).__name__}: Finish\.of\(match\) "):
        write(api, value)
