"""Each wrong server of `staged.faults` answers another thing than the right one, and is in every other way as right."""

from __future__ import annotations

import asyncio
import json
import operator
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import staged.generation
from staged.app import Staged, application
from staged.faults import FAULTS
from staged.faults.fault import Asked, Fault

from stopscan_conformance.reciter import SCRIPTS, Reciter

PATHS = {
    "openai-chat": "/v1/chat/completions", "openai-completions": "/v1/completions", "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages", "ollama-chat": "/api/chat", "ollama-generate": "/api/generate",
    "generate": "/generate",
}  # fmt: skip
# What another answer has, too: made anew for each.
OWN = re.compile(r"id-[0-9a-f]{32}|\"created(_at)?\": [^,]*")


@pytest.fixture(scope="module")
def reciter() -> Iterator[Reciter]:
    """A checkpoint that has the scripts of the faults as well."""
    pieces = {ask.script: ask.pieces for fault in FAULTS for ask in fault.shown if ask.pieces}
    reciter = Reciter({**SCRIPTS, **pieces})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staged.generation, "CHECKPOINT", reciter)
        yield reciter


def body_of(api: str, asked: Asked, reciter: Reciter) -> dict[str, Any]:
    prompt = asked.before + reciter.prompt(asked.script)
    options = {**asked.options}
    if asked.stop != ():
        options["stop_sequences" if api == "anthropic" else "stop"] = asked.stop
    if asked.ids:
        options["stop_token_ids"] = [reciter.token_id(asked.script, piece) for piece in asked.ids]
    if asked.limit is not None:
        name = {"openai-responses": "max_output_tokens", "generate": "max_new_tokens"}.get(api, "max_tokens")
        options["num_predict" if api.startswith("ollama") else name] = asked.limit
    message = {"role": "user", "content": prompt}
    stream = {"stream": asked.stream}
    if api.startswith("ollama"):
        kept = {name: options.pop(name) for name in ("format", "think") if name in options}
        said = {"messages": [message]} if api == "ollama-chat" else {"prompt": prompt}
        return {**stream, **kept, **said, "options": options}
    if api == "generate":
        return {**stream, "text": prompt, "sampling_params": options}
    if asked.stream and api in ("openai-chat", "openai-completions"):
        stream["stream_options"] = {"include_usage": True}
    name, said = {"openai-completions": ("prompt", prompt), "openai-responses": ("input", prompt)}.get(
        api, ("messages", [message])
    )
    return {**stream, **options, name: said}


async def answer(app: Any, name: str, api: str, asked: Asked, reciter: Reciter) -> tuple[int, str]:
    """The status and the body of an answer, in this process."""
    raw = json.dumps(body_of(api, asked, reciter)).encode()
    waiting = [{"type": "http.request", "body": raw}]
    left = asyncio.Event()
    sent: list[Any] = []

    async def receive() -> Any:
        if waiting:
            return waiting.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if asked.leaves and len(sent) > asked.leaves:
            left.set()
        elif not asked.leaves:
            await asyncio.sleep(0)

    scope = {"type": "http", "path": f"/{name}{PATHS[api]}", "headers": [], "client": ("127.0.0.1", 7)}
    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], OWN.sub("", body.decode("utf-8", "replace"))


async def answers(server: Staged, api: str, shown: Sequence[Asked], reciter: Reciter, together: bool = False) -> Any:
    app = application([server])
    if together:
        return await asyncio.gather(*(answer(app, server.name, api, asked, reciter) for asked in shown))
    return [await answer(app, server.name, api, asked, reciter) for asked in shown][-1]


@pytest.mark.parametrize("fault", [one for one in FAULTS if one.shown], ids=lambda fault: fault.name)
def test_the_answer_is_another(fault: Fault, reciter: Reciter) -> None:
    right, wrong = (
        asyncio.run(answers(server, fault.api, fault.shown, reciter, fault.together))
        for server in (Staged(), fault.staged())
    )
    assert wrong != right


ORDINARY = [Asked("late", stop=["never"], limit=9), Asked("accents", stop=["end"]), Asked("count", stream=True)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_ordinary_request_is_answered_rightly(fault: Fault, reciter: Reciter) -> None:
    """A server that is wrong for every request says nothing of the cases that find it."""
    right, wrong = (
        [asyncio.run(answers(server, fault.api, [asked], reciter)) for asked in ORDINARY]
        for server in (Staged(), fault.staged())
    )
    assert any(map(operator.eq, right, wrong))


def test_there_are_enough() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 60
