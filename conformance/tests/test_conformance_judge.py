"""What the kit says of an answer, of given answers and with no server."""

from __future__ import annotations

import pytest

from stopscan_conformance._answer import Answer
from stopscan_conformance._apis import APIS as BY_NAME
from stopscan_conformance._apis import Api
from stopscan_conformance._exchange import Exchange, NotSupported, exchange
from stopscan_conformance._promises import Expected, Findings, judge
from stopscan_conformance._promises.late import lateness
from stopscan_conformance._recital import Recital
from stopscan_conformance._scenarios import scenarios
from stopscan_conformance._wire import Wire
from stopscan_conformance.reciter import Reciter

END = ("stop_sequence", "END")
EXPECTED = Expected((("one ", "why"), ("why one ", ""), ("one ", "")), (END, ("eos", None)), (7, 6))
RIGHT = {"text": None, "finish": None, "form": None}
KNOWN = {scenario.name: scenario for scenario in scenarios()}


def answered(
    *chunks: str,
    reasoning: str = "why",
    end: tuple[str, str | int | None] | None = END,
    error: str | None = None,
    timed_out: bool = False,
    tokens: int | None = None,
) -> Answer:
    return Answer(
        chunks=[*chunks], reasoning=reasoning, end=end, error=error, timed_out=timed_out, head={"tokens": tokens}
    )


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (answered("one", " "), RIGHT),
        (answered("one ", reasoning=""), RIGHT),
        (answered("why one ", reasoning=""), RIGHT),
        (answered("one ", end=("eos", None)), RIGHT),
        (answered("one ", tokens=7), {**RIGHT, "cost": None}),
        (answered("one ", tokens=6), {**RIGHT, "cost": None}),
        (answered("one ", tokens=0), {**RIGHT, "cost": "0 tokens counted, not 7"}),
        (answered("one"), {**RIGHT, "text": "text 'one', not 'one '"}),
        (answered("one ", reasoning="w"), {**RIGHT, "text": "reasoning 'w', not 'why'"}),
        (answered("why one "), {**RIGHT, "text": "reasoning 'why', not 'why'"}),
        (answered("one ", end=None), {**RIGHT, "finish": "ended by nothing, not stop_sequence 'END'"}),
        (answered("one ", end=("length", None)), {**RIGHT, "finish": "ended by length, not stop_sequence 'END'"}),
        (answered("one ", end=("eos", 5)), {**RIGHT, "finish": "ended by eos 5, not stop_sequence 'END'"}),
        (answered("one ", error="reset"), {**RIGHT, "form": "reset"}),
        (answered(error="reset", end=None), {"text": "no answer: reset"}),
        (answered(error="reset"), {**RIGHT, "text": "text '', not 'one '", "form": "reset"}),
        (answered("one ", end=None, error="reset"), {**RIGHT, "finish": "ended by nothing, not stop_sequence 'END'",
                                                     "form": "reset"}),
        (answered(end=None), {**RIGHT, "text": "text '', not 'one '",
                              "finish": "ended by nothing, not stop_sequence 'END'"}),
        (answered(end=None, error="late", timed_out=True), {
            "text": "text '', not 'one '", "finish": "ended by nothing, not stop_sequence 'END'", "form": "late"}),
    ],
)  # fmt: skip
def test_judged(answer: Answer, found: Findings) -> None:
    assert judge(answer, EXPECTED, stream=True) == found


def test_all_breaches_of_the_form_are_told() -> None:
    answer = answered("one ", error="reset")
    answer.faults += ["no id", "no model"]
    assert judge(answer, EXPECTED, stream=False)["form"] == "reset; no id; no model"


def test_only_a_stream_of_the_right_text_can_be_late() -> None:
    expected = Expected((("abcdef", ""),), (("eos", None),), (7,), RECITAL)
    late = answered("abcde", "f", reasoning="", end=("eos", None))
    assert "late" not in judge(late, expected, stream=False)
    assert judge(late, expected, stream=True)["late"] is not None
    assert judge(answered("abcdef", reasoning=""), expected, stream=True)["late"] is None
    assert "late" not in judge(answered("abcd", reasoning=""), expected, stream=True)


def test_of_a_long_text_what_is_around_the_first_difference_is_told() -> None:
    text = "".join(f"{number:04}" for number in range(60))
    expected = Expected(((text, ""),), (END,), ())
    other = f"{text[:100]}!{text[101:]}"
    wrong = judge(answered(other, reasoning=""), expected, stream=False)["text"]
    assert wrong == f"text ...'{other[80:140]}' (240 characters), not ...'{text[80:140]}' (240 characters)"
    cut = judge(answered(text[:200], reasoning=""), expected, stream=False)["text"]
    assert cut == f"text {text[:200]!r}, not ...'{text[180:240]}' (240 characters)"
    begun = judge(answered("!" + text, reasoning=""), expected, stream=False)["text"]
    assert begun is not None
    assert begun.startswith(f"text ...'!{text[:39]}' (241 characters), not ...'{text[:40]}'")


# Its tokens bring two characters each; with the first, one of them is safe, and with the second both of these.
RECITAL = Recital("abcdef", 4, "eos", None, (2, 4, 6), (1, 2, 6, 6))


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        (["a", "b", "cdef"], None),
        (["ab", "", "cdef"], None),
        (["abcdef"], None),
        ([], None),
        (["abc", "def"], "early by 1 characters: a chunk ends with 'abc'"),
        (["ab", "cd", "ef"], "early by 2 characters: a chunk ends with 'abcd'"),
        (["abc", "d", "ef"], "early by 2 characters: a chunk ends with 'abcd'"),
        (["abcde", "f"], "late by at least 1 characters: a chunk ends with 'abcde'"),
        (["abc", "de", "f"], "early by 1 characters: a chunk ends with 'abc'"),
    ],
)
def test_where_chunks_end(chunks: list[str], message: str | None) -> None:
    assert lateness(chunks, RECITAL) == message


def test_where_the_chunk_of_a_long_text_ends() -> None:
    recital = Recital("0123456789" * 3, 3, "eos", None, (15, 30), (10, 30))
    assert lateness(["0123456789" * 2 + "01234", "56789"], recital) == (
        "late by at least 5 characters: a chunk ends with '56789012345678901234'"
    )


@pytest.mark.parametrize(("tokens", "sizes", "fault"), [
    (200, (101, 99), "one of 2 chunks has the text of 101 of 200 tokens"),
    (200, (99, 101), "one of 2 chunks has the text of 101 of 200 tokens"),
    (200, (100, 100), "text comes 100 tokens at once"),
    (200, (8,) * 25, None),
    (99, (98, 1), None),
    (200, (), None),
])  # fmt: skip
def test_one_chunk_with_more_than_half_of_many_tokens_is_no_stream(
    tokens: int, sizes: tuple[int, ...], fault: str | None
) -> None:
    every = tuple(range(1, tokens + 1))
    assert lateness(["x" * size for size in sizes], Recital("x" * tokens, tokens, "eos", None, every, every)) == fault


def refusal(api: Api, case: str, said: str, status: int = 400) -> tuple[Exchange, Answer]:
    answer = Answer(Wire(status, "", bytearray(said.encode())), error=f"{status}: {said}")
    return exchange(api, False, KNOWN[case]), answer


@pytest.mark.parametrize("status", [400, 404, 405, 413, 415, 422, 501])
def test_a_refusal_says_that_it_is_the_stops(status: int) -> None:
    asked, answer = refusal(BY_NAME["openai-chat"], "split", "Stops are not known", status)
    with pytest.raises(NotSupported, match=f"{status}: Stops"):
        asked.judged(answer)
    asked, answer = refusal(BY_NAME["openai-chat"], "split", "no", status)
    assert asked.judged(answer) == {"form": f"a refusal that does not say that it is the stops: {status}: no"}


def test_a_request_without_stops_may_be_refused_for_anything() -> None:
    asked, answer = refusal(BY_NAME["openai-chat"], "no-stop", "no")
    with pytest.raises(NotSupported, match="400: no"):
        asked.judged(answer)


@pytest.mark.parametrize("status", [None, 200, 401, 409, 500, 503])
def test_what_is_no_refusal_is_judged(status: int | None) -> None:
    asked = exchange(BY_NAME["openai-chat"], False, KNOWN["split"])
    assert asked.judged(Answer(Wire(status), error="why")) == {"text": "no answer: why"}


TELL_ALL = {"openai-chat", "openai-completions", "generate", "harmony-chat"}


@pytest.mark.parametrize("api", BY_NAME)
def test_what_an_api_can_tell_of_an_end(api: str) -> None:
    told = BY_NAME[api].told
    assert [told(end) for end in (("eos", None), ("length", None))] == [("eos", None), ("length", None)]
    assert told(END) == (END if api in TELL_ALL | {"anthropic"} else ("eos", None))
    assert told(("stop_token", 5)) == (("stop_token", 5) if api in TELL_ALL else ("eos", None))


def test_what_is_expected_of_a_stop() -> None:
    expected = exchange(BY_NAME["openai-chat"], True, KNOWN["split"]).expected
    assert expected.answers == (("This is the ", ""),)
    assert expected.ends == (("stop_sequence", "END"),)
    assert expected.recital is not None
    assert expected.tokens == (expected.recital.tokens,)


def test_what_is_expected_of_a_stop_token() -> None:
    made = exchange(BY_NAME["openai-chat"], True, KNOWN["ids"])
    ids = Reciter().token_ids("count")
    assert made.expected.ends == (("stop_token", ids[8]),)
    assert made.expected.tokens == (9, 8)
    assert made.request.max_tokens == KNOWN["ids"].max_tokens
    assert made.request.stops == {"stop_token_ids": [ids[8], ids[10]]}


def test_reasoning_is_apart_or_together_or_left_out() -> None:
    expected = exchange(BY_NAME["openai-chat"], True, KNOWN["think"]).expected
    assert expected.answers == (
        ("It is 5 or 6 ", "Is it END?"),
        ("<think>Is it END?</think>It is 5 or 6 ", ""),
        ("It is 5 or 6 ", ""),
    )
    assert expected.recital is None  # a server may wait for the marker


def test_reasoning_without_an_end_is_reasoning() -> None:
    expected = exchange(BY_NAME["openai-chat"], True, KNOWN["think-unclosed"]).expected
    (answer, reasoning), (together, _), _ = expected.answers
    assert f"{answer}<think>{reasoning}" == together
    assert reasoning != ""
