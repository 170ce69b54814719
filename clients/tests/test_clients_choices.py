"""Several choices in one stream: each is scanned separately, and the stream ends when all of them have ended."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
import wire
from events import fed, machine_for
from hypothesis import given
from hypothesis import strategies as st
from reference import Reference

from stopscan import StopSet
from stopscan_clients import scan_events
from stopscan_clients.machine import ScanOptions
from stopscan_clients.request import choices_in

Step = tuple[int, str]  # the index of a choice, and its next text; an empty text ends the choice

steps = st.lists(st.tuples(st.integers(0, 2), st.text("abE", max_size=3)), min_size=1, max_size=12)
stops = st.lists(st.text("abE", min_size=1, max_size=3), max_size=3)


def chat_choice(step: Step) -> Any:
    return wire.chat_choice(step[0], content=step[1]) if step[1] else wire.chat_choice(step[0], "length")


def completions_choice(step: Step) -> Any:
    return wire.completions_choice(step[1], step[0], None if step[1] else "length")


def gemini_candidate(step: Step) -> Any:
    end = {} if step[1] else {"finishReason": "MAX_TOKENS"}
    return {**wire.candidate({"text": step[1]}, **end), "index": step[0]}


FORMS: dict[str, Any] = {
    "chat": (wire.chat_chunk, chat_choice, lambda c: c["delta"].get("content") or "", "choices", "finish_reason"),
    "completions": (wire.completions_chunk, completions_choice, lambda c: c["text"], "choices", "finish_reason"),
    "gemini": (
        wire.gemini_chunk,
        gemini_candidate,
        lambda c: "".join(part["text"] for part in c["content"]["parts"]),
        "candidates",
        "finishReason",
    ),
}


@pytest.mark.parametrize("api", FORMS)
@given(steps=steps, stop=stops, together=st.lists(st.booleans(), min_size=12, max_size=12))
def test_any_interleaving(api: str, steps: list[Step], stop: list[str], together: Any) -> None:
    chunk, make, text, choices, reason = FORMS[api]
    grouped: list[list[Step]] = []
    over: set[int] = set()
    for step, joined in zip(steps, together, strict=False):
        if step[0] in over:
            continue
        over |= {step[0]} if not step[1] else set()
        if grouped and joined and step[0] not in [index for index, _ in grouped[-1]]:
            grouped[-1].append(step)
        else:
            grouped.append([step])
    events = [chunk([make(step) for step in group]) for group in grouped]

    seen = {index for group in grouped for index, _ in group}
    machine = machine_for(events[0], ScanOptions(StopSet(stop), choices=len(seen)))
    oracles = {index: Reference(stop) for index in seen}
    expected, ends = dict.fromkeys(seen, ""), dict.fromkeys(seen, 0)
    for event, group in zip(events, grouped, strict=True):
        for index, delta in group:
            oracle = oracles[index]
            expected[index] += oracle.feed(delta) if delta else oracle.flush()
            ends[index] += bool((not delta and not oracle.match) or (oracle.match and not ends[index]))
        came = fed(machine, event)
        if machine._ends and event is events[-1]:
            came += [out for out, _ in machine.end()]
            expected = {index: text + oracles[index].flush() for index, text in expected.items()}
        for out in came:
            for choice in out[choices]:
                index = choice.get("index", 0)
                expected[index] = removed(expected[index], text(choice))
                ends[index] -= bool(choice.get(reason))
        # the machine keeps the event that ends a choice until it has seen the next event of that choice
        waits = {passage.place[0] for end in machine._ends for passage in end.passages}
        assert not any(text for index, text in expected.items() if index not in waits), "late or lost"
        assert not any(ends[index] for index in seen - waits if not oracles[index].match)
        done = [
            oracle.match or (index in [i for i, d in chain.from_iterable(grouped) if not d])
            for index, oracle in oracles.items()
        ]
        if machine.ended:
            assert all(done)
            break
    assert {index: match.sequence for index, match in machine.matches.items()} == {
        index: oracle.match.sequence for index, oracle in oracles.items() if oracle.match
    }


def removed(text: str, prefix: str) -> str:
    assert text.startswith(prefix), "other text, or too early"
    return text[len(prefix) :]


@pytest.mark.parametrize("api", FORMS)
def test_a_stream_ends_with_its_last_choice(api: str) -> None:
    chunk, make, text, choices, reason = FORMS[api]
    texts = [[(0, "one END"), (1, "two")], [(0, "never"), (1, " EN")], [(1, "D")], [(0, "no"), (1, "no")]]
    source = iter([chunk([make(step) for step in group]) for group in texts])
    stream = scan_events(source, "END")
    out = list(stream)
    outputs = [(c["index"], text(c), (c.get(reason) or "").lower()) for event in out for c in event[choices]]
    assert outputs == [(0, "one ", ""), (1, "two", ""), (0, "", "stop"), (1, " ", ""), (1, "", ""), (1, "", "stop")]
    assert {index: match.offset for index, match in stream.matches.items()} == {0: 4, 1: 4}
    assert len(list(source)) == 1, "the last one is not read"


@pytest.mark.parametrize("api", FORMS)
def test_choices_that_take_turns_have_texts_of_their_own(api: str) -> None:
    chunk, make, text, choices, _ = FORMS[api]
    steps = [(0, "E"), (1, "N"), (0, "N"), (1, "ED"), (0, "D"), (1, "x")]
    stream = scan_events([chunk([make(step)]) for step in steps], "END")
    outputs = [(c["index"], text(c)) for event in stream for c in event[choices]]
    assert "".join(text for index, text in outputs if index == 1) == "NEDx"
    assert "".join(text for index, text in outputs if index == 0) == ""
    assert {index: match.offset for index, match in stream.matches.items()} == {0: 0}


@pytest.mark.parametrize("api", FORMS)
def test_a_choice_without_an_index_is_the_first(api: str) -> None:
    chunk, make, text, choices, reason = FORMS[api]
    begin, end = make((0, "one E")), {**make((0, "ND")), reason: "STOP"}
    for choice in (begin, end):
        del choice["index"]
    stream = scan_events([chunk([begin]), chunk([end])], "END")
    assert [text(event[choices][0]) for event in stream] == ["one ", ""]
    assert stream.matches[0].offset == 4


@pytest.mark.parametrize("drain", [False, True], ids=["closed", "read on"])
def test_a_choice_that_a_stop_has_ended_ends_once(drain: bool) -> None:
    """A choice that a stop has ended has the finish reason of a stop. The API's finish reason for it is dropped,
    whether it comes together with the stop or later."""
    groups = [[(0, "one END"), (1, "two")], [(0, "")], [(0, "")], [(1, "")]]
    for at_once in (False, True):
        events = [wire.chat_chunk([chat_choice(step) for step in group]) for group in groups]
        if at_once:
            events[0]["choices"][0]["finish_reason"] = "length"
        out = list(scan_events(events, "END", drain=drain))
        ends = [(c["index"], c["finish_reason"]) for event in out for c in event["choices"] if c["finish_reason"]]
        assert ends == [(0, "stop"), (1, "length")]


def test_a_choice_that_ends_by_itself_counts_as_ended() -> None:
    groups = [[(0, "one END")], [(1, "two")], [(1, "")], [(0, "more")]]
    # Choice 1 begins before choice 0 ends. Otherwise the machine would end the stream with choice 0: it has not seen
    # the request, so it knows only the choices that have begun.
    groups.insert(0, [(0, "-"), (1, "-")])
    source = iter([wire.chat_chunk([chat_choice(step) for step in group]) for group in groups])
    out = list(scan_events(source, "END"))
    assert [c["finish_reason"] for event in out for c in event["choices"] if c["finish_reason"]] == ["stop", "length"]
    assert len(list(source)) == 1


def test_an_ended_choice_is_silent_while_another_runs() -> None:
    """When a stop has ended a choice, no more chunks of the choice are sent. They are not sent even if they have a
    usage, which each chunk has with vLLM's option continuous_usage_stats."""
    first, more = (wire.chat_chunk([wire.chat_choice(content=text)], usage={}) for text in ("one END", "more"))
    machine = machine_for(first, ScanOptions(StopSet("END"), choices=2))
    assert [len(machine.feed(first, first)), machine.feed(more, more)] == [2, []]
    assert not machine.ended
    both = wire.chat_chunk([wire.chat_choice(0, "length", content="END"), wire.chat_choice(1, content="END")])
    machine = machine_for(both, ScanOptions(StopSet("END"), drain=True))
    machine.feed(both, both)
    more["choices"][0]["index"] = 1
    assert machine.feed(more, more) == []


def test_no_match_reads_to_the_end_for_the_usage() -> None:
    events = wire.chat(["one"])
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]


@pytest.mark.parametrize(
    ("body", "choices"),
    [
        ({}, 1),
        ({"n": 3}, 3),
        ({"prompt": "one", "n": 2}, 2),
        ({"prompt": ["one"]}, 1),
        ({"prompt": ["one", "two"]}, 2),
        ({"prompt": ["one", "two"], "n": 2}, 4),
        ({"prompt": [[1, 2], [3]]}, 2),
        ({"prompt": [1, 2, 3]}, 1),  # the token ids of one prompt
        ({"prompt": []}, 1),
        ([], 1),
    ],
)
def test_how_many_choices_a_request_asks_for(body: Any, choices: int) -> None:
    assert choices_in(body) == choices
