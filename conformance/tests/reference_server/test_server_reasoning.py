"""The server separates reasoning, calls and answer. Stops fire only in the answer, unless a request says otherwise."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from server_harness import Parts

from stopscan import StopSet
from stopscan.regions import segments_of
from stopscan.segments import FORMATS, split

THINK = "<think>Is it END?</think>It is 5 or 6 END here"
HARMONY = (
    "<|channel|>analysis<|message|>Is it END?<|end|><|start|>assistant<|channel|>commentary to=x<|message|>tool<|call|>"
    "<|start|>assistant<|channel|>final<|message|>It is 5 or 6 END here"
)
CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "5 END"}}\n</tool_call>'


@pytest.fixture(params=["think", "harmony"])
def speaker(request: pytest.FixtureRequest) -> tuple[Any, str]:
    """Clients that are connected to a server, and the name of the script that its model recites."""
    name = {"think": "client", "harmony": "harmony"}[request.param]
    return request.getfixturevalue(name), request.param


def ask(client: Any, script: str, **options: Any) -> tuple[str, str | None, str]:
    """Returns the answer, the reasoning, and the stop that fired."""
    reply = client.openai.chat.completions.create(
        model=client.model, messages=[{"role": "user", "content": f"[{script}]"}], extra_body=options
    )
    (choice,) = reply.choices
    return choice.message.content, getattr(choice.message, "reasoning_content", None), choice.matched_stop


def test_stops_count_in_the_answer(speaker: tuple[Any, str]) -> None:
    assert ask(*speaker, stop=["END"]) == ("It is 5 or 6 ", "Is it END?", "END")


def test_stops_count_everywhere_if_asked(speaker: tuple[Any, str]) -> None:
    assert ask(*speaker, stop=["END"], protect=[]) == ("", "Is it ", "END")


def test_stops_count_in_other_regions_if_asked(client: Any) -> None:
    assert ask(client, "think", stop=["END"], protect="tool_call") == ("", "Is it ", "END")


def test_a_marker_can_be_a_stop(client: Any) -> None:
    assert ask(client, "think", stop=["</think>"]) == ("", "Is it END?", "</think>")
    assert ask(client, "think", stop=["<think>"]) == ("", None, "<think>")


def test_patterns_are_stops(speaker: tuple[Any, str]) -> None:
    assert ask(*speaker, patterns=[r"\d or \d E"]) == ("It is ", "Is it END?", "5 or 6 E")


def test_stops_everywhere_leave_headers_alone(harmony: Any) -> None:
    answer = ask(harmony, "harmony", stop=["analysis", "assistant", "final", "5"], protect=[])
    assert answer == ("It is ", "Is it END?", "5")


def test_only_the_template_opens_the_reasoning(client: Any) -> None:
    reply = client.openai.chat.completions.create(
        model=client.model,
        messages=[{"role": "user", "content": "What does <think> mean? <think>[count]"}],
        extra_body={"stop": ["6"]},
    )
    assert reply.choices[0].message.content == "1, 2, 3 hello world 4, 5, "


def test_a_request_opens_it_too(client: Any) -> None:
    answer, reasoning, stop = ask(client, "think", stop=["END"], start_protected=True)
    assert (answer, reasoning, stop) == ("It is 5 or 6 ", "Is it END?", "END")


def test_reasoning_tokens_are_counted(client: Any) -> None:
    reply = client.openai.responses.create(model=client.model, input="[think]")
    assert reply.usage.output_tokens_details.reasoning_tokens == 6  # the markers do not count
    reply = client.openai.responses.create(model=client.model, input="[count]")
    assert reply.usage.output_tokens_details.reasoning_tokens == 0
    asked: Any = [{"role": "user", "content": "[think]"}]
    options = {"protect": ["Is", "?"]}
    reply = client.openai.chat.completions.create(model=client.model, messages=asked, extra_body=options)
    assert reply.usage.completion_tokens_details.reasoning_tokens == 4  # the markers in `protect` do not count either
    message = client.anthropic.messages.create(model=client.model, messages=asked, max_tokens=99)
    assert message.usage.output_tokens_details.thinking_tokens == 6


def test_reasoning_tokens_of_streams_are_counted(client: Any) -> None:
    *_, last = client.openai.responses.create(model=client.model, input="[think]", stream=True)
    assert last.response.usage.output_tokens_details.reasoning_tokens == 6
    asked: Any = [{"role": "user", "content": "[think]"}]
    usage = {"include_usage": True}
    *_, last = client.openai.chat.completions.create(
        model=client.model, messages=asked, stream=True, stream_options=usage
    )
    assert last.usage.completion_tokens_details.reasoning_tokens == 6
    with client.anthropic.messages.stream(model=client.model, messages=asked, max_tokens=99) as stream:
        assert stream.get_final_message().usage.output_tokens_details.thinking_tokens == 6


def test_responses_with_stops_in_both(harmony: Any) -> None:
    options = {"stop": "END", "protect": []}
    reply = harmony.openai.responses.create(model=harmony.model, input="[harmony]", extra_body=options)
    (item,) = reply.output
    assert (item.type, item.content[0].text, reply.status) == ("reasoning", "Is it ", "completed")


def told(form: str, deltas: list[str], stop: str | None = None) -> list[tuple[str, str]]:
    parts = Parts(FORMATS[form])
    segments = split(deltas, segments_of(StopSet(stop), FORMATS[form]))
    found = [part for segment in segments for part in parts.feed([segment])]
    joined: list[tuple[str, str]] = []
    for kind, text, call in [*found, *parts.end()]:
        text = f"{call.name} {call.arguments}" if call is not None else text
        if joined and joined[-1][0] == kind != "tool_call":
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined


LOOK = ("tool_call", "look {'at': '5 END'}")
EXPECTED = [
    ("hermes", THINK, [("reasoning", "Is it END?"), ("answer", "It is 5 or 6 END here")]),
    ("harmony", HARMONY, [("reasoning", "Is it END?"), ("answer", " to=x<|message|>toolIt is 5 or 6 END here")]),
    ("hermes", f"Let me see.\n{CALL}", [("answer", "Let me see.\n"), LOOK]),
    ("hermes", f"<think>Hm.{CALL}{CALL}", [("reasoning", "Hm."), LOOK, LOOK]),
    ("hermes", f"{CALL}\n{CALL} Done", [LOOK, ("answer", "\n"), LOOK, ("answer", " Done")]),
    ("hermes", '<tool_call>{"name": 5}</tool_call>!', [("answer", '<tool_call>{"name": 5}!')]),
    ("hermes", '<tool_call>{"name": "lo', [("answer", '<tool_call>{"name": "lo')]),
    ("hermes", "<tool_call>" + "[" * 100_000, [("answer", "<tool_call>" + "[" * 100_000)]),
]


@pytest.mark.parametrize(("form", "text", "expected"), EXPECTED, ids=range(len(EXPECTED)))
def test_parts(form: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert told(form, [text]) == expected


def test_stops_are_awake_after_reasoning_that_a_call_ended() -> None:
    assert told("hermes", [f"<think>END{CALL} Done. END more"], "END") == [
        ("reasoning", "END"),
        LOOK,
        ("answer", " Done. "),
    ]


@given(st.lists(st.integers(0, 300)), st.sampled_from(EXPECTED[:-1]))
def test_parts_in_any_cut(cuts: list[int], case: tuple[str, str, list[tuple[str, str]]]) -> None:
    form, text, expected = case
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert told(form, [text[i:j] for i, j in pairwise(edges)]) == expected
