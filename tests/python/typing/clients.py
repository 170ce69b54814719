"""mypy and pyright check this file, but it is not run. The functions of `stopscan_clients` must return events and
answers of the same type that the caller passed, such as `dict[str, Any]` or a `TypedDict`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import httpx2
from openai import AsyncStream, Stream
from openai.types.chat import ChatCompletionChunk
from types_boto3_bedrock_runtime.type_defs import ConverseStreamOutputTypeDef
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


def streams(lines: list[dict[str, Any]], bedrock: list[ConverseStreamOutputTypeDef]) -> None:
    assert_type(scan_events(lines, "END"), EventStream[dict[str, Any]])
    with scan_events(lines, ["END"], drain=True) as stream:
        assert_type(stream, EventStream[dict[str, Any]])
        assert_type(stream.matches, Mapping[int, StopMatch])
        assert_type(stream.held, dict[int, str])
        assert_type(stream.closes, bool)
    assert_type(next(scan_events(bedrock, StopSet("END"))), ConverseStreamOutputTypeDef)


async def async_streams(lines: AsyncIterator[dict[str, Any]]) -> None:
    async with ascan_events(lines, "END") as stream:
        assert_type(stream, AsyncEventStream[dict[str, Any]])
        async for event in stream:
            assert_type(event, dict[str, Any])
    await ascan_events(lines, "END", drain=True).aclose()


def wholes(answer: dict[str, Any]) -> None:
    assert_type(truncate_response(answer, None), dict[str, Any])
    assert_type(truncate_response(answer, "END", include_stop=True), dict[str, Any])
    assert_type(native_stops("openai", "END"), tuple[list[str], StopSet])


def refused(
    chat: Stream[ChatCompletionChunk], later: AsyncStream[ChatCompletionChunk], lines: list[dict[str, Any]]
) -> None:
    scan_events(chat, "END")  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    ascan_events(later, "END")  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    scan_events(lines, b"END")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    native_stops("openai", 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def transports() -> None:
    httpx.Client(transport=StopTransport("END"))
    httpx2.Client(transport=StopTransport(["END"], api="deepseek", drain=True))
    httpx.AsyncClient(transport=AsyncStopTransport(StopSet("END"), transport=httpx.AsyncHTTPTransport()))
    httpx2.AsyncClient(transport=AsyncStopTransport("END", on_match=lambda choice, match: print(choice, match.offset)))
    StopTransport("END", api="claude")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
