"""What comes of a request, and of several, with an API that is made up and no server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import pytest

from stopscan.finish import Finish
from stopscan_conformance import Server
from stopscan_conformance import _answer as answers
from stopscan_conformance._answer import Answer, ask
from stopscan_conformance._apis import APIS as BY_NAME
from stopscan_conformance._apis import Api, Part, Request
from stopscan_conformance._connection import Connection
from stopscan_conformance._exchange import exchange
from stopscan_conformance._plays import at_once, in_turn, leaving, the_same
from stopscan_conformance._promises import Findings
from stopscan_conformance._scenarios import scenarios
from stopscan_conformance._wire import Wire

SERVER = Server("http://127.0.0.1:9", model="reciter", timeout=5)
END = Part(finish=Finish("eos"), head={"id": "1", "model": "reciter", "prompt": 3, "tokens": 1})


class Told:
    """An API that says what it is given: parts, errors, and pauses in seconds."""

    def __init__(self, *said: Part | BaseException | float, status: int | None = 200, body: str = "") -> None:
        self.said, self.status, self.body = said, status, body
        self.asked: list[Request] = []
        self.over = self.told = 0
        self.api = Api("made-up", self.read, self.form, lambda end: end)

    async def read(self, connection: Connection, request: Request) -> AsyncIterator[Part]:
        self.asked.append(request)
        try:
            wire = connection.wire
            wire.status, wire.body = self.status, bytearray(self.body.encode())
            for one in self.said:
                if isinstance(one, BaseException):
                    raise one
                if isinstance(one, float):
                    await asyncio.sleep(one)
                else:
                    self.told += 1
                    yield one
        finally:
            self.over += 1

    def form(self, wire: Wire, request: Request) -> Iterator[str]:
        yield "a breach"
        yield "a breach"


def asked(told: Told, server: Server = SERVER, **options: bool) -> Answer:
    return asyncio.run(ask(server, told.api, Request("hello"), **options))


def caused(cause: BaseException) -> Exception:
    error = ValueError("no\nanswer")
    error.__cause__ = cause
    return error


def test_an_answer_is_what_its_parts_say() -> None:
    answer = asked(Told(Part(reasoning="so "), Part("one"), Part("", "it is"), Part(" two"), END))
    assert (answer.text, answer.chunks, answer.reasoning) == ("one two", ["one", " two"], "so it is")
    assert (answer.end, answer.error, answer.timed_out) == (("eos", None), None, False)
    assert answer.head == {"id": "1", "model": "reciter", "prompt": 3, "tokens": 1}
    assert answer.faults == ["a breach"]
    assert 0 < answer.first <= answer.seconds


@pytest.mark.parametrize("part", [Part("late"), Part(reasoning="late")])
def test_text_after_the_end_is_a_fault(part: Part) -> None:
    assert asked(Told(Part("one"), END, part)).faults == ["text after the finish reason", "a breach"]


@pytest.mark.parametrize("part", [Part(5), Part("", ["so"]), Part(b"two")])  # type: ignore[arg-type]
def test_a_text_is_a_string(part: Part) -> None:
    answer = asked(Told(Part("one"), part))
    assert (answer.text, answer.reasoning) == ("one", "")
    assert answer.error == f"TypeError: the text is {(part.reasoning or part.text)!r}, not a string"


def test_a_request_that_is_given_up_is_closed() -> None:
    told = Told(Part("one"), 30.0)

    async def give_up() -> None:
        asking = asyncio.create_task(ask(SERVER, told.api, Request("hello")))
        while not told.asked:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(give_up())
    assert told.over == 1


def test_what_a_later_part_does_not_tell_stays() -> None:
    answer = asked(Told(END, Part(head={"id": None, "tokens": 4})))
    assert answer.head == {"id": "1", "model": "reciter", "prompt": 3, "tokens": 4}


def test_the_first_text_is_timed_once() -> None:
    began = perf_counter()
    answer = asked(Told(Part("", "so"), 0.02, Part("one"), 0.02, Part("two"), 0.02))
    assert answer.seconds <= perf_counter() - began
    assert answer.first >= 0.02
    assert answer.first + 0.03 < answer.seconds


@pytest.mark.parametrize(
    ("error", "status", "body", "described"),
    [
        (ValueError("no\nanswer"), 200, "said", "ValueError: no\nanswer"),
        (ValueError("x" * 300), 200, "said", "ValueError: " + "x" * 200),
        (ValueError("no"), 500, " out  of\nmemory " + "x" * 300, "500: out of memory " + "x" * 186),
        (ValueError("no"), 500, "", "ValueError: no"),
        (ValueError(""), 500, " ", "ValueError"),
        (caused(OSError("reset")), None, "", "ValueError: no\nanswer: reset"),
        (caused(OSError("reset")), 200, "", "ValueError: no\nanswer"),
        (caused(OSError("reset")), 500, "said", "500: said"),
    ],
)
def test_an_error_is_told_with_what_the_server_said(error: Exception, status: int, body: str, described: str) -> None:
    answer = asked(Told(Part("one"), error, status=status, body=body))
    assert (answer.chunks, answer.error, answer.timed_out) == (["one"], described, False)


def test_no_end_in_time() -> None:
    told = Told(Part("one"), 30.0)
    answer = asked(told, Server("http://127.0.0.1:9", model="reciter", timeout=0.05))
    assert (answer.chunks, answer.error, answer.timed_out) == (["one"], "no end of the answer in 0.05 s", True)
    assert told.over == 1


def test_the_form_of_what_is_no_answer_is_not_judged() -> None:
    assert asked(Told(Part("one"), status=202)).faults == ["the status is 202, not 200", "a breach"]
    assert asked(Told(Part("one"), status=500)).faults == []
    assert asked(Told(Part("one"), status=None)).faults == []


@pytest.mark.parametrize("model", ["gpt", 5, ["reciter"]])
def test_another_model_is_a_fault(model: Any) -> None:
    answer = asked(Told(Part("one", head={"model": model})))
    assert answer.faults == ["a breach", f"the model is {model!r}, not 'reciter'"]


@pytest.mark.parametrize("model", ["reciter", "reciter:latest", None])
def test_a_model_may_have_a_tag(model: str | None) -> None:
    assert asked(Told(Part("one", head={"model": model}))).faults == ["a breach"]


def test_a_client_that_leaves_reads_no_more_than_the_first_text() -> None:
    for first, read in ((Part("", "so"), ([], "so")), (Part("one"), (["one"], ""))):
        told = Told(first, Part("two"), Part("three"))
        answer = asked(told, leave=True)
        assert ((answer.chunks, answer.reasoning), answer.faults, told.over) == (read, [], 1)


@pytest.mark.parametrize("failing", [False, True])
def test_clients_are_closed(monkeypatch: pytest.MonkeyPatch, failing: bool) -> None:
    opened: list[Any] = []

    class Kept(Connection):
        def __init__(self, server: Server) -> None:
            super().__init__(server)
            opened.extend([self.openai._client, self.anthropic._client, self.ollama._client, self.http])

    monkeypatch.setattr(answers, "Connection", Kept)
    asked(Told(*([ValueError("no")] if failing else [])))
    assert [client.is_closed for client in opened] == [True] * 4


def made(told: Told, name: str = "no-stop") -> Any:
    known = {scenario.name: scenario for scenario in scenarios()}
    return replace(exchange(BY_NAME["openai-chat"], True, known[name]), api=told.api)


def test_leaving_is_for_several_clients_and_says_nothing() -> None:
    told = Told(Part("one"), Part("two"))
    assert asyncio.run(leaving(made(told))(SERVER)) == {}
    assert (len(told.asked), told.told, told.over) == (4, 4, 4)


def test_an_exchange_is_judged_by_what_it_asks_for() -> None:
    told = Told(Part("one"), END)
    one = made(told)
    text = one.expected.answers[0][0]
    found = asyncio.run(one.run(SERVER))
    assert found == {"text": f"text 'one', not {text!r}", "finish": None, "form": "a breach", "cost": found["cost"]}
    assert found["cost"] is not None
    assert told.asked == [one.request]


Heads = list[Mapping[str, Any]]


@pytest.mark.parametrize(
    ("heads", "fault"),
    [
        ([{"id": "1", "prompt": 3}, {"id": "2", "prompt": 3}], None),
        ([{}, {}], None),
        ([{"id": "1"}, {}], None),
        ([{}, {"id": "1"}], None),
        ([{"id": "1"}, {"id": "1"}], "two answers have the id '1'"),
        ([{"prompt": 3}, {"prompt": 4}], "3 and 4 tokens of the same prompt"),
        ([{"prompt": 3}, {}], "3 and None tokens of the same prompt"),
        (
            [{"id": "1", "prompt": 3}, {"id": "1", "prompt": 4}],
            "two answers have the id '1'; 3 and 4 tokens of the same prompt",
        ),
    ],
)
def test_the_same_request_twice(heads: Heads, fault: str | None) -> None:
    left = iter(heads)
    told = Told()

    async def read(connection: Connection, request: Request) -> AsyncIterator[Part]:
        yield Part("one", head=next(left))

    told.api = replace(told.api, read=read)
    assert asyncio.run(the_same(made(told))(SERVER)) == {"form": fault}
    assert [*left] == []


def test_the_same_request_twice_without_an_answer() -> None:
    told = Told(ValueError("no"))
    assert asyncio.run(the_same(made(told))(SERVER)) == {"text": "no answer: ValueError: no"}
    assert len(told.asked) == 1


def playing(found: Findings, over: list[int]) -> Callable[[Server], Any]:
    async def play(server: Server) -> Findings:
        assert server is SERVER
        over.append(len(over))
        await asyncio.sleep(0)
        return found

    return play


@pytest.mark.parametrize("several", [at_once, in_turn])
def test_of_several_the_first_breach_of_each_promise_is_told(several: Any) -> None:
    over: list[int] = []
    every: list[Findings] = [
        {},
        {"text": None, "form": None, "late": None},
        {"text": None, "form": "no id", "cost": "two"},
        {"text": "no text", "form": "no model"},
    ]
    found = asyncio.run(several([playing(one, over) for one in every])(SERVER))
    assert found == {
        "text": "no text (request 4 of 4)",
        "form": "no id (request 3 of 4)",
        "late": None,
        "cost": "two (request 3 of 4)",
    }
    assert len(over) == 4


def test_requests_in_turn_do_not_meet_and_requests_at_once_do() -> None:
    async def play(server: Server) -> Findings:
        running.append(1)
        most.append(len(running))
        await asyncio.sleep(0)
        running.pop()
        return {}

    for several, expected in ((in_turn, 1), (at_once, 3)):
        running: list[int] = []
        most: list[int] = []
        asyncio.run(several([play] * 3)(SERVER))
        assert max(most) == expected
