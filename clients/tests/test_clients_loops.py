"""Loops and regions in streams and answers: `StopSet(repeat=…)`, `StopSet(regions=…)`, and both in a request's body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import wire
from apis import BY_NAME
from events import field, text_of
from memory import CHAT, Server, events, packages, post, text_in
from replay import Recording, Replay, replaying, sse
from through import APIS, asker
from wholes import PATHS, WHOLES

from stopscan import Repeat, StopMatch, StopSet
from stopscan_clients import StopTransport, ascan_events, scan_events, truncate_response
from stopscan_clients.native import LIMITS, native_stops

LOOP = "the same line again\n"
FOUR = Repeat(4, max_period=100, min_length=32)  # fires with the fourth copy of LOOP
THINKING = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}


@pytest.fixture(scope="module")
def server() -> Iterator[Replay]:
    with replaying() as replay:
        yield replay


def loop(api: str) -> Recording:
    """Returns an answer that repeats the text LOOP. After the fourth copy of it, the server waits for the client to
    leave."""
    made = wire.WIRES[api]([LOOP] * 100)
    fourth = [number for number, event in enumerate(made, 1) if "the same line" in str(event)][3]
    return Recording(made, pause=fourth)


@pytest.mark.parametrize("api", APIS)
def test_a_looping_stream_is_ended(server: Replay, api: str) -> None:
    recording = loop(api)
    matches: dict[int, StopMatch] = {}
    ask = asker(server.url, api, StopTransport(StopSet(repeat=FOUR), on_match=matches.__setitem__))
    seen = list(ask(server.record(recording)))
    assert recording.gone.wait(10), "nothing is generated after the loop"
    assert recording.sent == recording.pause
    assert "".join(text_of(api, event) or "" for event in seen) == LOOP * 4
    ends = [end for event in seen if (end := BY_NAME[api].finish(event))]
    assert [end.reason for end in ends] in (["eos"], ["stop_sequence"]), "what the API can say"
    assert matches == {0: StopMatch(LOOP * 4, 0, period=len(LOOP))}


@pytest.mark.parametrize("include_stop", [False, True])
@pytest.mark.parametrize("api", WHOLES)
def test_a_whole_answer_ends_after_the_first_copy(api: str, include_stop: bool) -> None:
    cut = truncate_response(WHOLES[api](f"one: {LOOP * 9}"), StopSet(repeat=FOUR), include_stop=include_stop)
    text = field(cut, *PATHS[api])
    begun = text.removeprefix("one: ")
    copies = 4 if include_stop else 1
    assert (len(begun), LOOP * 5) == (len(LOOP) * copies, begun + LOOP * (5 - copies))


@pytest.mark.parametrize("drain", [False, True])
def test_responses_closing_events_have_the_text_of_the_deltas(drain: bool) -> None:
    """The loop ends the stream at its fourth copy. All four copies were sent as deltas, so the closing events must
    repeat four copies."""
    seen = list(scan_events(wire.responses([LOOP] * 9), StopSet(repeat=FOUR), drain=drain))
    assert "".join(event["delta"] for event in seen if event["type"] == "response.output_text.delta") == LOOP * 4
    texts = {event["type"]: event for event in seen}
    assert texts["response.output_text.done"]["text"] == LOOP * 4
    assert texts["response.content_part.done"]["part"]["text"] == LOOP * 4
    assert texts["response.output_item.done"]["item"]["content"][0]["text"] == LOOP * 4
    response = texts["response.completed"]["response"]
    assert (response["output"][0]["content"][0]["text"], response["status"]) == (LOOP * 4, "completed")


@packages
def test_repeat_in_the_object_stopscan(package: Any) -> None:
    server = Server(package, events(*[LOOP] * 9))
    answer = post(server, {"stream": True, "stopscan": {"repeat": [4, 100, 32]}})
    assert (text_in(answer.content), server.bodies) == (LOOP * 4, [{"stream": True}])
    assert answer.extensions["stopscan"][0].period == len(LOOP)
    assert server.closed > 0
    last = json.loads(answer.content.split(b"\n\n")[-3].removeprefix(b"data: "))["choices"][0]
    assert (last["finish_reason"], "matched_stop" in last) == ("stop", False)
    server = Server(package, [json.dumps(wire.chat_whole(LOOP * 30)).encode()], "application/json")
    answer = post(server, {"stop": "END", "stopscan": {"repeat": True}})
    assert answer.json()["choices"][0]["message"]["content"] == LOOP
    assert server.bodies == [{}], "a server that ends at END might hide where the loop was proved"


def test_a_request_may_change_repeat() -> None:
    own = StopSet("END", repeat=FOUR)
    for options, copies in (({}, 4), ({"repeat": None}, 4), ({"repeat": [6, 100, 32]}, 6), ({"repeat": False}, 9)):
        server = Server(httpx, events(*[LOOP] * 9))
        answer = post(server, {"stream": True, "stopscan": options}, CHAT, own)
        assert text_in(answer.content) == LOOP * copies


REGIONS: list[tuple[Any, str]] = [
    ({"regions": THINKING}, "<think>"),  # stops fire in all regions
    ({"regions": THINKING, "stop_in": ["answer"]}, "<think>END</think>"),
    ({"regions": THINKING, "stop_in": ["reasoning"]}, "END <think>"),
    ({"regions": THINKING, "protect": ["reasoning"]}, "<think>END</think>"),
    ({"regions": THINKING, "protect": ["reasoning", "answer"]}, "END <think>END</think>END"),
    ({"protect": ["<think>", "</think>"]}, "<think>END</think>"),
    (
        {
            "regions": {
                "reasoning": {"</t>": "answer"},
                "answer": {"<call>": "tool_call/in answer"},
                "tool_call/in answer": {"</call>": "answer"},
            },
            "protect": ["tool_call", "reasoning"],
        },
        "END</t><call>END</call>",
    ),
]


@pytest.mark.parametrize(("options", "safe"), REGIONS)
def test_regions_in_the_object_stopscan(options: Any, safe: str) -> None:
    whole = f"{safe}END two"
    server = Server(httpx, events(*whole))
    answer = post(server, {"stream": True, "stop": "END", "stopscan": options})
    assert text_in(answer.content) == (whole if options.get("protect") == ["reasoning", "answer"] else safe)
    assert server.bodies == [{"stream": True}]


def test_a_request_may_change_the_regions() -> None:
    whole = "<think>END</think>one <call>END</call>"
    for own in (
        StopSet("END", protect=[("<think>", "</think>")]),
        StopSet("END", regions=THINKING, stop_in=["answer"]),
    ):
        for options, safe in (
            ({"patterns": ["never"]}, "<think>END</think>one <call>"),
            ({"protect": ["<call>", "</call>"]}, "<think>"),
            ({"protect": []}, "<think>"),
            ({"regions": {"answer": {}}}, "<think>"),
        ):
            answer = post(Server(httpx, events(*whole)), {"stream": True, "stopscan": options}, CHAT, own)
            assert text_in(answer.content) == safe, (own, options)


BAD: list[tuple[Any, str]] = [
    ({"repeat": [1, 100, 64]}, "count must be at least 3, not 1"),
    ({"repeat": [4, 100]}, "stopscan.repeat must be"),
    ({"repeat": "4,100,64"}, "stopscan.repeat must be"),
    ({"repeat": [4, 100, "x"]}, "min_length"),
    ({"regions": 5}, "regions"),
    ({"regions": {"answer": {"<x>": "nowhere"}}}, "nowhere"),
    ({"regions": THINKING, "stop_in": ["tool_call"]}, "tool_call"),
    ({"regions": THINKING, "protect": ["tool_call"]}, "tool_call"),
    ({"regions": THINKING, "protect": ["<a>", "</a>"]}, "protect"),
    ({"regions": THINKING, "protect": ["reasoning"], "stop_in": ["answer"]}, "can name regions only without"),
    ({"protect": ["<a>", "</a>", "<b>"]}, "closing marker"),
    ({"regions": THINKING, "protect": ["reasoning", "<a>", "</a>"]}, "pairs of markers"),
    ({"start_protected": True}, "start_protected"),
]


@pytest.mark.parametrize(("options", "words"), BAD)
def test_wrong_loops_and_regions_are_a_400(options: Any, words: str) -> None:
    server = Server(httpx, map(sse, wire.chat(["one"])))
    answer = post(server, {"stream": True, "stop": "END", "stopscan": options})
    assert (answer.status_code, server.requests) == (400, [])
    assert words in answer.json()["error"]["message"]


def test_a_stream_that_begins_in_a_region() -> None:
    stops = StopSet("END", regions=THINKING, stop_in=["answer"])
    sent = wire.chat(["so END", "</think>one E", "ND two"])

    async def source() -> AsyncIterator[Any]:
        for event in sent:
            yield event

    async def aread() -> list[Any]:
        return [event async for event in ascan_events(source(), stops, region="reasoning")]

    for seen in (list(scan_events(sent, stops, region="reasoning")), asyncio.run(aread())):
        assert "".join(event["choices"][0]["delta"].get("content") or "" for event in seen) == "so END</think>one "
    assert scan_text(sent, stops) == "so "
    with pytest.raises(ValueError, match="nowhere"):
        scan_events(sent, stops, region="nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        ascan_events(source(), stops, region="nowhere")


def scan_text(sent: list[Any], stops: StopSet) -> str:
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in scan_events(sent, stops))


@pytest.mark.parametrize("stops", [StopSet("END", repeat=FOUR), StopSet("END", regions=THINKING)])
@pytest.mark.parametrize("api", sorted(LIMITS))
def test_no_stop_is_native_beside_loops_or_regions(api: Any, stops: StopSet) -> None:
    assert native_stops(api, stops) == ([], stops)
