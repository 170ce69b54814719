"""`Single`: one request and its correct answers. The other kinds of cases are built from it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import httpx

from stopscan_conformance.apis import Api, Extras, Request
from stopscan_conformance.client import Answer, Server, ask
from stopscan_conformance.judge import Expected, Findings, judge, shown
from stopscan_conformance.oracle import MISSING, Recital, Task, pieces_text, recite
from stopscan_conformance.probe import Can, probe
from stopscan_conformance.reciter import EOS, default_checkpoint
from stopscan_conformance.scripts import THINKING
from stopscan_conformance.sentences import REFUSES, promises

Run = Callable[[Server], Awaitable[Findings]]  # runs a case on a server, and returns what is wrong, by rule

REASONING = re.compile("{}(.*?)(?:{}|$)".format(*map(re.escape, THINKING)), re.DOTALL)
TOO_FAST = "not tested: the server answers too fast"


class NotSupported(Exception):  # noqa: N818
    """Raised if a case cannot be judged: the server refuses the request, or the answer does not show whether the server
    is correct."""


@dataclass(frozen=True, eq=False)
class Single:
    """A request, and the answer that must come."""

    api: Api
    request: Request
    expected: Expected
    optional: bool = False  # a server may refuse the request for reasons other than its stops
    promised: bool = False  # the API's reference promises this form of request

    async def run(self, server: Server, kept: httpx.AsyncClient | None = None, /) -> Findings:
        """Returns what is wrong with the answer. Raises `NotSupported` if the server refuses the request."""
        can = await probe(server, self.api)
        if "stop_token_ids" in self.request.stops and not can.stop_at_ids:
            raise NotSupported("the server has no stop_token_ids")
        if "stop-in-reasoning" in self.expected.also and not can.tell_reasoning:
            raise NotSupported("the server does not separate reasoning")
        return self.judged(await ask(server, self.api, self.request, kept=kept), can)

    def judged(self, answer: Answer, can: Can = Can(), /) -> Findings:  # noqa: B008
        if not answer.refused:
            findings = judge(answer, self.expected, stream=self.request.stream, can=can)
            return {**findings, **self._spelled(answer, findings)}
        if answer.busy:
            raise NotSupported(answer.error)
        if self.promised:
            return {REFUSES: f"refused: {answer.error}"}
        if self.request.stops and not self.optional and "stop" not in answer.wire.text.lower():
            return {"refusal": f"the refusal does not name the stops as its reason: {answer.error}"}
        raise NotSupported(answer.error)

    def _spelled(self, answer: Answer, findings: Findings) -> Findings:
        """Judges the log probabilities. Their tokens must spell the text of the answer. Tokens of the stop may
        follow."""
        spelled = self.api.spelled(answer.wire, self.request) if self.request.extras.options.get("logprobs") else None
        joined, text = "".join(spelled or []), answer.text
        # If a token ends in the middle of a character, nothing is judged, because servers write such tokens in
        # different ways.
        if not joined or "\N{REPLACEMENT CHARACTER}" in joined or findings.get("text", "") is not None:
            return {}
        right = joined.startswith(text) and (text + self.expected.rest).startswith(joined)
        wrong = f"log probabilities of {shown(joined, text)}, not of {shown(text, joined)}"
        return {"logprobs": None if right else wrong}


def single(api: Api, stream: bool, task: Task, /, extras: Extras = Extras(), name: str = "") -> Single:  # noqa: B008
    """Returns the request for `task` through `api`, with the answer that must come. `name` is the name of the case."""
    checkpoint, script = default_checkpoint(), task.script
    ids = checkpoint.token_ids(script)
    stops = {} if task.stop is MISSING else {"stop": task.stop}
    if task.stop_pieces:
        stops["stop_token_ids"] = [ids[piece] for piece in task.stop_pieces]
    if extras.prompt:
        prompts = {"list": [checkpoint.prompt(script)], "ids": [checkpoint.prompt_id(script)],
                   "ids-in-a-list": [[checkpoint.prompt_id(script)]]}  # fmt: skip
        extras = replace(extras, body={**extras.body, "prompt": prompts[extras.prompt]})
    request = Request(checkpoint.prompt(script), stream, stops, task.max_tokens, extras=extras)
    expected = _expected(api, task, ids)
    # With the option "echo", the answer begins with the prompt. But the kit's prompt is a special token, so a server
    # may leave it out of the text.
    if extras.options.get("echo"):
        echoed = tuple((request.prompt + text, reasoning) for text, reasoning in expected.answers)
        expected = replace(expected, answers=(*expected.answers, *echoed), recital=None)
    return Single(api, request, expected, optional=extras != Extras(), promised=promises(api.name, name))


def _expected(api: Api, task: Task, ids: Sequence[int]) -> Expected:
    recital = recite(task)
    fires = ids[recital.fires] if isinstance(recital.fires, int) else recital.fires
    end = api.reported((recital.reason, fires))
    # sglang reports an EOS as a stop token that matched.
    ends = (end, ("stop_token", default_checkpoint().eos_token_id)) if end[0] == "eos" else (end,)
    tokens = recital.tokens
    apart = THINKING[0] in recital.text
    return Expected(
        answers=_answers(recital.text) if apart else ((recital.text, ""),),
        ends=ends,
        # A server may or may not count the EOS or stop token that ends an answer: APIs do not say which is correct.
        tokens=(tokens, tokens - 1) if recital.reason in ("eos", "stop_token") else (tokens,),
        # A server may hold a `<`, because `<think>` may begin there. So the chunks of a text with a `<` are not
        # compared.
        recital=None if "<" in recital.text else recital,
        text="competing-stops" if recital.competes else "stop-token-ids" if task.stop_pieces else "text",
        finish="same-step" if recital.at_limit else "finish-reason",
        rest=EOS if recital.reason == "eos" else pieces_text(task.pieces[: recital.tokens])[len(recital.text) :],
        most=inf if task.max_tokens is None else task.max_tokens,
        least=bisect_left(recital.complete, len(recital.text)) + 1 if recital.text else 0,
        stopped=recital.reason == "stop_sequence",
        api=api.name,
        worded=api.name == "anthropic",
        also=_also(task, recital, apart),
    )


def _answers(text: str) -> tuple[tuple[str, str], ...]:
    """Returns three correct answers, each as a pair (answer, reasoning). All three are allowed: a server may separate
    the reasoning from the answer, send the whole text as the answer, or leave the reasoning out."""
    answer, reasoning = REASONING.sub("", text), "".join(REASONING.findall(text))
    return (answer, reasoning), (text, ""), (answer, "")


def _also(task: Task, recital: Recital, apart: bool) -> dict[str, tuple[tuple[str, str], ...]]:
    """Returns answers that break only a rule of the level "advice". The keys are the names of the rules."""
    if apart:
        return {"stop-in-reasoning": (*_answers(recite(task, protected=False).text), *_joined(task))}
    half = recital.text.rstrip("\N{REPLACEMENT CHARACTER}")
    return {"half-characters": ((half, ""),)} if half != recital.text else {}


def _joined(task: Task) -> tuple[tuple[str, str], ...]:
    """Returns the answers of a server that removes the reasoning from the text, and then looks for stops in the rest.
    Each is a pair (answer, reasoning). The server may leave the reasoning out, so it is empty in the second pair."""
    whole = b"".join(task.pieces).decode(errors="replace")
    answer, reasoning = REASONING.sub("", whole), "".join(REASONING.findall(whole))
    ends = [answer.index(stop) for stop in task.stops if stop in answer]
    return ((answer[: min(ends)], reasoning), (answer[: min(ends)], "")) if ends else ()
