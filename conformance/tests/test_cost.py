"""How the kit judges the times of requests. The tests make up these times, so they do not depend on a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from stopscan_conformance import Server
from stopscan_conformance import clock as cost
from stopscan_conformance.apis import APIS as BY_NAME
from stopscan_conformance.apis import Api, Request
from stopscan_conformance.client import Answer
from stopscan_conformance.judge import Findings
from stopscan_conformance.single import NotSupported
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
    """Replaces `ask` with a function that records each request, sends nothing, and returns `answer`. If `answer` is
    None, it makes an answer: the first one took `seconds[0]`, the second one `seconds[1]`, and so on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float, answer: Answer | None = None) -> None:
        self.seconds, self.answer = iter(seconds), answer
        self.asked: list[Asked] = []
        self.most = self.cancelled = 0
        monkeypatch.setattr(cost, "ask", self)

    async def __call__(self, server: Server, api: Api, request: Request, *, leave: int = 0) -> Answer:
        assert (server, api, request.prompt) == (SERVER, WHOLE.api, "[streams]")
        self.asked.append(Asked(request.max_tokens, request.stream, request.stops.get("stop"), leave))
        self.most = max(self.most, len(asyncio.all_tasks()))
        await asyncio.sleep(0)
        seconds = next(self.seconds, 0.001)
        return self.answer or Answer(seconds=seconds, first=seconds / 2)


def measured(load: cost.Load, scale: Callable[..., Any], *seconds: Callable[[Server], Any]) -> Findings:
    works = [cost.Work("cost-of-a-stop", "it goes on", one) for one in seconds]
    return asyncio.run(cost.Cost(load, scale, works)(SERVER))


def placed(*times: tuple[float, float, float]) -> tuple[Findings, int]:
    """Runs a case that compares times, with `times` in place of measured times. Returns its findings and the count of
    its tries. `times` has three values in seconds for each try: the times of a little work, of the measured work, and
    of much work."""
    measurements, scales = iter(times), iter(times[::2])

    def scale(server: Server, load: cost.Load) -> Any:
        return asyncio.sleep(0, next(scales)[::2])

    found = measured(STREAM, scale, lambda server: asyncio.sleep(0, next(measurements)[1]))
    return found, len(times) - len([*measurements])


def goes_on(share: int) -> Findings:
    return {"cost-of-a-stop": f"it goes on ({share}% of what it would cost to go on)"}


@pytest.mark.parametrize(
    ("times", "found", "tries"),
    [
        ([(1, 1, 10)] * 2, {"cost-of-a-stop": None}, 2),
        ([(1, 3.6, 10)] * 2, {"cost-of-a-stop": None}, 2),
        ([(1, 10, 10)] * 3, goes_on(100), 3),
        ([(1, 6.6, 10)] * 3, goes_on(62), 3),
        ([(1, 6.3, 10)] * 3, {"cost-of-a-stop": None}, 3),
        # In the first try, a disturbance made the measured time longer.
        ([(1, 10, 10)] + [(1, 1, 10)] * 3, {"cost-of-a-stop": None}, 4),
        # The server generates needlessly, but pauses during the first try. So the measured time of this try is short.
        ([(1, 2.8, 10), (1, 19, 10), (1, 36, 10), (1, 19, 10)], goes_on(200), 4),
    ],
)
def test_places_times_between_little_and_much(
    times: list[tuple[float, float, float]], found: Findings, tries: int
) -> None:
    assert placed(*times) == (found, tries)


@pytest.mark.parametrize("times", [[(1, 2, 1.9)] * 4, [(2, 3, 3)] * 4, [(1, 1, 1)] * 2])
def test_a_server_may_be_too_fast_to_judge(times: list[tuple[float, float, float]]) -> None:
    with pytest.raises(NotSupported, match="not tested: the server answers too fast"):
        placed(*times)


def test_each_second_try_has_a_new_scale() -> None:
    scales = []

    def scale(server: Server, load: cost.Load) -> Any:
        scales.append(load)
        return asyncio.sleep(0, (1, 10))

    little, much = (lambda server, took=took: asyncio.sleep(0, took) for took in (1, 10))
    assert (measured(STREAM, scale, little, little), len(scales)) == ({"cost-of-a-stop": None}, 2)
    assert (measured(STREAM, scale, little, much, little), len(scales)) == (goes_on(100), 2 + 4)


unused = partial(pytest.fail, "measured without a scale")


def test_a_request_that_fails_is_a_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    Asks(monkeypatch, answer=Answer(Wire(200), error="no end"))
    found = measured(STREAM, cost.by_length, unused)
    assert found == {"cost-of-a-stop": f"no answer to a request for {cost.LASTING} tokens: no end"}


def test_a_request_that_is_refused_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    Asks(monkeypatch, answer=Answer(Wire(422), error="422: no"))
    with pytest.raises(NotSupported, match="422: no"):
        measured(STREAM, cost.by_length, unused)


# `by_length` and `by_company` send this request first. When it is answered, the server has ended all earlier requests.
LONG = Asked(cost.LASTING, False)


@pytest.mark.parametrize("load", [WHOLE, STREAM])
def test_by_length(monkeypatch: pytest.MonkeyPatch, load: cost.Load) -> None:
    asks = Asks(monkeypatch, 12, 8, 0.001)
    assert asyncio.run(cost.by_length(SERVER, load)) == (0.001, 8)
    assert asks.asked == [LONG, LONG, Asked(5, load.stream)]


@pytest.mark.parametrize("load", [WHOLE, STREAM])
def test_by_company(monkeypatch: pytest.MonkeyPatch, load: cost.Load) -> None:
    asks = Asks(monkeypatch, 12, *[9] * 16, 8, 0.001)
    assert asyncio.run(cost.by_company(SERVER, load)) == (0.001, 8)
    assert asks.asked == [LONG, *[Asked(cost.FEW, False)] * 16, *[Asked(cost.FEW, load.stream)] * 2]
    assert asks.most == 17 + 1  # 17 requests and the task of this test


def after_leaving(load: cost.Load) -> float:
    return asyncio.run(cost.for_the_next(load, {"early": load.tokens(cost.LASTING)}).works[-1].seconds(SERVER))


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
    assert after_leaving(WHOLE) == 0.001
    assert sorted(asks.asked) == [Asked(5, False)] * 16 + [Asked(cost.FEW, False)] + [LONG] * 16
    assert asks.asked[-1] == Asked(cost.FEW, False)
    assert asks.cancelled == 16


def test_failures_of_abandoned_requests_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = Asks(monkeypatch)
    ask = asks.__call__

    async def fails(server: Server, api: Api, request: Request, *, leave: int = 0) -> Answer:
        if leave:
            raise ConnectionError("reset")
        return await ask(server, api, request)

    monkeypatch.setattr(cost, "ask", fails)
    assert after_leaving(STREAM) == 0.001
