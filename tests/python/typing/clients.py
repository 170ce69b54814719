"""Not run, but checked by mypy and by pyright: the events and responses of the official clients keep their types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
import httpx2
from anthropic import AsyncStream as AnthropicAsyncStream
from anthropic import Stream as AnthropicStream
from anthropic.types import Message, RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from ollama import ChatResponse
from openai import AsyncStream, Stream
from openai.lib.streaming.responses import ResponseStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from typing_extensions import assert_type

from stopscan import StopMatch, StopSet
from stopscan_clients import (
    AsyncEventStream,
    AsyncStopTransport,
    EventStream,
    StopTransport,
    ascan_events,
    native_stops,
    scan_events,
    truncate_response,
)


def streams(
    chat: Stream[ChatCompletionChunk],
    responses: Stream[ResponseStreamEvent],
    helper: ResponseStream[None],
    messages: AnthropicStream[RawMessageStreamEvent],
    gemini: Iterator[GenerateContentResponse],
    ollama: Iterator[ChatResponse],
    lines: list[dict[str, Any]],
) -> None:
    assert_type(scan_events(chat, "END"), EventStream[ChatCompletionChunk])
    for event in scan_events(responses, ["END"], drain=True):
        assert_type(event, ResponseStreamEvent)
    assert_type(scan_events(messages, StopSet("END")), EventStream[RawMessageStreamEvent])
    assert_type(scan_events(gemini, None, include_stop=True), EventStream[GenerateContentResponse])
    assert_type(next(scan_events(ollama, ())), ChatResponse)
    assert_type(scan_events(lines, "END"), EventStream[dict[str, Any]])
    with scan_events(chat, "END") as stream:
        assert_type(stream, EventStream[ChatCompletionChunk])
        assert_type(stream.matches, Mapping[int, StopMatch])
        assert_type(stream.held, dict[int, str])
        print(stream.response.headers)  # the client's own
    print([event.type for event in scan_events(helper, "END")])


async def async_streams(
    chat: AsyncStream[ChatCompletionChunk],
    messages: AnthropicAsyncStream[RawMessageStreamEvent],
    gemini: AsyncIterator[GenerateContentResponse],
) -> None:
    async with ascan_events(chat, "END") as stream:
        assert_type(stream, AsyncEventStream[ChatCompletionChunk])
        async for chunk in stream:
            assert_type(chunk, ChatCompletionChunk)
    await ascan_events(messages, "END", drain=True).aclose()
    assert_type(await anext(ascan_events(gemini, "END")), GenerateContentResponse)


def wholes(chat: ChatCompletion, response: Response, message: Message, answer: dict[str, Any]) -> None:
    assert_type(truncate_response(chat, "END"), ChatCompletion)
    assert_type(truncate_response(response, "END", include_stop=True), Response)
    assert_type(truncate_response(message, ["END"]), Message)
    assert_type(truncate_response(answer, None), dict[str, Any])
    assert_type(native_stops("openai", "END"), tuple[list[str], StopSet])


def refused(chat: Stream[ChatCompletionChunk], later: AsyncStream[ChatCompletionChunk]) -> None:
    scan_events(later, "END")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ascan_events(chat, "END")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    scan_events(chat, b"END")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    native_stops("openai", 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def transports() -> None:
    httpx.Client(transport=StopTransport("END"))
    httpx2.Client(transport=StopTransport(["END"], api="deepseek", drain=True))
    httpx.AsyncClient(transport=AsyncStopTransport(StopSet("END"), transport=httpx.AsyncHTTPTransport()))
    httpx2.AsyncClient(transport=AsyncStopTransport("END", on_match=lambda choice, match: print(choice, match.offset)))
    StopTransport("END", api="claude")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
