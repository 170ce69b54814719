"""Which generated requests (points) a run sends. If one of them fails, the kit finds a smaller one that also fails."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from stopscan_conformance import Server, cases
from stopscan_conformance.apis import APIS
from stopscan_conformance.generated import fits, single_of
from stopscan_conformance.space import DIMENSIONS, SMALL, Point, deep, least_failing, small, thorough


def test_a_seed_decides_the_requests() -> None:
    assert deep(3) == deep(3)
    assert deep(3) != deep(4)
    assert {*small(0)} < {*deep(0)} < {*thorough(0)}


@pytest.mark.parametrize("name", DIMENSIONS)
def test_each_value_of_a_dimension_is_in_the_space(name: str) -> None:
    assert {*DIMENSIONS[name]} <= {getattr(point, name) for point in deep(0)}


def test_the_names_of_points_are_unlike() -> None:
    names = [(str(point), point.stream) for point in deep(0)]
    assert len({*names}) == len(names)


@pytest.mark.parametrize("api", APIS)
def test_each_point_has_an_end_that_is_known(api: str) -> None:
    for point in filter(lambda point: fits(APIS[api], point), deep(0)):
        expected = single_of(APIS[api], point).expected
        assert expected.ends
        assert expected.tokens[0] > 0


@pytest.mark.parametrize("api", ["openai-chat", "generate"])
def test_a_server_may_have_its_own_default_limit(api: str) -> None:
    unlimited = [point for point in thorough(0) if point.limit == "none" and fits(APIS[api], point)]
    assert len(unlimited) >= 10
    assert max(single_of(APIS[api], point).expected.tokens[0] for point in unlimited) < 512


def test_a_failure_shrinks_to_the_least_request() -> None:
    failing = Point(place=511, length=30, among="begun", says="seed", company=3, stream=True)
    least = least_failing(failing, lambda point: point.place is not None and point.place >= 100 and point.stream)
    assert least == Point(place=least.place, stream=True)
    assert 100 <= (least.place or 0) < 200


def test_a_case_shrinks_on_a_server(staged_url: str) -> None:
    server = Server(f"{staged_url}/{quote('no stops with seed in openai-chat-whole')}", model="reciter")
    name = "place-24+length-12+among-begun+says-seed"
    case = next(case for case in cases("openai-chat") if case.name == "says-seed")
    larger = case.at(Point(place=24, length=12, among="begun", says="seed"))
    assert larger.name == name
    assert larger.least(server, larger.run(server)).name == "says-seed"


@pytest.mark.parametrize("api", ["openai-chat", "anthropic"])
def test_the_default_has_four_long_answers(api: str) -> None:
    tokens = [single_of(APIS[api], point).expected.tokens[0] for point in small(0) if fits(APIS[api], point)]
    assert sorted(tokens)[-5] <= SMALL < sorted(tokens)[-4]
    assert max(tokens) > 4200
    assert len(small(0)) > 180


def test_an_api_without_stops_gets_none() -> None:
    api = APIS["openai-responses"]
    asked = [single_of(api, point).request for point in small(0) if fits(api, point)]
    assert {str(request.stops) for request in asked} == {"{}"}
    names = {case.name for case in cases("openai-responses")}
    assert not {"split", "ids", "a-stop-that-is-a-number", "pace-with-stops"} & names
    assert {"split", "ids", "pace-with-stops"} <= {case.name for case in cases("responses-with-stop")}
