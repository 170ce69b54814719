"""What reads a stream behind the scan: the clients' own accumulation, LiteLLM's, and the loops of agent frameworks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import litellm
import openai
import pytest
import wire
from apis import APIS, BY_NAME, MESSAGES, client, run
from events import field
from openai.lib.streaming.chat import ChatCompletionStreamState
from pydantic import BaseModel
from replay import Recording, Replay

from stopscan import StopSet
from stopscan_clients import ascan_events, scan_events
from stopscan_clients._machines.choice_apis import Chat

DELTAS = ["one E", "N", "D two"]


def record(server: Replay, api: str, deltas: list[str] | None = None) -> str:
    return server.record(Recording(wire.WIRES[api](deltas or DELTAS)))


def test_openai_chat_state(server: Replay) -> None:
    state = ChatCompletionStreamState()
    events = []
    for chunk in scan_events(BY_NAME["chat"].open(server.url, record(server, "chat")), "END"):
        events += state.handle_chunk(chunk)
    choice = state.get_final_completion().choices[0]
    assert (choice.message.content, choice.message.role, choice.finish_reason) == ("one ", "assistant", "stop")
    assert [event.content for event in events if event.type == "content.done"] == ["one "]


def test_openai_chat_helper(server: Replay) -> None:
    with client(openai.OpenAI, server.url).chat.completions.stream(
        model=record(server, "chat"), messages=MESSAGES
    ) as helper:
        stream = scan_events(helper, "END")
        events = list(stream)
        assert "".join(event.delta for event in events if event.type == "content.delta") == "one "
        assert [event.content for event in events if event.type == "content.done"] == ["one "]
        assert helper.get_final_completion().choices[0].finish_reason == "stop"
        assert stream.get_final_completion().choices[0].message.content == "one "
        assert stream.matches[0].offset == 4
        assert not hasattr(stream, "_raw_stream"), "only what is public"
        stream.close()


class Answer(BaseModel):
    number: int


def test_openai_chat_helper_parses_what_is_before_the_stop(server: Replay) -> None:
    deltas = ['{"number"', ": 7}\nEN", "D {"]
    with client(openai.OpenAI, server.url).chat.completions.stream(
        model=record(server, "chat", deltas), messages=MESSAGES, response_format=Answer
    ) as helper:
        list(scan_events(helper, "END"))
        assert helper.get_final_completion().choices[0].message.parsed == Answer(number=7)


def test_openai_responses_helper(server: Replay) -> None:
    with client(openai.OpenAI, server.url).responses.stream(model=record(server, "responses"), input="hi") as helper:
        stream = scan_events(helper, "END")
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        assert snapshots == ["one ", "one ", "one "]
        final = helper.get_final_response()
        assert (final.output_text, final.status, final.usage) == ("one ", "completed", None)


def test_anthropic_helper(server: Replay) -> None:
    made = client(anthropic.Anthropic, server.url)
    for messages in (made.messages, made.beta.messages):
        with messages.stream(model=record(server, "anthropic"), messages=MESSAGES, max_tokens=9) as helper:
            stream = scan_events(helper, "END")
            assert "".join(event.text for event in stream if event.type == "text") == "one "
            final = helper.get_final_message()
            assert (final.content[0].text, final.stop_reason, final.stop_sequence) == ("one ", "stop_sequence", "END")
            assert (final.usage.input_tokens, final.usage.output_tokens) == (3, None)
            assert stream.get_final_text() == "one "


def test_anthropic_helper_has_the_usage_when_the_stream_is_read_on(server: Replay) -> None:
    made = client(anthropic.Anthropic, server.url).messages
    with made.stream(model=record(server, "anthropic"), messages=MESSAGES, max_tokens=9) as helper:
        scan_events(helper, "END", drain=True)
        assert helper.get_final_message().usage.output_tokens == wire.TOKENS
        assert helper.get_final_text() == "one "


def test_anthropic_text_stream(server: Replay) -> None:
    made = client(anthropic.Anthropic, server.url).messages
    with made.stream(model=record(server, "anthropic"), messages=MESSAGES, max_tokens=9) as helper:
        assert "".join(scan_events(helper, "END").text_stream) == "one "


def test_async_helpers(server: Replay) -> None:
    async def read() -> None:
        made = client(openai.AsyncOpenAI, server.url)
        async with made.chat.completions.stream(model=record(server, "chat"), messages=MESSAGES) as helper:
            stream = ascan_events(helper, "END")
            text = "".join([event.delta async for event in stream if event.type == "content.delta"])
            assert (text, stream.matches[0].sequence) == ("one ", "END")
            assert not hasattr(stream, "_raw_stream")
            assert (await stream.get_final_completion()).choices[0].message.content == "one "
        async with made.responses.stream(model=record(server, "responses"), input="hi") as helper:
            async for _ in ascan_events(helper, "END"):
                pass
            assert (await helper.get_final_response()).output_text == "one "
        other = client(anthropic.AsyncAnthropic, server.url)
        request = {"model": record(server, "anthropic"), "messages": MESSAGES, "max_tokens": 9}
        async with other.messages.stream(**request) as helper, ascan_events(helper, "END") as stream:
            assert "".join([event.text async for event in stream if event.type == "text"]) == "one "
            assert (await helper.get_final_message()).stop_sequence == "END"
            assert stream.held == {}

    run(read)


def test_a_helper_that_was_read_before_is_refused(server: Replay) -> None:
    with client(openai.OpenAI, server.url).chat.completions.stream(
        model=record(server, "chat"), messages=MESSAGES
    ) as helper:
        next(helper)
        with pytest.raises(ValueError, match="read before"):
            next(scan_events(helper, "END"))


def test_an_async_helper_that_was_read_before_is_refused(server: Replay) -> None:
    async def read() -> None:
        made = client(openai.AsyncOpenAI, server.url)
        async with made.chat.completions.stream(model=record(server, "chat"), messages=MESSAGES) as helper:
            await anext(helper)
            with pytest.raises(ValueError, match="read before"):
                await anext(ascan_events(helper, "END"))

    run(read)


def test_events_that_a_helper_made_are_refused(server: Replay) -> None:
    """Their snapshots have the whole text: to let them through would show the stop, and what follows it."""
    made, other = client(openai.OpenAI, server.url), client(anthropic.Anthropic, server.url)
    request = {"model": record(server, "anthropic"), "messages": MESSAGES}
    with (
        made.chat.completions.stream(model=record(server, "chat"), messages=MESSAGES) as helper,
        pytest.raises(TypeError, match="the helper itself"),
    ):
        list(scan_events((event for event in helper), "END"))
    with (
        other.messages.stream(max_tokens=9, **request) as stream,
        pytest.raises(TypeError, match="the helper itself"),
    ):
        list(scan_events((event for event in stream), "END"))


LITELLM = {"messages": MESSAGES, "api_key": "none", "stream": True}


def test_litellm(server: Replay) -> None:
    recording = Recording(wire.chat([*DELTAS, "more"]), pause=4)
    opened = litellm.completion(f"openai/{server.record(recording)}", api_base=f"{server.url}/v1", **LITELLM)
    stream = scan_events(opened, "END")
    chunks = list(stream)
    assert recording.gone.wait(10)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "one "
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert {type(chunk) for chunk in chunks} == {litellm.ModelResponseStream}
    assert {type(chunk.choices[0].delta).__name__ for chunk in chunks} == {"Delta"}
    whole = litellm.stream_chunk_builder(chunks, messages=MESSAGES)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("one ", "stop")


def test_litellm_async(server: Replay) -> None:
    async def read() -> None:
        recording = Recording(wire.chat([*DELTAS, "more"]), pause=4)
        model = f"openai/{server.record(recording)}"
        stream = ascan_events(await litellm.acompletion(model, api_base=f"{server.url}/v1", **LITELLM), "END")
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "one "
        assert await asyncio.to_thread(recording.gone.wait, 10)

    run(read)


def test_litellm_waits_for_every_choice_that_was_asked_for(server: Replay) -> None:
    groups = [[(0, "one END")], [(1, "two END")], [(1, "more")]]
    events = [wire.chat_chunk([wire.chat_choice(i, content=text) for i, text in group]) for group in groups]
    model = f"openai/{server.record(Recording(events))}"
    stream = scan_events(litellm.completion(model, api_base=f"{server.url}/v1", n=2, **LITELLM), "END")
    assert sorted({choice.index for chunk in stream for choice in chunk.choices}) == [0, 1]
    assert sorted(stream.matches) == [0, 1]


def litellm_responses() -> list[Any]:
    """As its Responses route makes them; that route itself needs packages that litellm does not install."""
    from litellm.llms.openai.responses.transformation import OpenAIResponsesAPIConfig

    make = OpenAIResponsesAPIConfig().transform_streaming_response
    return [make(model="m", parsed_chunk=event, logging_obj=None) for event in wire.responses(["one E", "ND"])]


def test_litellm_objects_of_responses() -> None:
    events = litellm_responses()
    stream = scan_events(events, "END")
    out = list(stream)
    assert stream.matches[0].offset == 4
    assert [event.type for event in out[-4:]] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [type(event) for event in out[-4:]] == [type(event) for event in events[-4:]]
    assert field(out[-1], "response", "output", 0, "content", 0, "text") == "one "
    assert field(out[-1], "response", "id") == "resp_1", "the response that was created, complete"
    assert out[0] is events[0]


def test_litellm_a_response_that_was_never_told_is_of_its_own_class() -> None:
    """Where LiteLLM's events come from, `Response` is openai's."""
    events = litellm_responses()
    *_, last = scan_events([event for event in events[:-1] if not hasattr(event, "response")], "END")
    assert type(last.response) is type(events[-1].response)
    *_, last = scan_events([event for event in events[:-1] if event.type.endswith("text.delta")], "END")
    item = last.response.output[0]
    assert type(item).__name__ == "GenericResponseOutputItem"
    assert type(item.content[0]).__name__ == "OutputText"
    assert json.loads(last.model_dump_json(warnings=False))["response"]["output"][0]["content"][0]["text"] == "one "


def test_a_loop_like_langchains(server: Replay) -> None:
    """`_convert_delta_to_message_chunk`, `generation_info`: role, content and finish reason of the first choice."""
    message = {"content": "", "info": {}, "role": None}
    for chunk in scan_events(BY_NAME["chat"].open(server.url, record(server, "chat")), "END"):
        dumped = chunk.model_dump()
        if not dumped["choices"]:
            continue
        choice = dumped["choices"][0]
        message["role"] = message["role"] or choice["delta"]["role"]
        message["content"] += choice["delta"].get("content") or ""
        if choice["finish_reason"]:
            message["info"] = {"finish_reason": choice["finish_reason"], "model_name": dumped["model"]}
    assert message == {"content": "one ", "info": {"finish_reason": "stop", "model_name": "m"}, "role": "assistant"}


@pytest.mark.parametrize("api", [api for api in APIS if api.name != "bedrock"], ids=str)
def test_every_event_can_be_sent_on(server: Replay, api: Any) -> None:
    """A proxy dumps what it reads: the cut events as well."""
    dumped = [
        json.loads(event.model_dump_json(exclude_unset=True))
        for event in scan_events(api.open(server.url, record(server, api.name)), "END")
    ]
    assert "END" not in json.dumps([{**event, "choices": 0, "delta": 0} for event in dumped]).replace(
        '"stop_sequence": "END"', ""
    ).replace('"matched_stop": "END"', "")


def test_the_way_an_event_is_read_for_speed_is_that_of_its_kind() -> None:
    """LiteLLM's objects keep their fields where pydantic is slow to look."""
    from stopscan_clients.machine import Options
    from stopscan_clients._objects.events import Objects

    chunk = litellm.ModelResponseStream(choices=[{"index": 0, "delta": {"content": "one"}}])
    machine = Chat(Options(StopSet("END")), Objects(chunk))
    assert machine.feed(chunk) is None
    assert machine.sole(chunk) == (0, "one")
