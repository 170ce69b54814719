"""What is played through an API: each scenario by itself, some of them together, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from stopscan_conformance import _cost as cost
from stopscan_conformance._apis import Api, Request
from stopscan_conformance._exchange import exchange, in_channels
from stopscan_conformance._pace import Pace
from stopscan_conformance._plays import Play, at_once, in_turn, leaving, longer_prompt, the_same
from stopscan_conformance._points import Generated, exchange_of, fits, scenario_of
from stopscan_conformance._recital import pieces_text
from stopscan_conformance._rows import Rows
from stopscan_conformance._scenarios import Scenario
from stopscan_conformance._space import Point
from stopscan_conformance._wrong import WRONG, Wrong, odd_stops
from stopscan_conformance.corpus import made_scripts
from stopscan_conformance.scripts import THINKING

# By the names of their scenarios.
TOGETHER = ("one-token", "three-tokens", "split", "as-encoded", "no-stop", "held-at-eos", "long", "no-stop-limit")
ONE_PROMPT = ("one-token", "three-tokens", "first-of-three", "no-stop", "no-stop-limit", "limit-of-one")
IN_TURN = ("no-stop", "three-tokens", "no-stop", "first-of-three", "no-stop-limit", "held-at-eos", "no-stop")
LASTING = ("streams", "streams-with-a-stop", "long-text", "long-text-never", "long")
LEFT = "streams"
PLAIN = "no-stop"
OPENING = THINKING[0].encode()
LONG, EARLY = "streams", "slowly"
PACED = {"pace": "alone", "pace-with-stops": "decoys-40", "pace-while-held": "held-here"}


class Named(NamedTuple):
    topic: str
    name: str
    why: str
    play: Play


NamedPlay = tuple[str, str, Play]  # its name, the rule that it is about


def generated(api: Api, points: Sequence[Point]) -> Iterator[tuple[bool, Named]]:
    """The points that the API can say, streams or not."""
    for point in points:
        if fits(api, point):
            yield (
                point.stream,
                Named(
                    "generated",
                    str(point),
                    "the stop that completes first ends the answer, whatever else the request says",
                    Generated(api, point),
                ),
            )


def plays(api: Api, every: Sequence[Scenario], *, stream: bool) -> Iterator[Named]:
    """The plays of an API, as streams or not, in the order in which they are run."""
    known = {one.name: one for one in every}
    for scenario in every:
        if _fits(api, scenario):
            yield Named(scenario.topic, scenario.name, scenario.why, exchange(api, stream, scenario).run)
    for name, why, play in _together(api, stream, known):
        yield Named("together", name, why, play)
    if api.harmony:
        return
    for name, why, play in _apart(api, stream, known):
        yield Named("together", name, why, play)
    yield from _wrong(api, known, stream=stream)
    yield from _rows(api, known, stream=stream)
    if stream:
        for name, among in PACED.items():
            point = Point(script="paced", place=None, among=among, stream=True)
            yield Named("pace", name, "text comes as soon as it is safe", Pace(exchange_of(api, point)))
    for name, why, play in _costs(api, stream, known):
        yield Named("cost", name, why, play)


def _fits(api: Api, scenario: Scenario) -> bool:
    if api.harmony:
        return in_channels(scenario)
    if api.raw and OPENING in b"".join(scenario.pieces):
        return False  # a server may take reasoning there for text like any other, in which a stop fires
    return not (api.lists_only and (scenario.stop is None or isinstance(scenario.stop, str)))


def _made(api: Api, stream: bool, known: Mapping[str, Scenario], names: Sequence[str]) -> list[Play]:
    return [exchange(api, stream, known[name]).run for name in names]


def _together(api: Api, stream: bool, known: Mapping[str, Scenario]) -> Iterator[NamedPlay]:
    together = _made(api, stream, known, TOGETHER)
    mixed = [*together[:4], *_made(api, not stream, known, TOGETHER[4:])]
    yield "at-once", "requests at the same time do not know of each other", at_once(together)
    yield "at-once-mixed", "streams and whole answers go together", at_once(mixed)
    one_prompt = at_once(_made(api, stream, known, ONE_PROMPT))
    yield "one-prompt", "requests for one prompt with different stops are apart", one_prompt
    yield "in-turn", "nothing of a request is left for the next one", in_turn(_made(api, stream, known, IN_TURN))


def _apart(api: Api, stream: bool, known: Mapping[str, Scenario]) -> Iterator[NamedPlay]:
    leave = leaving(exchange(api, True, known[LEFT]))
    after = in_turn([leave, at_once(_made(api, stream, known, TOGETHER))])
    beside = at_once([leave, *_made(api, stream, known, LASTING)])
    yield "after-leaving", "a client that goes away leaves nothing", after
    yield "beside-leaving", "a client that goes away takes nothing along", beside
    plain = exchange(api, stream, known[PLAIN])
    yield "prompt-tokens", "a longer prompt has more tokens", longer_prompt(plain)
    yield "twice-the-same", "a second answer has another id, and else is the same", the_same(plain)


def _wrong(api: Api, known: Mapping[str, Scenario], *, stream: bool) -> Iterator[Named]:
    split = exchange(api, stream, known["as-encoded"])
    if not stream:
        for name, change in WRONG.items():
            if name == "no-content" and api.name.startswith("ollama"):
                continue  # that loads the model
            yield Named("wrong", name, "a wrong request gets a 4xx", Wrong(api, split.request, change))
    for name, odd in odd_stops(split):
        yield Named("wrong", name, "a stop that is none is refused, or the others count", odd)


def _rows(api: Api, known: Mapping[str, Scenario], *, stream: bool) -> Iterator[Named]:
    rule = "each row has its own stop and end"
    if api.name in ("openai-chat", "openai-completions"):
        row = exchange(api, stream, known["as-encoded"])
        yield Named("rows", "two-rows", rule, Rows(api, [row, row]))
    if api.name == "openai-completions":
        # The stop of the first row does not come in the second, which ends at the limit.
        stopped = scenario_of(Point())
        other = replace(stopped, script="paced", pieces=made_scripts()["paced"])
        several = [exchange(api, stream, one) for one in (stopped, other)]
        yield Named("rows", "two-prompts", rule, Rows(api, several, prompts=True))


def _costs(api: Api, stream: bool, known: Mapping[str, Scenario]) -> Iterator[NamedPlay]:
    load = cost.Load(api, exchange(api, stream, known[LONG]).request.prompt, EARLY, stream)
    yield "cost-of-a-stop", "generation ends with the stop", cost.of_a_stop(load)
    if stream:
        yield "cost-of-the-first-text", "text is sent while more is generated", cost.of_the_first_text(load)
    yield "cost-after-stops", "nothing goes on after a stop", cost.after_stops(load)
    yield "cost-after-leaving", "nothing goes on for a client that is gone", cost.after_leaving(load)
    if stream:
        for name, left in _left(api, known[LONG]):
            rule = "nothing goes on for a client that left while text was held, or in the reasoning"
            yield f"cost-after-leaving-{name}", rule, cost.after_leaving(load, left)


def _left(api: Api, long: Scenario) -> Iterator[tuple[str, Request]]:
    """What clients leave: an answer whose text is held after two tokens, and one that thinks."""
    held = {"stop": [pieces_text(long.pieces[2:]) + "#"]}
    yield "held", replace(exchange(api, True, long).request, stops=held)
    thinking = Point(script="thought", place=None, limit="all", stream=True)
    if fits(api, thinking):
        yield "reasoning", exchange_of(api, thinking).request
