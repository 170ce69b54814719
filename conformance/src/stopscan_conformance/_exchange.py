"""A scenario through an API: the request, and what has to come of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from stopscan_conformance._answer import Answer, ask
from stopscan_conformance._apis import Api, Request
from stopscan_conformance._connection import Connection
from stopscan_conformance._promises import Expected, Findings, judge
from stopscan_conformance._recital import recite
from stopscan_conformance._scenarios import MISSING, Scenario
from stopscan_conformance._server import Server
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

# What a Harmony script has before its answer, besides the reasoning: the markers and the channels' names.
HARMONY_PIECES = 9
REASONING = re.compile("{}(.*?)(?:{}|$)".format(*map(re.escape, THINKING)), re.DOTALL)


class NotSupported(Exception):  # noqa: N818
    """The server said that it does not know what it was asked."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """A request, what it has to come to, and how it is named where it is one of several."""

    api: Api
    request: Request
    expected: Expected
    name: str
    optional: bool = False  # a server may refuse more of it than the stops

    async def run(self, server: Server, kept: Connection | None = None, /) -> Findings:
        """What is wrong with the answer. Raises `NotSupported` if the server refuses to give one."""
        answer = await ask(server, self.api, self.request, kept=kept)
        return self.judged(answer)

    def judged(self, answer: Answer, /) -> Findings:
        if not answer.refused:
            return judge(answer, self.expected, stream=self.request.stream)
        if self.request.stops and not self.optional and "stop" not in answer.wire.text.lower():
            return {"form": f"a refusal that does not say that it is the stops: {answer.error}"}
        raise NotSupported(answer.error)


def exchange(api: Api, stream: bool, scenario: Scenario, /) -> Exchange:
    """The exchange of `scenario` through `api`."""
    checkpoint = default_checkpoint()
    script, skipped, reasoning = scenario.script, 0, ""
    if api.harmony:
        script, reasoning = f"harmony-{script}", checkpoint.text(script)
        skipped = HARMONY_PIECES + len(scenario.pieces)
    ids = checkpoint.token_ids(script)[skipped:]
    stops = {} if scenario.stop is MISSING else {"stop": scenario.stop}
    if scenario.stop_pieces:
        stops["stop_token_ids"] = [ids[piece] for piece in scenario.stop_pieces]
    limit = None if scenario.max_tokens is None else scenario.max_tokens + skipped
    request = Request(checkpoint.prompt(script), stream, stops, limit)
    return Exchange(api, request, _expected(api, scenario, ids, skipped, reasoning), scenario.name)


@cache
def default_checkpoint() -> Reciter:
    return Reciter()


def in_channels(scenario: Scenario, /) -> bool:
    """Whether the checkpoint has the script in Harmony's channels, too."""
    return f"harmony-{scenario.script}" in SCRIPTS


def _expected(api: Api, scenario: Scenario, ids: list[int], skipped: int, reasoning: str) -> Expected:
    recital = recite(scenario)
    fires = ids[recital.fires] if isinstance(recital.fires, int) else recital.fires
    end = api.told((recital.reason, fires))
    # sglang names the EOS, too.
    ends = (end, ("stop_token", default_checkpoint().eos_token_id)) if end[0] == "eos" else (end,)
    tokens = skipped + recital.tokens
    apart = THINKING[0] in recital.text
    return Expected(
        answers=_answers(recital.text) if apart else ((recital.text, reasoning),),
        ends=ends,
        # The token that ends an answer, and is no part of it, may count or not: no API says.
        tokens=(tokens, tokens - 1) if recital.reason in ("eos", "stop_token") else (tokens,),
        # A `<` may begin a marker of reasoning, for which a server may wait.
        recital=None if "<" in recital.text else recital,
        unnamed=api.unnamed,
    )


def _answers(text: str) -> tuple[tuple[str, str], ...]:
    """The answer and its reasoning: apart, together as the model said it, or with the reasoning gone."""
    answer, reasoning = REASONING.sub("", text), "".join(REASONING.findall(text))
    return (answer, reasoning), (text, ""), (answer, "")
