"""The cases: each scenario through each API, as a stream and not, and what takes several requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from stopscan.conformance._apis import APIS
from stopscan.conformance._cost import Cost
from stopscan.conformance._exchange import NotSupported
from stopscan.conformance._judge import COLUMNS, Column
from stopscan.conformance._matrix import plays
from stopscan.conformance._plays import Play
from stopscan.conformance._scenarios import scenarios
from stopscan.conformance._server import Server


class Result(NamedTuple):
    """`columns` has the promises that the case looks at: `None` for one that is kept, else what came instead. `detail`
    is all of that, or why the case is not supported.

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
    """What is asked of a server, and what has to come of it. `str(case)` names it, `why` is the rule that it is about,
    and `topic` the kind of rule.

    One that is `timed` has to have the server for itself.
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

    def run(self, server: Server, /) -> Result:
        """The result of the case on `server`. Raises `ConnectionError` if it is down, `TimeoutError` if it is too slow
        for any case, and `RuntimeError` if it serves another model.
        """
        return asyncio.run(self._run(server))

    async def _run(self, server: Server) -> Result:
        missing = await server.probe(APIS[self.api])
        if missing is not None:
            return Result("not supported", missing)
        try:
            found = await self._play(server)
        except NotSupported as refusal:
            return Result("not supported", str(refusal))
        columns = {column: found[column] for column in COLUMNS if column in found}
        wrong = [fault for fault in columns.values() if fault]
        if wrong and (trouble := await server.trouble(APIS[self.api])):
            wrong.append(trouble)
        return Result("fail" if wrong else "pass", "; ".join(wrong), columns)


def cases(*apis: str, vectors: bool = False) -> list[Case]:
    """The cases of the named APIs, by default of all, each as a stream and not. `vectors` adds the scanner's.

    >>> [str(case) for case in cases("anthropic")][0]
    'anthropic-whole-line-break'
    """
    for api in apis:
        if api not in APIS:
            raise ValueError(f"unknown API {api!r}; there are {', '.join(APIS)}")
    every = scenarios(vectors=vectors)
    return [
        Case(api, stream, topic, name, why, play, timed=isinstance(play, Cost))
        for api in apis or APIS
        for stream in (False, True)
        for topic, name, why, play in plays(APIS[api], every, stream=stream)
    ]
