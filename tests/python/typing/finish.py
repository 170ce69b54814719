"""Not run, but checked by mypy and by pyright: the values of `to_*` must fit the types of the official clients.

Lines with an `ignore` must not type-check: both tools report an `ignore` that is not needed.
"""

from __future__ import annotations

from anthropic.types import Message, Usage
from anthropic.types.beta import BetaRawMessageDeltaEvent
from anthropic.types.raw_message_delta_event import Delta
from google.genai.types import Candidate, FinishReason
from huggingface_hub import TextGenerationOutputDetails
from ollama import ChatResponse, GenerateResponse
from ollama import Message as OllamaMessage
from openai.types import CompletionChoice
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_chunk import Choice as ChunkChoice
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from openai.types.responses import Response, ResponseStatus
from openai.types.responses.response import IncompleteDetails
from types_boto3_bedrock_runtime.literals import StopReasonType
from typing_extensions import assert_never, assert_type

from stopscan import StopMatch
from stopscan.finish import (
    Finish,
    OpenAIFinish,
    Reading,
    from_anthropic,
    is_call,
    to_anthropic,
    to_bedrock,
    to_gemini,
    to_llama_cpp,
    to_ollama,
    to_openai,
    to_responses,
    to_sglang,
    to_tgi,
)
from stopscan.tokens import TokenScanner


def anthropic(finish: Finish, usage: Usage) -> tuple[Message, Delta]:
    message = Message(
        id="msg_1", type="message", role="assistant", model="m", content=[], usage=usage, **to_anthropic(finish)
    )
    return message, Delta(**to_anthropic(finish))


def openai_chat(finish: Finish, message: ChatCompletionMessage) -> tuple[Choice, ChunkChoice]:
    written = to_openai(finish)
    assert_type(written, OpenAIFinish)
    print(written.get("matched_stop"))
    return Choice(index=0, message=message, **written), ChunkChoice(index=0, delta=ChoiceDelta(), **written)


def openai_completions(finish: Finish) -> CompletionChoice:
    reason = to_openai(finish)["finish_reason"]
    assert reason != "tool_calls"  # the client's text completions lack this reason
    return CompletionChoice(index=0, text="", finish_reason=reason)


def openai_responses(finish: Finish) -> Response:
    written = to_responses(finish)
    status: ResponseStatus = written["status"]
    details = written["incomplete_details"]
    return Response(
        id="resp_1",
        object="response",
        created_at=1.0,
        model="m",
        output=[],
        parallel_tool_calls=False,
        tool_choice="auto",
        tools=[],
        status=status,
        incomplete_details=IncompleteDetails(**details) if details else None,
    )


def ollama(finish: Finish) -> tuple[ChatResponse, GenerateResponse]:
    written = to_ollama(finish)
    return ChatResponse(message=OllamaMessage(role="assistant"), **written), GenerateResponse(response="", **written)


def gemini(finish: Finish) -> Candidate:
    return Candidate(finish_reason=FinishReason(to_gemini(finish)["finishReason"]))


def bedrock(finish: Finish) -> StopReasonType:
    return to_bedrock(finish)["stopReason"]


def tgi(finish: Finish) -> TextGenerationOutputDetails:
    return TextGenerationOutputDetails(generated_tokens=2, prefill=[], tokens=[], **to_tgi(finish))


def engines(finish: Finish) -> tuple[str, str | int | None, str, str]:
    reason, written = to_sglang(finish)["finish_reason"], to_llama_cpp(finish)
    return reason["type"], reason["matched"], written["stop_type"], written["stopping_word"]


def report(event: BetaRawMessageDeltaEvent, scanner: TokenScanner) -> str:
    finish = from_anthropic(event) or scanner.finish
    if finish is None:
        return ""
    assert_type(finish.match, StopMatch | None)
    match finish:
        case Finish("stop_sequence", str(stop), offset):
            return f"{stop} at {offset}"
        case Finish("unknown", raw=raw):
            return raw or ""
    match finish.reason:
        case "stop_sequence" | "stop_token" | "eos" | "pause" | "tool_calls" | "repetition":
            return "whole"
        case "length" | "content_filter" | "refusal" | "abort":
            return "cut"
        case "unknown":
            return ""
        case never:
            assert_never(never)


def of(match: StopMatch | None, call: object) -> tuple[Finish, bool]:
    Finish.of(match, "stop_token")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Finish.of("END")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Reading("chat")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(Reading("openai").feed(call), Finish | None)
    assert_type(Finish.of(match), Finish)
    return Finish.of(match, "length"), is_call(call)


def close(scanner: TokenScanner) -> None:
    scanner.flush()
    scanner.flush("abort")
    scanner.flush("stop_sequence")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    scanner.flush("stop_token")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    scanner.flush("nonsense")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def invalid(finish: Finish) -> None:
    Finish("nonsense")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Finish("stop_sequence", b"END")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Finish("stop_sequence", "END", "26")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    finish.reason = "eos"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    to_openai({"finish_reason": "stop"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Choice(index=0, **to_openai(finish))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Delta(**to_openai(finish))  # type: ignore[misc]  # pyright: ignore[reportCallIssue]
