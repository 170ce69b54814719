"""How the kit judges answers. The tests make the answers themselves, without a server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stopscan_conformance.apis import APIS as BY_NAME
from stopscan_conformance.apis import Api
from stopscan_conformance.cases import counted, named_cases, result_of
from stopscan_conformance.client import Answer
from stopscan_conformance.judge import LEVELS, RULES, Expected, Findings, judge, lateness, merged
from stopscan_conformance.oracle import Recital, Task
from stopscan_conformance.probe import Can
from stopscan_conformance.reciter import Reciter
from stopscan_conformance.sentences import SENTENCES
from stopscan_conformance.single import NotSupported, Single, single
from stopscan_conformance.wire import Wire

END = ("stop_sequence", "END")
EXPECTED = Expected((("one ", "why"), ("why one ", ""), ("one ", "")), (END, ("eos", None)), (7, 6))
RIGHT = {"text": None, "finish-reason": None, "names-the-stop": None, "form": None}
NO_END = {"text": None, "finish-reason": "ended by nothing, not stop_sequence 'END'", "form": None}
KNOWN = {one.name: one.task for one in named_cases()}


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
        (answered("one ", tokens=7), {**RIGHT, "usage": None, "exact-usage": None}),
        (answered("one ", tokens=6), {**RIGHT, "usage": None, "exact-usage": None}),
        (answered("one ", tokens=0), {**RIGHT, "usage": None, "exact-usage": "0 tokens counted, not 7"}),
        (answered("one"), {**RIGHT, "text": "text 'one', not 'one '"}),
        (answered("one ", reasoning="w"), {**RIGHT, "text": "reasoning 'w', not 'why'"}),
        (answered("why one "), {**RIGHT, "text": "reasoning 'why', not 'why'"}),
        (answered("one ", end=None), NO_END),
        (answered("one ", end=("length", None)),
         {**NO_END, "finish-reason": "ended by length, not stop_sequence 'END'"}),
        (answered("one ", end=("unknown", "STOP")),
         {**NO_END, "finish-reason": "ended by unknown 'STOP', not stop_sequence 'END'"}),
        (answered("one ", end=("stop_token", 5)),
         {**RIGHT, "names-the-stop": "ended by stop_token 5, not stop_sequence 'END'"}),
        (answered("one ", error="reset"), {**RIGHT, "usual-form": "reset"}),
        (answered(error="reset", end=None), {"answers": "no answer: reset"}),
        (answered("one ", end=None, error="reset"), {**NO_END, "usual-form": "reset"}),
        (answered(end=None, error="late", timed_out=True), {"answers": "no answer: late"}),
        (answered("on", end=None, error="late", timed_out=True),
         {**{rule: fault for rule, fault in NO_END.items() if rule != "text"}, "answers": "text 'on', not 'one '",
          "usual-form": "late"}),
    ],
)  # fmt: skip
def test_judged(answer: Answer, found: Findings) -> None:
    assert judge(answer, EXPECTED, stream=True) == found


def test_a_server_that_names_no_stop_passes() -> None:
    expected = Expected((("one ", "why"),), (END,), (7,))
    unnamed = answered("one ", end=("eos", None))
    assert judge(unnamed, expected, stream=False)["names-the-stop"] is not None
    found = judge(unnamed, expected, stream=False, can=Can(name_stops=False))
    assert "names-the-stop" not in found
    assert not any(found.values())


def test_a_word_for_stops_is_documented() -> None:
    expected = Expected((("one ", "why"),), (END,), (7,), worded=True)
    assert judge(answered("one ", end=("eos", None)), expected, stream=False)["finish-reason"] is not None
    assert RULES["names-the-stop"].level_of(BY_NAME["anthropic"]) == "documented"
    assert RULES["names-the-stop"].level_of(BY_NAME["openai-chat"]) == "usual"


def test_a_stop_in_reasoning_breaks_only_advice() -> None:
    expected = single(BY_NAME["openai-chat"], False, KNOWN["think"]).expected
    found = judge(answered("", reasoning="Is it ", tokens=5), expected, stream=False)
    assert [rule for rule, fault in found.items() if fault] == ["stop-in-reasoning"]
    joined = single(BY_NAME["openai-chat"], False, KNOWN["think-between"]).expected
    found = judge(answered("It is ", reasoning="hm?", tokens=6), joined, stream=False)
    assert [rule for rule, fault in found.items() if fault] == ["stop-in-reasoning"]
    found = judge(answered("It is 5 or 6 END here", reasoning="Is it END?"), expected, stream=False)
    assert found["text"] is not None


def test_a_lost_half_character_breaks_only_advice() -> None:
    expected = single(BY_NAME["openai-chat"], False, Task("broken", (b"half ", b"\xf0\x9f\x98"))).expected
    found = judge(answered("half ", reasoning="", end=("eos", None), tokens=3), expected, stream=False)
    assert [rule for rule, fault in found.items() if fault] == ["half-characters"]
    found = judge(answered("half \N{REPLACEMENT CHARACTER}", reasoning="", end=("eos", None)), expected, stream=False)
    assert found["half-characters"] is None


def test_each_rule_has_a_source_for_each_api() -> None:
    for api in BY_NAME.values():
        for rule in RULES.values():
            assert rule.says
            assert rule.source(api)
            assert (rule.level_of(api) == "documented") == any(
                rule.name == one.rule and api.name in one.apis.split() for one in SENTENCES
            )


@pytest.mark.parametrize(("rule", "outcomes"), [
    ("text", ("fail", "fail", "fail")), ("competing-stops", ("pass", "fail", "fail")),
    ("withheld", ("pass", "pass", "fail")),
])  # fmt: skip
def test_a_level_says_which_rules_fail_a_case(rule: str, outcomes: tuple[str, ...]) -> None:
    found = [result_of({rule: "wrong"}, counted(BY_NAME["openai-chat"], level)) for level in LEVELS]
    assert tuple(one.outcome for one in found) == outcomes
    assert {tuple(one.broken) for one in found} == {(rule,)}


def test_all_faults_of_the_form_are_reported() -> None:
    answer = answered("one ", error="reset")
    answer.faults += ["no id", "no model"]
    found = judge(answer, EXPECTED, stream=False)
    assert (found["form"], found["usual-form"]) == ("no id; no model", "reset")


def test_only_faults_with_a_sentence_break_the_documented_form() -> None:
    answer = answered("one ")
    answer.faults += ["a chunk lacks the key id", "the first delta has None as role"]
    found = judge(answer, replace(EXPECTED, api="openai-chat"), stream=True)
    assert (found["form"], found["usual-form"]) == ("a chunk lacks the key id", "the first delta has None as role")


@pytest.mark.parametrize(("tokens", "broken"), [
    (4, []), (9, ["cost-of-a-stop"]), (20, ["cost-of-a-stop"]), (21, ["usage"]), (3, ["exact-usage"]), (2, ["usage"]),
])  # fmt: skip
def test_usage_after_a_speculative_step_is_within_bounds(tokens: int, broken: list[str]) -> None:
    expected = replace(EXPECTED, tokens=(4,), least=3, most=20, stopped=True)
    found = judge(answered("one ", tokens=tokens), expected, stream=False)
    assert [rule for rule, fault in found.items() if fault] == broken
    assert [RULES[rule].level_of(BY_NAME["openai-chat"]) for rule in broken] == [
        {"usage": "documented", "exact-usage": "usual", "cost-of-a-stop": "advice"}[rule] for rule in broken
    ]


def test_a_missing_answer_breaks_no_isolation() -> None:
    broken = [judge(answered(end=None, error="reset"), EXPECTED, stream=True),
              judge(answered("on", end=None, error="reset"), EXPECTED, stream=True)]  # fmt: skip
    found = merged(broken, together=True)
    assert found["answers"]
    assert not found.get("isolation")
    assert merged([judge(answered("on"), EXPECTED, stream=True)] * 2, together=True)["isolation"]


def test_the_refusal_of_a_documented_form_is_a_failure() -> None:
    answer = Answer(Wire(400, body=bytearray(b"stop: invalid")), error="400: stop: invalid")
    promised = single(BY_NAME["openai-chat"], False, KNOWN["null"], name="null")
    assert promised.judged(answer) == {"refuses-a-documented-form": "refused: 400: stop: invalid"}
    with pytest.raises(NotSupported):
        single(BY_NAME["openai-chat"], False, KNOWN["five"], name="five").judged(answer)
    busy = Answer(Wire(503, retry_after="1"), error="503: busy")
    with pytest.raises(NotSupported):
        promised.judged(busy)


def test_a_wrong_text_is_not_late() -> None:
    expected = Expected((("abcdef", ""),), (("eos", None),), (7,), RECITAL)
    late = answered("abcde", "f", reasoning="", end=("eos", None))
    assert "withheld" not in judge(late, expected, stream=False)
    assert judge(late, expected, stream=True)["withheld"] is not None
    assert judge(answered("abcdef", reasoning=""), expected, stream=True)["withheld"] is None
    assert "withheld" not in judge(answered("abcd", reasoning=""), expected, stream=True)


def test_a_long_text_is_shown_around_its_first_difference() -> None:
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


# The text "abcdef" comes in three tokens of two characters. One character may be sent after the first token, two after
# the second, and all six after the third.
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
    (200, (100, 100), "one of 2 chunks has the text of 100 of 200 tokens"),
    (320, (*[1] * 160, 160), "one of 161 chunks has the text of 160 of 320 tokens"),
    (320, (*[1] * 280, 40), None),
    (200, (40,) * 5, "text comes 40 tokens at once"),
    (200, (8,) * 25, None),
    (99, (98, 1), None),
    (200, (), None),
])  # fmt: skip
def test_a_chunk_of_half_the_tokens_is_no_stream(tokens: int, sizes: tuple[int, ...], fault: str | None) -> None:
    every = tuple(range(1, tokens + 1))
    assert lateness(["x" * size for size in sizes], Recital("x" * tokens, tokens, "eos", None, every, every)) == fault


def refusal(api: Api, case: str, said: str, status: int = 400) -> tuple[Single, Answer]:
    answer = Answer(Wire(status, "", bytearray(said.encode())), error=f"{status}: {said}")
    return single(api, False, KNOWN[case]), answer


@pytest.mark.parametrize("status", [400, 404, 405, 413, 415, 422, 501])
def test_a_refusal_says_that_it_is_the_stops(status: int) -> None:
    asked, answer = refusal(BY_NAME["openai-chat"], "split", "Stops are not known", status)
    with pytest.raises(NotSupported, match=f"{status}: Stops"):
        asked.judged(answer)
    asked, answer = refusal(BY_NAME["openai-chat"], "split", "no", status)
    assert asked.judged(answer) == {"refusal": f"the refusal does not name the stops as its reason: {status}: no"}


def test_a_request_without_stops_may_be_refused_for_anything() -> None:
    asked, answer = refusal(BY_NAME["openai-chat"], "no-stop", "no")
    with pytest.raises(NotSupported, match="400: no"):
        asked.judged(answer)


@pytest.mark.parametrize("status", [None, 200, 401, 409, 500, 503])
def test_what_is_no_refusal_is_judged(status: int | None) -> None:
    asked = single(BY_NAME["openai-chat"], False, KNOWN["split"])
    assert asked.judged(Answer(Wire(status), error="why")) == {"answers": "no answer: why"}


TELL_ALL = {"openai-chat", "openai-completions", "generate"}


@pytest.mark.parametrize("api", BY_NAME)
def test_what_an_api_can_tell_of_an_end(api: str) -> None:
    told = BY_NAME[api].reported
    assert [told(end) for end in (("eos", None), ("length", None))] == [("eos", None), ("length", None)]
    assert told(END) == (END if api in TELL_ALL | {"anthropic"} else ("eos", None))
    assert told(("stop_token", 5)) == (("stop_token", 5) if api in TELL_ALL else ("eos", None))


def test_what_is_expected_of_a_stop() -> None:
    expected = single(BY_NAME["openai-chat"], True, KNOWN["split"]).expected
    assert expected.answers == (("This is the ", ""),)
    assert expected.ends == (("stop_sequence", "END"),)
    assert expected.recital is not None
    assert expected.tokens == (expected.recital.tokens,)
    assert (expected.text, expected.finish) == ("text", "finish-reason")


def test_what_is_expected_of_a_stop_token() -> None:
    made = single(BY_NAME["openai-chat"], True, KNOWN["ids"])
    ids = Reciter().token_ids("count")
    assert made.expected.ends == (("stop_token", ids[8]),)
    assert made.expected.tokens == (9, 8)
    assert made.expected.text == "stop-token-ids"
    assert made.request.max_tokens == KNOWN["ids"].max_tokens
    assert made.request.stops == {"stop_token_ids": [ids[8], ids[10]]}


@pytest.mark.parametrize(("case", "text", "finish"), [
    ("nested-in-one-token", "competing-stops", "finish-reason"), ("stop-in-the-last-token", "text", "same-step"),
    ("limit-on-the-eos", "text", "same-step"), ("limit-before-the-eos", "text", "finish-reason"),
    ("string-5-id-5", "competing-stops", "finish-reason"), ("string-6-id-5", "stop-token-ids", "finish-reason"),
])  # fmt: skip
def test_the_rules_that_an_answer_tests(case: str, text: str, finish: str) -> None:
    expected = single(BY_NAME["openai-chat"], True, KNOWN[case]).expected
    assert (expected.text, expected.finish) == (text, finish)


def test_reasoning_is_apart_or_together_or_left_out() -> None:
    expected = single(BY_NAME["openai-chat"], True, KNOWN["think"]).expected
    assert expected.answers == (
        ("It is 5 or 6 ", "Is it END?"),
        ("<think>Is it END?</think>It is 5 or 6 ", ""),
        ("It is 5 or 6 ", ""),
    )
    assert expected.recital is None  # chunks are not compared: a server may hold text that may begin a marker


def test_reasoning_without_an_end_is_reasoning() -> None:
    expected = single(BY_NAME["openai-chat"], True, KNOWN["think-unclosed"]).expected
    (answer, reasoning), (together, _), _ = expected.answers
    assert f"{answer}<think>{reasoning}" == together
    assert reasoning != ""
