"""Cases that send several requests, at the same time or one after another. In some, clients leave early, or one request
asks for several answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stopscan_conformance.apis import Api, Request
from stopscan_conformance.client import Answer, Server, ask
from stopscan_conformance.judge import RULES, Findings, judge, judge_usage, merged
from stopscan_conformance.probe import Can, probe
from stopscan_conformance.single import TOO_FAST, NotSupported, Run, Single

LEAVING = 4
EARLY = 0.05  # seconds: a client that asks for a whole answer waits at least this long before it disconnects


async def together(runs: Sequence[Awaitable[Findings]]) -> list[Findings]:
    """Waits for all `runs` at the same time, and returns their results. If one of them raises an error, waits for the
    others and then raises the error."""
    findings: list[Findings] = []
    for result in await asyncio.gather(*runs, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        findings.append(result)
    return findings


def at_once(every: Sequence[Run]) -> Run:
    """Returns a function that starts all runs of `every` at the same time. A run is a function that sends requests to a
    server."""

    async def run(server: Server) -> Findings:
        return merged(await together([part(server) for part in every]))

    return run


def in_turn(every: Sequence[Run]) -> Run:
    """Returns a function that does the runs of `every` one after another. A run is a function that sends requests to a
    server. The returned function ends early if a run finds something wrong: the server may no longer answer, and each
    further request would only wait for its timeout."""

    async def run(server: Server) -> Findings:
        findings: list[Findings] = []
        for part in every:
            findings.append(await part(server))
            if any(findings[-1].values()):
                break
        return merged(findings)

    return run


def on_one_connection(every: Sequence[Single]) -> Run:
    """Returns a function that sends the requests to a server one after another, on a connection that stays open."""

    async def run(server: Server) -> Findings:
        async with server.connect() as kept:
            return merged([await single.run(server, kept) for single in every])

    return run


async def leave(server: Server, api: Api, request: Request, clients: int, pieces: int = 1) -> None:
    """Sends the request from several clients, each of which leaves after `pieces` pieces of text. Raises `NotSupported`
    if all answers were complete before the clients left."""
    answers = await asyncio.gather(*(ask(server, api, request, leave=pieces) for _ in range(clients)))
    if all(answer.end is not None for answer in answers):
        raise NotSupported(TOO_FAST)


def leaving(abandoned: Single, pieces: int = 1) -> Run:
    """Returns a function in which several clients ask a server for a stream and leave after `pieces` pieces of text."""

    async def run(server: Server) -> Findings:
        await leave(server, abandoned.api, abandoned.request, LEAVING, pieces)
        return {}

    return run


def leaving_early(abandoned: Single, short: Single) -> Run:
    """Returns a function in which several clients ask for a long whole answer, and leave while the server still
    generates it. The time at which they leave depends on the speed of the server. To measure the speed, the function
    first sends the request `short`."""

    async def run(server: Server) -> Findings:
        seconds = (await ask(server, short.api, short.request)).seconds
        tasks = [asyncio.ensure_future(ask(server, abandoned.api, abandoned.request)) for _ in range(LEAVING)]
        await asyncio.wait(tasks, timeout=max(EARLY, LEAVING * seconds))
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        if not any(isinstance(end, asyncio.CancelledError) for end in ends):
            raise NotSupported(TOO_FAST)
        return {}

    return run


def prompted_twice(single: Single, before: str = "") -> Run:
    """Returns a function that sends the request twice. The two answers must have different ids. The second prompt is
    the text `before`, and then the first prompt. If `before` is empty, the server must count equally many prompt
    tokens. Otherwise it must count more for the second prompt."""

    async def run(server: Server) -> Findings:
        if before and not (await probe(server, single.api)).count_prompt:
            raise NotSupported("the server does not count prompt tokens")
        heads = []
        for prompt in (single.request.prompt, before + single.request.prompt):
            answer = await ask(server, single.api, replace(single.request, prompt=prompt))
            if answer.error is not None:
                return replace(single, optional=bool(before)).judged(answer)
            heads.append(answer.head)
        same = "id" in heads[0] and heads[0]["id"] == heads[1].get("id")
        short, other = (head.get("prompt") for head in heads)
        right = 0 < (short or 0) < (other or 0) if before else short == other
        # Ollama counts only the prompt tokens that it evaluates, not those that it finds in its cache. So two counts of
        # the same prompt may differ.
        right = right or not (before or RULES["prompt-tokens"].level_of(single.api) == "documented")
        more = f"{other} tokens of a prompt that is longer than one of {short}"
        return {
            "form": f"two answers have the id {heads[0]['id']!r}" if same else None,
            "prompt-tokens": None if right else more if before else f"{short} and {other} tokens of the same prompt",
        }

    return run


@dataclass(frozen=True, eq=False)
class Rows:
    """Sends one request that asks for several answers, with the option `n` or with several prompts. The answer with the
    index `i` is compared with the expected answer of `rows[i]`."""

    api: Api
    rows: Sequence[Single]
    prompts: bool = False

    def body(self, model: str) -> dict[str, Any]:
        body = self.api.body(model, self.rows[0].request)
        return body | ({"prompt": [row.request.prompt for row in self.rows]} if self.prompts else {"n": len(self.rows)})

    async def __call__(self, server: Server) -> Findings:
        can = await probe(server, self.api)
        answer = await ask(server, self.api, self.rows[0].request, body=self.body(server.model))
        if answer.refused:
            raise NotSupported(answer.error)
        if answer.error is not None:
            return {"rows": f"no answer: {answer.error}"}
        return self.judged(answer, can)

    def judged(self, answer: Answer, can: Can = Can()) -> Findings:  # noqa: B008
        """Returns what is wrong with the answers to the request."""
        rows: dict[int, Answer] = {}
        for part in self.api.read(answer.wire, self.rows[0].request):
            if part.row is not None:
                rows.setdefault(part.row, Answer()).add(part)
        if {*rows} != {*range(len(self.rows))}:
            return {"rows": f"there are the rows {[*rows]}, not {len(self.rows)}"}
        findings = [
            judge(replace(rows[index], head={}, faults=[]), row.expected, stream=False, can=can)
            for index, row in enumerate(self.rows)
        ]
        text = [f"row {at}: {row['text']}" for at, row in enumerate(findings) if row.get("text")]
        ends = merged([{k: v for k, v in row.items() if k not in ("text", "form", "usage")} for row in findings])
        every = [row.expected for row in self.rows]
        tokens = tuple(sum(limit(row.tokens) for row in every) for limit in (max, min))
        least, most = sum(row.least for row in every), sum(row.most for row in every)
        stopped = any(row.stopped for row in every)
        total = replace(every[0], tokens=tokens, stopped=stopped, least=least, most=most)
        return {"rows": "; ".join(text) or None, **ends, **judge_usage(answer.head.get("tokens"), total)}
