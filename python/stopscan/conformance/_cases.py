"""The cases: each scenario through each API, as a stream and not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from stopscan.conformance import _apis
from stopscan.conformance._apis import Answer, Request
from stopscan.conformance._scenarios import SCENARIOS, Scenario, load_vectors
from stopscan.conformance._server import Server
from stopscan.finish import (
    Finish,
    from_anthropic,
    from_ollama,
    from_openai,
    from_responses,
    from_sglang,
    to_anthropic,
    to_ollama,
    to_openai,
    to_responses,
    to_sglang,
)
from stopscan.testing.reciter import SCRIPTS, THINKING, Reciter

# What a Harmony script has before its answer, besides the reasoning: the markers and the channels' names.
HARMONY_PIECES = 9
REASONING = re.compile("{}(.*?)(?:{}|$)".format(*map(re.escape, THINKING)), re.DOTALL)


class Api(NamedTuple):
    ask: Callable[[Server, Request], Answer]
    told: Callable[[Finish], Finish | None]  # what a client can know of a finish
    harmony: bool = False


def _told_by_openai(finish: Finish) -> Finish | None:
    return from_openai({"choices": [to_openai(finish)]})


def _told_by_responses(finish: Finish) -> Finish | None:
    return from_responses(to_responses(finish))


APIS: Mapping[str, Api] = {
    "openai-chat": Api(_apis.openai_chat, _told_by_openai),
    "openai-completions": Api(_apis.openai_completions, _told_by_openai),
    "openai-responses": Api(_apis.openai_responses, _told_by_responses),
    "anthropic": Api(_apis.anthropic, lambda finish: from_anthropic(to_anthropic(finish))),
    "ollama-chat": Api(_apis.ollama_chat, lambda finish: from_ollama(to_ollama(finish))),
    "ollama-generate": Api(_apis.ollama_generate, lambda finish: from_ollama(to_ollama(finish))),
    "generate": Api(_apis.generate, lambda finish: from_sglang({"meta_info": to_sglang(finish)})),
    "harmony-chat": Api(_apis.openai_chat, _told_by_openai, harmony=True),
    "harmony-responses": Api(_apis.openai_responses, _told_by_responses, harmony=True),
}


class Result(NamedTuple):
    """`detail` says what came instead, and `wrong` what was wrong with it: "text", "reasoning", "finish", "usage" or
    "form", or "error" for no answer at all."""

    outcome: Literal["pass", "fail", "not supported"]
    detail: str = ""
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One request and what has to come of it. `str(case)` names it."""

    api: str
    stream: bool
    name: str
    request: Request
    answers: tuple[tuple[str, str], ...]  # text and reasoning, in each way that they may be told apart
    finishes: tuple[Finish, ...]
    tokens: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.api}-{'stream' if self.stream else 'whole'}-{self.name}"

    def run(self, server: Server, /) -> Result:
        """The result of the case on `server`. Raises `ConnectionError` if it is down, `TimeoutError` if it is too slow
        for any case, and `RuntimeError` if it serves another model.
        """
        missing = server.probe(self.api, APIS[self.api].ask)
        if missing is not None:
            return Result("not supported", missing)
        try:
            answer = APIS[self.api].ask(server, self.request)
        except Exception as error:
            return self._refused(server, error)
        return self._judged(answer)

    def _refused(self, server: Server, error: Exception) -> Result:
        refusal = server.refusal(error)
        if refusal is not None:
            return Result("not supported", refusal)
        server.probe(self.api, APIS[self.api].ask, again=True)
        return Result("fail", server.describe(error), ("error",))

    def _judged(self, answer: Answer) -> Result:
        wrong = {}
        if (answer.text, answer.reasoning) not in self.answers:
            text, reasoning = self.answers[0]
            if answer.text not in [text for text, _ in self.answers]:
                wrong["text"] = f"text {answer.text!r}, not {text!r}"
            else:
                wrong["reasoning"] = f"reasoning {answer.reasoning!r}, not {reasoning!r}"
        if _said(answer.finish) not in map(_said, self.finishes):
            wrong["finish"] = f"ended by {_words(answer.finish)}, not {_words(self.finishes[0])}"
        if answer.tokens not in self.tokens:
            counted = (
                "no token count" if answer.tokens is None else f"{answer.tokens} tokens counted, not {self.tokens[0]}"
            )
            wrong["usage"] = counted
        if answer.faults:
            wrong["form"] = "; ".join(answer.faults)
        return Result("fail", "; ".join(wrong.values()), tuple(wrong)) if wrong else Result("pass")


def reciter(vectors: str | Path | None = None, /) -> Reciter:
    """The checkpoint that `cases` of these vectors expect: without any, the default one."""
    return Reciter({**SCRIPTS, **load_vectors(vectors)[0]})


def cases(*apis: str, vectors: str | Path | None = None) -> list[Case]:
    """The cases of the named APIs, by default of all, each as a stream and not.

    `vectors` is a folder of scanner vectors to send as well: the server then runs the checkpoint that
    `python -m stopscan.conformance.vectors` wrote for them, whose token ids are others.

    >>> [str(case) for case in cases("anthropic")][0]
    'anthropic-whole-one-token'
    """
    for api in apis:
        if api not in APIS:
            raise ValueError(f"unknown API {api!r}; there are {', '.join(APIS)}")
    checkpoint = reciter(vectors)
    scenarios = [*SCENARIOS, *load_vectors(vectors)[1]]
    return [
        _case(checkpoint, api, stream, scenario)
        for api in apis or APIS
        for scenario in scenarios
        for stream in (False, True)
        if not APIS[api].harmony or f"harmony-{scenario.script}" in SCRIPTS
    ]


def _case(checkpoint: Reciter, api: str, stream: bool, scenario: Scenario) -> Case:
    script, skipped, reasoning = scenario.script, 0, ""
    if APIS[api].harmony:
        script, reasoning = f"harmony-{script}", checkpoint.text(script)
        skipped = HARMONY_PIECES + len(checkpoint.token_ids(scenario.script))
    ids = checkpoint.token_ids(script)[skipped:]
    tokens = skipped + scenario.tokens
    request = Request(
        prompt=checkpoint.prompt(script),
        stream=stream,
        stop=scenario.stop,
        stop_token_ids=tuple(ids[piece] for piece in scenario.stop_pieces),
        max_tokens=scenario.max_tokens + skipped,
    )
    return Case(
        api,
        stream,
        scenario.name,
        request,
        answers=((scenario.text, reasoning),) if reasoning else _answers(scenario.text),
        finishes=_finishes(APIS[api], scenario, ids, checkpoint.eos_token_id),
        # The token that ends an answer, and is no part of it, may count or not: no API says.
        tokens=(tokens, tokens - 1) if scenario.reason in ("eos", "stop_token") else (tokens,),
    )


def _answers(text: str) -> tuple[tuple[str, str], ...]:
    """The answer and its reasoning: apart, together as the model said it, or with the reasoning gone."""
    answer, reasoning = REASONING.sub("", text), "".join(REASONING.findall(text))
    return (answer, reasoning), (text, ""), (answer, "")


def _finishes(api: Api, scenario: Scenario, ids: list[int], eos_token_id: int) -> tuple[Finish, ...]:
    if isinstance(scenario.fires, str):
        finish = Finish("stop_sequence", scenario.fires)
    elif scenario.fires is not None:
        finish = Finish("stop_token", ids[scenario.fires])
    else:
        finish = Finish("length" if scenario.reason == "length" else "eos")
    told = api.told(finish)
    assert told is not None
    # sglang names the EOS, too.
    return (told, Finish("stop_token", eos_token_id)) if told.reason == "eos" else (told,)


def _said(finish: Finish | None) -> tuple[str, str | int | None] | None:
    """What has to be the same; the server's own word need not."""
    return None if finish is None else (finish.reason, finish.matched_stop)


def _words(finish: Finish | None) -> str:
    if finish is None:
        return "nothing"
    return finish.reason if finish.matched_stop is None else f"{finish.reason} {finish.matched_stop!r}"
