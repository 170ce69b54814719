"""The cases: each scenario through each API, as a stream and not, and what takes several requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Literal, NamedTuple

from stopscan_conformance import _space as space
from stopscan_conformance._apis import APIS
from stopscan_conformance._cost import Cost
from stopscan_conformance._curl import curl
from stopscan_conformance._exchange import NotSupported
from stopscan_conformance._matrix import generated, plays
from stopscan_conformance._pace import Pace
from stopscan_conformance._plays import Play
from stopscan_conformance._points import Generated, fits
from stopscan_conformance._probe import probe, trouble
from stopscan_conformance._promises import COLUMNS, Column
from stopscan_conformance._scenarios import scenarios
from stopscan_conformance._server import Server
from stopscan_conformance._space import Point, least_failing


class Result(NamedTuple):
    """The result of a case. `columns` has each promise that the case tests: `None` for a promise that is kept, else a
    text that says what came instead. `detail` has all of these texts, or says why the case is not supported.

    >>> Result("fail", "no [DONE]", {"text": None, "form": "no [DONE]"}).wrong
    ('form',)
    """

    outcome: Literal["pass", "fail", "not supported"]
    detail: str = ""
    columns: Mapping[Column, str | None] = MappingProxyType({})

    @property
    def wrong(self) -> tuple[Column, ...]:
        """The promises that are broken."""
        return tuple(column for column, fault in self.columns.items() if fault is not None)


@dataclass(frozen=True, eq=False)
class Case:
    """A request to a server, and the answer that has to come. `str(case)` is the name of the case.

    `why` is the rule that the case tests, and `topic` the kind of rule. A case that is `timed` needs the server for
    itself.
    """

    api: str
    stream: bool
    topic: str
    name: str
    why: str
    _play: Play = field(repr=False)
    timed: bool = False

    def __str__(self) -> str:
        return f"{self.api}-{'stream' if self.stream else 'whole'}-{self.name}"

    @property
    def single(self) -> bool:
        """Whether the case is one request, which others may be beside."""
        alone = not isinstance(self._play, Generated) or self._play.alone
        return alone and not self.timed and self.topic != "together"

    def run(self, server: Server, /) -> Result:
        """Returns the result of the case on `server`.

        Raises `ConnectionError` if the server is down, `TimeoutError` if the server is too slow for any case, and
        `RuntimeError` if the server serves another model.
        """
        return asyncio.run(self.play(server))

    def curl(self, server: Server, /) -> str | None:
        """Returns the shell command that sends the request of the case, or None if the case has several requests."""
        return curl(self._play, server)

    def least(self, server: Server, result: Result, /) -> Case:
        """Returns the case of the least request that fails as `result` says, or the case itself if the case was not
        generated.
        """
        if not isinstance(self._play, Generated):
            return self
        api = self._play.api

        def fails(point: Point) -> bool:
            return fits(api, point) and {*self.at(point).run(server).wrong} >= {*result.wrong}

        return self.at(least_failing(self._play.point, fails))

    def at(self, point: Point, /) -> Case:
        """The case of another request of the space."""
        return replace(self, stream=point.stream, name=str(point), _play=Generated(APIS[self.api], point))

    async def play(self, server: Server, /) -> Result:
        """Does what `run` does, for callers in an event loop."""
        missing = await probe(server, APIS[self.api])
        if missing is not None:
            return Result("not supported", missing)
        try:
            found = await self._play(server)
        except NotSupported as refusal:
            return Result("not supported", str(refusal))
        columns = {column: found[column] for column in COLUMNS if column in found}
        wrong = [fault for fault in columns.values() if fault]
        if wrong and (ended := await trouble(server, APIS[self.api])):
            wrong.append(ended)
        return Result("fail" if wrong else "pass", "; ".join(wrong), columns)


def cases(*apis: str, vectors: bool = False, thorough: bool = False, seed: int = 0) -> list[Case]:
    """Returns the cases of the named APIs, by default of all APIs.

    The default is a quick choice of cases. `thorough` gives very many cases. `vectors` adds the cases of the scanner.
    Another `seed` makes other requests.

    >>> [str(case) for case in cases("anthropic")][0]
    'anthropic-whole-line-break'
    """
    for api in apis:
        if api not in APIS:
            raise ValueError(f"unknown API {api!r}; there are {', '.join(APIS)}")
    every = scenarios(vectors=vectors)
    points = space.thorough(seed) if thorough else space.quick(seed)
    return [
        Case(api, stream, *named, timed=isinstance(named.play, (Cost, Pace)))
        for api in apis or APIS
        for stream, named in chain(
            ((stream, named) for stream in (False, True) for named in plays(APIS[api], every, stream=stream)),
            generated(APIS[api], points),
        )
    ]
