"""How the kit judges times. The tests supply the times, so no clock is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from stopscan_conformance import Server
from stopscan_conformance import clock as cost
from stopscan_conformance.apis import APIS as BY_NAME
from stopscan_conformance.apis import Api, Request
from stopscan_conformance.client import Answer
from stopscan_conformance.judge import Findings
from stopscan_conformance.plays import NotSupported
from stopscan_conformance.wire import Wire

SERVER = Server("http://127.0.0.1:9", model="reciter")
WHOLE, STREAM = (
    cost.Load(BY_NAME["openai-chat"], "[streams]", ("@never@", "slowly"), stream) for stream in (False, True)
)


class Asked(NamedTuple):
    tokens: int
    stream: bool
    stops: Any = None
    leave: int = 0


class Asks:
    """Replaces `ask`, and records the requests. Returns `answer`, or answers that took one of `seconds` each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float, answer: Answer | None = None) -> None:
        self.seconds, self.answer = iter(seconds), answer
        self.asked: list[Asked] = []
        self.running = self.cancelled = self.ended = 0
        monkeypatch.setattr(cost, "ask", self)

    async def __call__(self, server: Server, api: Api, request: Request, *, leave: int = 0) -> Answer:
        assert (server, api, request.prompt) == (SERVER, WHOLE.api, "[streams]")
        self.asked.append(Asked(request.max_tokens, request.stream, request.stops.get("stop"), leave))
        self.running += 1
        try:
            await asyncio.sleep(0)
            while request.max_tokens == cost.MANY and self.ended < 4:  # these run until 4 others have ended
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        self.ended += 1
        seconds = next(self.seconds, 0.001)
        return self.answer or Answer(seconds=seconds, first=seconds / 2)


def placed(*times: tuple[float, float, float]) -> tuple[Findings, int]:
    """Returns the findings, and the number of tries. `times` has the times (little, measured, much) of each try."""
    left = iter(times)
    tries: list[tuple[float, float, float]] = []

    async def scale(server: Server, load: cost.Load) -> tuple[float, float]:
        tries.append(next(left))
        return tries[-1][0], tries[-1][2]

    async def measure(server: Server) -> float:
        return tries[-1][1]

    found = asyncio.run(cost.Cost(STREAM, scale, measure, "cost-of-a-stop", "it goes on")(SERVER))
    return found, len(tries)


def goes_on(share: int) -> Findings:
    return {"cost-of-a-stop": f"it goes on ({share}% of what it would cost to go on)"}


@pytest.mark.parametrize(
    ("times", "found", "tries"),
    [
        ([(1, 1, 10)], {"cost-of-a-stop": None}, 1),
        ([(1, 4.1, 10)], {"cost-of-a-stop": None}, 1),
        ([(1, 10, 10)] * 4, goes_on(100), 4),
        ([(1, 19, 10)] * 4, goes_on(200), 4),
        ([(1, 7.5, 10)] * 4, goes_on(72), 4),
        ([(1, 7, 10)] * 4, {"cost-of-a-stop": None}, 4),
        ([(1, 4.2, 10)] * 4, {"cost-of-a-stop": None}, 4),
        ([(1, 10, 10), (1, 1, 10)], {"cost-of-a-stop": None}, 2),  # the first try was disturbed
        ([(1, 10, 10)] * 3 + [(1, 1, 10)], {"cost-of-a-stop": None}, 4),
        ([(5, 10, 10), (1, 9.1, 10), (1, 9.1, 10), (1, 9.1, 10)], goes_on(90), 4),
        ([(1, 10, 10), (1, 10, 2), (1, 10, 10), (1, 10, 10)], goes_on(100), 4),
        ([(1, 2, 2)] * 4, goes_on(100), 4),
    ],
)
def test_places_times_between_little_and_much(
    times: list[tuple[float, float, float]], found: Findings, tries: int
) -> None:
    assert placed(*times) == (found, tries)


@pytest.mark.parametrize("times", [[(1, 2, 1.9)] * 4, [(2, 3, 3)] * 4, [(1, 1, 1)]])
def test_a_server_that_is_too_fast_to_tell_is_said_to_be(times: list[tuple[float, float, float]]) -> None:
    with pytest.raises(NotSupported, match="not tested: the server answers too fast"):
        placed(*times)


def never(what: str) -> Callable[..., Any]:
    def fails(*_: Any) -> Any:
        raise AssertionError(what)

    return fails


def test_a_request_that_fails_is_a_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    Asks(monkeypatch, answer=Answer(Wire(200), error="no end"))
    found = asyncio.run(cost.Cost(STREAM, cost.by_length, never("measure"), "cost-of-a-stop", "")(SERVER))
    assert found == {"cost-of-a-stop": f"no answer to a request for {cost.LASTING} tokens: no end"}


def test_a_request_that_is_refused_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    Asks(monkeypatch, answer=Answer(Wire(422), error="422: no"))
    with pytest.raises(NotSupported, match="422: no"):
        asyncio.run(cost.Cost(STREAM, cost.by_length, never("measure"), "cost-of-a-stop", "")(SERVER))


LONG = Asked(cost.LASTING, False)  # when it is answered, the server has no earlier request left


@pytest.mark.parametrize("load", [WHOLE, STREAM])
def test_by_length(monkeypatch: pytest.MonkeyPatch, load: cost.Load) -> None:
    asks = Asks(monkeypatch, 12, 8, 0.002, 0.001)
    assert asyncio.run(cost.by_length(SERVER, load)) == (0.001, 8)
    assert asks.asked == [LONG, LONG, *[Asked(5, load.stream)] * 2]


@pytest.mark.parametrize("load", [WHOLE, STREAM])
def test_by_company(monkeypatch: pytest.MonkeyPatch, load: cost.Load) -> None:
    asks = Asks(monkeypatch, 12, 0.002, 0.001, 8, 9)
    alone, beside = asyncio.run(cost.by_company(SERVER, load))
    assert (alone, beside) == (0.001, 8)
    few = Asked(cost.FEW, load.stream)
    assert asks.asked == [LONG, few, few, *[Asked(cost.MANY, False)] * 16, few]
    assert (asks.running, asks.cancelled) == (0, 0)


def test_what_comes_after_requests_that_were_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = Asks(monkeypatch, *[0.001] * 40)
    endless = asks.__call__

    async def ask(server: Server, api: Api, request: Request, *, leave: int = 0) -> Answer:
        answer = await endless(server, api, request, leave=leave)
        try:
            await asyncio.sleep(60 if request.max_tokens == cost.LASTING else 0)
        except asyncio.CancelledError:
            asks.cancelled += 1
            raise
        return answer

    monkeypatch.setattr(cost, "ask", ask)
    assert asyncio.run(cost.after_leaving(WHOLE).measure(SERVER)) == 0.001
    assert sorted(asks.asked) == [Asked(5, False)] * 16 + [Asked(cost.FEW, False)] + [LONG] * 16
    assert asks.asked[-1] == Asked(cost.FEW, False)
    assert asks.cancelled == 16


def test_requests_that_were_left_and_fail_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = Asks(monkeypatch)
    ask = asks.__call__

    async def fails(server: Server, api: Api, request: Request, *, leave: int = 0) -> Answer:
        if leave:
            raise ConnectionError("reset")
        return await ask(server, api, request)

    monkeypatch.setattr(cost, "ask", fails)
    assert asyncio.run(cost.after_leaving(STREAM).measure(SERVER)) == 0.001
