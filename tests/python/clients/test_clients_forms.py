"""What stands around the text in each API: reasoning, calls, refusals, repeats, usage, and other servers' ways."""

from __future__ import annotations

from typing import Any

import pytest
import wire
from apis import APIS
from objects import MAKERS, field, text_of
from replay import Recording, Replay

from stopscan.clients import scan_events, truncate_response

BY_NAME = {api.name: api for api in APIS}
MIXED = [("reasoning", ["think END", "."]), ("text", ["one E", "N"]), ("call", ["{END}"])]


def kinds(events: Any) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


@pytest.mark.parametrize("api", sorted(wire.MIXED))
def test_reasoning_and_calls_are_never_scanned_and_held_text_comes_before_a_call(server: Replay, api: str) -> None:
    events = wire.MIXED[api](MIXED)
    stream = scan_events(BY_NAME[api].open(server.url, server.record(Recording(events))), "END")
    out = list(stream)
    assert stream.matches == {}
    places = {mark: [n for n, event in enumerate(out) if mark in str(event)] for mark in ("think END", "{END}")}
    texts = [(n, text) for n, event in enumerate(out) if (text := BY_NAME[api].text(event))]
    assert [text for _, text in texts] == ["one ", "EN"]
    assert max(places["think END"][:1]) < texts[0][0]
    assert texts[1][0] < min(places["{END}"])


@pytest.mark.parametrize("api", sorted(wire.MIXED))
def test_a_stop_in_the_text_ends_the_answer_before_the_call(server: Replay, api: str) -> None:
    """What comes after it would be made up: datarobot-genai#287."""
    events = wire.MIXED[api]([("reasoning", ["so"]), ("text", ["one E", "ND"]), ("call", ["{}"]), ("text", ["two"])])
    for drain in (False, True):
        stream = scan_events(BY_NAME[api].open(server.url, server.record(Recording(events))), "END", drain=drain)
        out = list(stream)
        assert BY_NAME[api].read(out) == "one "
        assert "get_weather" not in repr(out)
        assert len([event for event in out if BY_NAME[api].finish(event)]) == 1
        # The usage is the API's own, and there when its stream was read to the end.
        assert (str(wire.TOKENS) in repr(out)) == (drain and api != "chat")


LAST: dict[str, Any] = {
    "chat": lambda text: wire.chat_chunk([{**wire.chat_choice(content=text), "finish_reason": "length"}]),
    "completions": lambda text: wire.completions_chunk([wire.completions_choice(text, finish_reason="length")]),
    "gemini": lambda text: wire.gemini_chunk([wire.candidate({"text": text}, finishReason="MAX_TOKENS")]),
    "ollama": lambda text: wire.ollama_line(done=True, message={"role": "assistant", "content": text}),
    "generate": lambda text: wire.ollama_line(done=True, response=text),
}


@pytest.mark.parametrize("api", LAST)
def test_a_last_event_may_bring_text(api: str) -> None:
    """Its text is held for no time, and its reason becomes the stop's."""
    alone = LAST[api]("one EN")
    assert [id(event) for event in scan_events([alone], "END")] == [id(alone)]
    begin = next(event for event in wire.WIRES[api](["one E"]) if text_of(api, event))
    assert [text_of(api, event) for event in scan_events([begin, LAST[api]("N")], "END")] == ["one ", "EN"]
    for drain in (False, True):
        stream = scan_events([begin, LAST[api]("ND two")], "END", drain=drain)
        out = list(stream)
        assert [text_of(api, event) for event in out] == ["one ", ""]
        assert [bool(BY_NAME[api].finish(event)) for event in out] == [False, True]
        assert BY_NAME[api].finish(out[-1]).reason != "length"
        assert stream.matches[0].offset == 4


WITHOUT_TEXT: dict[str, list[Any]] = {
    "chat": [
        [],
        [{"index": 0, "delta": None}],
        [{"index": 0, "delta": {}}],
        [{"index": 0}],
        [wire.chat_choice(content="")],
    ],
    "completions": [[], [{"index": 0, "text": None}], [{"index": 0, "text": ""}], [{"index": 0}]],
    "gemini": [[], [{}], [{"content": None}], [{"content": {}}], [wire.candidate()], [wire.candidate({"text": ""})]],
}


@pytest.mark.parametrize("api", WITHOUT_TEXT)
def test_events_without_text_pass_between_two_with_some(api: str) -> None:
    field_of = "candidates" if api == "gemini" else "choices"
    one, two, *_ = [event for event in wire.WIRES[api](["one E", "ND"]) if text_of(api, event)]
    for choices in (*WITHOUT_TEXT[api], None):
        event = {**one, field_of: choices}
        stream = scan_events([one, event, two], "END")
        out = list(stream)
        assert out[1] is event, choices
        assert stream.matches[0].offset == 4


def test_ollama_lines_without_text_pass_between_two_with_some() -> None:
    for lines in (
        [{"message": {"content": text}} for text in ("one E", None, "", "ND")],
        [{"response": text} for text in ("one E", None, "", "ND")],
        [{"message": message} for message in ({"content": "one E"}, {}, {"role": "assistant"}, {"content": "ND"})],
    ):
        events = [wire.ollama_line(**line) for line in lines]
        stream = scan_events(events, "END")
        out = list(stream)
        assert [id(event) for event in out[1:3]] == [id(event) for event in events[1:3]]
        assert stream.matches[0].offset == 4


def test_ollama_a_call_ends_the_text_of_its_own_line() -> None:
    calls = [{"function": {"name": "f", "arguments": {}}}]
    first, last = ({"message": {"content": text, "tool_calls": calls}} for text in ("one EN", "one END"))
    events = [wire.ollama_line(**line) for line in (first, {"message": {"content": "D"}})]
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]
    for drain in (False, True):
        cut, *_ = scan_events([wire.ollama_line(**last)], "END", drain=drain)
        assert cut["message"] == {"content": "one ", "tool_calls": None}


def test_chat_a_delta_with_text_and_a_call_gives_all_its_text() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for called in ({"tool_calls": [call]}, {"function_call": call["function"]}):
        both = wire.chat_chunk([wire.chat_choice(content="one EN", **called)])
        assert [id(event) for event in scan_events([both], "END")] == [id(both)]
        cut, _ = scan_events([wire.chat_chunk([wire.chat_choice(content="one END", **called)])], "END")
        assert cut["choices"][0]["delta"] == {"content": "one ", **dict.fromkeys(called)}


def test_chat_text_on_both_sides_of_a_call_is_two_texts() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    deltas: list[dict[str, Any]] = [{"content": "EN"}, {"tool_calls": [call]}, {"content": "D END"}]
    stream = scan_events([wire.chat_chunk([wire.chat_choice(**delta)]) for delta in deltas], "END")
    told = [event["choices"][0]["delta"].get("content") for event in stream]
    assert told == ["", "EN", None, "D ", None]
    assert stream.matches[0].offset == 4, "counted in all the text of the choice"


def test_chat_a_visible_stop_does_not_reach_over_a_call() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for called in ({"tool_calls": [call]}, {"function_call": {"name": "f"}}):
        for deltas in ([{"content": "EN"}, called, {"content": "D"}], [{"content": "EN", **called}, {"content": "D"}]):
            events = [wire.chat_chunk([wire.chat_choice(**delta)]) for delta in deltas]
            out = [id(event) for event in scan_events(events, "END", include_stop=True)]
            assert out == [id(event) for event in events]


def test_chat_refusals_are_not_scanned() -> None:
    events = [wire.chat_chunk([wire.chat_choice(refusal=word)]) for word in ("I END", " here")]
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]


def test_chat_a_last_chunk_with_text_and_reason(server: Replay) -> None:
    """One choice says both: its reason becomes the stop's, and nothing follows."""
    last = wire.chat_chunk([{**wire.chat_choice(content="ND two"), "finish_reason": "length"}])
    events = [*wire.chat(["one E"], usage=False)[:-1], last]
    out = list(scan_events(events, "END"))
    assert out[-1]["choices"] == [
        {**wire.chat_choice(content=""), "finish_reason": "stop", "matched_stop": "END"},
    ]
    assert len(out) == len(events)
    held = [
        *wire.chat(["one"], usage=False)[:-1],
        wire.chat_chunk([{**wire.chat_choice(content=" E"), "finish_reason": "stop"}]),
    ]
    assert list(scan_events(held, "END"))[-1] is held[-1], "held for no time"


@pytest.mark.parametrize("word", ["", "null", "None"])
def test_chat_servers_that_always_say_a_reason(word: str) -> None:
    """sglang#3912, KoboldCpp: it is no end, and the text is held on."""
    chunks = [wire.chat_chunk([{**wire.chat_choice(content=text), "finish_reason": word}]) for text in ("E", "ND")]
    stream = scan_events(chunks, "END")
    assert [event["choices"][0]["delta"].get("content") for event in stream] == ["", "", None]


def test_chat_a_choice_that_vllm_ended_by_a_token_says_what_ended_it_here() -> None:
    choice = {**wire.chat_choice(content="one END"), "finish_reason": "stop", "stop_reason": 151645}
    (event,) = scan_events([wire.chat_chunk([choice])], "END")
    assert event["choices"][0]["stop_reason"] is None
    assert event["choices"][0]["matched_stop"] == "END"


def test_completions_a_last_chunk_with_text_and_reason() -> None:
    held = wire.completions_chunk([wire.completions_choice("one E", finish_reason="length")])
    assert [id(event) for event in scan_events([held], "END")] == [id(held)], "held for no time"
    last = wire.completions_chunk([{**wire.completions_choice("END", finish_reason="stop"), "stop_reason": 151645}])
    (event,) = scan_events([last], "END")
    (choice,) = event["choices"]
    assert (choice["text"], choice["matched_stop"], choice["stop_reason"]) == ("", "END", None)
    empty = {"index": 0, "text": None, "finish_reason": "stop"}
    assert list(scan_events([wire.completions_chunk([empty])], "END")) == [wire.completions_chunk([empty])]


def test_chat_an_old_function_call_ends_the_text_before_it() -> None:
    deltas: list[dict[str, Any]] = [{"content": "EN"}, {"function_call": {"name": "f"}}, {"content": "D"}]
    stream = scan_events([wire.chat_chunk([wire.chat_choice(**delta)]) for delta in deltas], "END")
    assert [event["choices"][0]["delta"].get("content") for event in stream] == ["", "EN", None, "D"]
    assert stream.matches == {}


def test_ollama_text_that_comes_by_itself_says_nothing_else() -> None:
    times = [f"{name}_duration" for name in ("total", "load", "prompt_eval", "eval")]
    others = dict.fromkeys([*times, "prompt_eval_count", "eval_count", "done_reason", "context", "thinking"], 5)
    for text, field_of in (
        ({"message": {"role": "assistant", "content": "E"}}, "message"),
        ({"response": "E"}, "response"),
    ):
        source = {**text, "message": {**text["message"], "thinking": "hm"}} if field_of == "message" else text
        _, piece, _ = scan_events([{**source, "done": False, **others}, {**text, field_of: None, "done": True}], "END")
        assert piece == {**text, "done": False, **dict.fromkeys(others)}


def test_chat_usage_in_every_chunk_is_told_as_far_as_it_goes() -> None:
    """vLLM's continuous_usage_stats: what is said with the text stays, the closing chunk makes up none."""
    counts = [{"prompt_tokens": 3, "completion_tokens": n, "total_tokens": 3 + n} for n in (1, 2)]
    texts = ("one E", "ND")
    events = [wire.chat_chunk([wire.chat_choice(content=t)], usage=u) for t, u in zip(texts, counts, strict=True)]
    assert [event["usage"] for event in scan_events(events, "END")] == [*counts, None]


def test_chat_openrouters_usage_in_a_choice_behind_the_end_is_told_when_the_stream_is_read_on() -> None:
    """speakeasy-api/gram#921. What every chunk says of the usage before the end goes with its text."""
    counts = [{"prompt_tokens": 3, "completion_tokens": n, "total_tokens": 3 + n} for n in (1, 2, 3)]
    choices = [wire.chat_choice(content="one END"), wire.chat_choice(content="more"), wire.chat_choice(0, "length")]
    events = [wire.chat_chunk([choice], usage=u) for choice, u in zip(choices, counts, strict=True)]
    events += [wire.chat_chunk([wire.chat_choice(content="")], **usage) for usage in ({}, {"usage": counts[-1]})]
    out = list(scan_events(events, "END", drain=True))
    assert [event["usage"] for event in out] == [counts[0], counts[2], counts[2]]
    assert out[-1] == {**events[-1], "choices": []}


def test_chat_mistral_content_in_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "END"}]}
    chunks = [[thought], [{"type": "text", "text": "one E"}, thought], [{"type": "text", "text": "ND"}]]
    stream = scan_events([wire.chat_chunk([wire.chat_choice(content=content)]) for content in chunks], "END")
    told = [event["choices"][0]["delta"].get("content") for event in stream]
    assert told == [[thought], [{"type": "text", "text": "one "}, thought], [{"type": "text", "text": ""}], None]
    whole = wire.chat_whole([thought, {"type": "text", "text": "one "}, {"type": "text", "text": "END two"}])
    cut = truncate_response(whole, "END")["choices"][0]["message"]["content"]
    assert cut == [thought, {"type": "text", "text": "one "}, {"type": "text", "text": ""}]


def test_chat_mistral_parts_of_reasoning_pass() -> None:
    """And parts of other kinds, and those of text that have none: X is not in them."""
    thought: list[Any] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "X"}]},
        {"type": "note", "text": "X"},
    ]
    empty: list[Any] = [{"type": "text"}, {"type": "text", "text": None}]
    events = [wire.chat_chunk([wire.chat_choice(content=content)]) for content in (thought, empty, "one", [])]
    assert [id(event) for event in scan_events(events, "X")] == [id(event) for event in events]


def test_ollama_thinking_passes_and_the_counts_stay() -> None:
    events = wire.ollama_mixed([("reasoning", ["END"]), ("text", ["one END"])])
    out = list(scan_events(events, "END", drain=True))
    assert out[0] is events[0]
    assert out[-1] == {**events[-1], "done_reason": "stop"}


def test_anthropic_the_start_of_a_block_may_have_text() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "one E"}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ND"}}
    out = list(scan_events([wire.anthropic_start(), start, delta], "END"))
    assert out[1]["content_block"] == {"type": "text", "text": "one "}
    assert kinds(out[2:]) == ["content_block_delta", "content_block_stop", "message_delta", "message_stop"]
    assert out[-2]["usage"] == {"output_tokens": None}
    out = list(scan_events([start, {"type": "content_block_stop", "index": 0}], "END"))
    assert out[1] == {**delta, "delta": {"type": "text_delta", "text": "E"}}


def test_anthropic_a_start_with_text_that_is_not_touched_is_the_very_object() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "one"}}
    assert next(scan_events([start], "END")) is start


def test_anthropic_a_block_of_another_type_is_not_scanned() -> None:
    start, delta = {"type": "note", "text": "a END"}, {"type": "note_delta", "text": "b END"}
    events = [wire.anthropic_start(), *wire.anthropic_block(0, start, [delta]), *wire.anthropic_end()]
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]


def test_anthropic_what_is_between_two_deltas_does_not_part_them() -> None:
    """Signs of life, and another block: each has the text of its own index."""
    one, two = (
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        for text in ("one EN", "D")
    )
    other = [{"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t"}}]
    other += [{"type": "content_block_stop", "index": 1}]
    for between in ([{"type": "ping"}], other):
        stream = scan_events([one, *between, two], "END")
        assert [text_of("anthropic", event) for event in stream][:2] == ["one ", None]
        assert stream.matches[0].offset == 4
    both = [one, {**two, "index": 1, "delta": {"type": "text_delta", "text": "E"}}]
    for end in ([], wire.anthropic_end()):
        out = list(scan_events([*both, *end], "END"))
        assert "".join(text_of("anthropic", event) or "" for event in out) == "one ENE"


def test_anthropic_a_message_that_ends_without_the_end_of_its_block() -> None:
    events = [e for e in wire.anthropic(["one E"]) if e["type"] != "content_block_stop"]
    out = list(scan_events(events, "END"))
    assert [text_of("anthropic", e) for e in out if e["type"] == "content_block_delta"] == ["one ", "E"]
    assert kinds(out[-3:]) == ["content_block_delta", "message_delta", "message_stop"]


def test_anthropic_reading_on_without_the_end_of_the_block_closes_it() -> None:
    events = [e for e in wire.anthropic(["one END"]) if e["type"] != "content_block_stop"]
    out = list(scan_events(events, "END", drain=True))
    assert kinds(out[-3:]) == ["content_block_stop", "message_delta", "message_stop"]
    assert out[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert out[-2]["usage"] == {"output_tokens": wire.TOKENS}


def test_anthropic_reading_on_gives_the_apis_own_events_and_of_other_blocks_none() -> None:
    start, text, end = wire.anthropic_text(0, ["one END"])
    other = wire.anthropic_text(1, ["two"])
    last, stop = wire.anthropic_end()
    for events in ([start, text, end, *other, last, stop], [start, text, *other, end, last, stop]):
        out = list(scan_events(events, "END", drain=True))
        assert kinds(out) == ["content_block_start", "content_block_delta", *kinds([end, last, stop])]
        assert out[2] is end
        assert out[4] is stop
    late = list(scan_events([start, text, last, end, stop], "END", drain=True))
    assert kinds(late[2:]) == kinds([end, last, stop])


def test_anthropic_every_message_delta_says_the_stop_when_the_stream_is_read_on() -> None:
    """The API may send several: the last of them counts for who accumulates."""
    *events, last, stop = wire.anthropic(["one END"])
    out = list(scan_events([*events, last, last, stop], "END", drain=True))
    assert [event["delta"]["stop_reason"] for event in out if event["type"] == "message_delta"] == ["stop_sequence"] * 2
    assert kinds(out[-4:]) == kinds([events[-1], last, last, stop])


def test_anthropic_the_closing_events_are_the_clients_objects_and_name_no_usage(server: Replay) -> None:
    out = list(
        scan_events(BY_NAME["anthropic"].open(server.url, server.record(Recording(wire.anthropic(["END"])))), "END")
    )
    assert [type(event).__name__ for event in out[-3:]] == [
        "RawContentBlockStopEvent",
        "RawMessageDeltaEvent",
        "RawMessageStopEvent",
    ]
    assert (out[-2].delta.stop_reason, out[-2].delta.stop_sequence) == ("stop_sequence", "END")
    assert out[-2].usage.output_tokens is None


def test_gemini_parts_of_one_event() -> None:
    """Text may go on in the next part; a call ends it, and what follows the call is another text."""
    call = {"functionCall": {"name": "f", "args": {}}}
    thought = {"text": "END", "thought": True}
    event = wire.gemini_chunk([wire.candidate(thought, {"text": "a EN"}, {"text": "x"}, call, {"text": "b END"})])
    for made in (event, MAKERS["gemini"](event)):
        stream = scan_events([made], "END")
        first, last = stream
        parts = field(first, "candidates", 0, "content", "parts")
        assert [field(part, "text") for part in parts] == ["END", "a EN", "x", None, "b "]
        assert field(last, "candidates", 0, "content", "parts", 0, "text") == ""
        assert stream.matches[0].offset == 7
    for after in ([], [call]):
        split = wire.gemini_chunk([wire.candidate({"text": "a E"}, {"text": "ND b"}, *after)])
        stream = scan_events([split], "END")
        assert field(next(stream), "candidates", 0, "content", "parts") == [{"text": "a "}, {"text": ""}]
        assert stream.matches[0].offset == 2


def test_gemini_a_thought_after_a_call_does_not_join_the_texts_around_it() -> None:
    parts = [{"text": "EN"}, {"functionCall": {"name": "f"}}, {"text": "hm", "thought": True}, {"text": "D"}]
    stream = scan_events([wire.gemini_chunk([wire.candidate(*parts)])], "END")
    assert "D" in repr(list(stream))
    assert stream.matches == {}


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_choice_of_text_that_comes_by_itself_is_like_the_others(api: str) -> None:
    choice = {"chat": lambda text: wire.chat_choice(content=text), "completions": wire.completions_choice}[api]
    begin, *_, end = [event for event in wire.WIRES[api](["one EN"]) if event["choices"]][-2:]
    _, piece, last = scan_events([begin, end], "END")
    assert piece == {**begin, "choices": [choice("EN")]}
    assert last is end


def test_gemini_text_that_comes_by_itself_says_no_usage() -> None:
    call = wire.gemini_chunk([wire.candidate({"functionCall": {"name": "f"}})], 2)
    out = list(scan_events([wire.gemini_chunk([wire.candidate({"text": "one E"})], 1), call], "END"))
    assert [event["usageMetadata"] and event["usageMetadata"]["candidatesTokenCount"] for event in out] == [1, None, 2]
    assert out[1]["candidates"][0]["content"]["parts"] == [{"text": "E"}]


def test_gemini_a_last_event_of_many_parts_when_the_stream_is_read_on() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    last = wire.gemini_chunk(
        [wire.candidate({"text": "x"}, call, {"text": "y"}, finishReason="MAX_TOKENS")], wire.TOKENS
    )
    out = list(scan_events([wire.gemini_chunk([wire.candidate({"text": "END"})]), last], "END", drain=True))
    assert out[1]["candidates"][0]["content"]["parts"] == [{"text": ""}, {"text": ""}]
    assert out[1]["candidates"][0]["finishReason"] == "STOP"
    assert out[1]["usageMetadata"] is last["usageMetadata"]


def test_gemini_a_last_event_of_many_parts_is_rewritten() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    last = wire.gemini_chunk([wire.candidate({"text": "x END"}, call, {"text": "y"}, finishReason="MAX_TOKENS")], 7)
    (out,) = scan_events([last], "END")
    assert out["candidates"] == [wire.candidate({"text": "x "}, finishReason="STOP")]
    assert out["usageMetadata"] is last["usageMetadata"]


def test_gemini_the_logprobs_of_an_event_of_many_parts() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    chosen = [{"token": token, "logProbability": -1.0} for token in ("a", " E", "ND", "b")]
    event = wire.gemini_chunk([wire.candidate({"text": "a"}, call, {"text": " END"}, {"text": "b"})])
    event["candidates"][0]["logprobsResult"] = {"chosenCandidates": chosen}
    first, _ = scan_events([event], "END")
    assert first["candidates"][0]["logprobsResult"] == {"chosenCandidates": chosen[:2]}
    first, _ = scan_events([MAKERS["gemini"](event)], "END")
    assert [entry.token for entry in first.candidates[0].logprobs_result.chosen_candidates] == ["a", " E"]
    assert next(scan_events([event], "never")) is event


def test_gemini_a_call_that_begins_an_event_ends_the_text_of_the_last() -> None:
    call = {"functionCall": {"name": "f"}}
    parts: list[Any] = [[{"text": "EN"}], [call, {"text": "D EN"}], [{"text": "x"}, call, {"text": "D"}]]
    stream = scan_events([wire.gemini_chunk([wire.candidate(*some)]) for some in parts], "END")
    told = [event["candidates"][0]["content"]["parts"] for event in stream]
    assert told == [[{"text": ""}], [{"text": "EN"}], [call, {"text": "D "}], [{"text": "ENx"}, call, {"text": "D"}]]
    assert stream.matches == {}
    joined = wire.gemini_chunk([wire.candidate({"text": "a"}, call, call, {"text": "E"}, {"text": "ND"})])
    stream = scan_events([joined], "END")
    assert next(stream)["candidates"][0]["content"]["parts"] == [{"text": "a"}, call, call, {"text": ""}, {"text": ""}]
    assert stream.matches[0].offset == 1


def test_gemini_a_last_event_with_a_thought_and_text() -> None:
    thought = {"text": "END", "thought": True}
    event = wire.gemini_chunk([wire.candidate(thought, {"text": "one E"}, finishReason="STOP")])
    assert next(scan_events([event], "END")) is event


def test_gemini_text_that_comes_by_itself_is_the_models() -> None:
    call = {"parts": [{"functionCall": {"name": "f"}}]}
    for role, index in (({"role": "model"}, {"index": 1}), ({}, {}), ({"role": "user"}, {"index": 0})):
        contents = ({**role, "parts": [{"text": "E"}]}, call)
        events = [wire.gemini_chunk([{"content": content, **index}]) for content in contents]
        for made in (events, [MAKERS["gemini"](event) for event in events]):
            _, piece, _ = scan_events(made, "END")
            assert field(piece, "candidates", 0, "content", "role") == role.get("role", "model")
            assert field(piece, "candidates", 0, "index") == index.get("index")
            if isinstance(piece, dict):
                assert piece["candidates"][0].keys() == {"content", *index}


def test_gemini_a_last_event_without_content_when_the_stream_is_read_on() -> None:
    last = {"candidates": [{"index": 0, "finishReason": "MAX_TOKENS"}], "usageMetadata": {"totalTokenCount": 9}}
    first = wire.gemini_chunk([wire.candidate({"text": "END"})])
    for events in ([first, last], [MAKERS["gemini"](event) for event in (first, last)]):
        out = list(scan_events(events, "END", drain=True))
        assert len(out) == 2
        assert "STOP" in repr(out[-1])
        assert "9" in repr(out[-1])


def test_chat_a_last_chunk_without_a_delta_when_the_stream_is_read_on() -> None:
    last = wire.chat_chunk([{"index": 0, "delta": None, "finish_reason": "length"}])
    out = list(scan_events([wire.chat_chunk([wire.chat_choice(content="END")]), last], "END", drain=True))
    assert out[-1]["choices"] == [{"index": 0, "delta": None, "finish_reason": "stop", "matched_stop": "END"}]


def test_gemini_held_text_comes_before_a_call_of_the_same_event() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    event = wire.gemini_chunk([wire.candidate({"text": "EN"}, call, {"text": "D"})])
    assert list(scan_events([event], "END")) == [event], "two texts: no stop, and nothing is held at the call"
    out = list(
        scan_events(
            [wire.gemini_chunk([wire.candidate({"text": "EN"})]), wire.gemini_chunk([wire.candidate(call)])], "END"
        )
    )
    assert [field(e, "candidates", 0, "content", "parts", 0) for e in out] == [{"text": ""}, {"text": "EN"}, call]


def test_gemini_signatures_stay_with_their_parts() -> None:
    event = wire.gemini_chunk([wire.candidate({"text": "one END", "thoughtSignature": "c2ln"})])
    first, _ = scan_events([MAKERS["gemini"](event)], "END")
    part = first.candidates[0].content.parts[0]
    assert (part.text, part.thought_signature) == ("one ", b"sig")


def test_gemini_the_reason_is_of_the_clients_own_kind(server: Replay) -> None:
    out = list(scan_events(BY_NAME["gemini"].open(server.url, server.record(Recording(wire.gemini(["END"])))), "END"))
    assert out[-1].candidates[0].finish_reason.name == "STOP"
    assert out[-1].text == ""
    assert out[-1].usage_metadata is None
    assert (out[-1].model_version, out[-1].response_id) == ("m", "r")


def test_gemini_dicts_of_the_python_client_have_other_names() -> None:
    dumped = [MAKERS["gemini"](event).model_dump(exclude_none=True) for event in wire.gemini(["one END"])]
    out = list(scan_events(dumped, "END"))
    assert out[-1]["candidates"][0]["finish_reason"] == "STOP"
    assert "usage_metadata" in out[0]


def test_bedrock_events_say_what_they_did_beside_the_text() -> None:
    events = wire.bedrock(["E", "ND"])
    events[4]["messageStop"]["additionalModelResponseFields"] = {"x": 1}
    closing = [events[3], {"messageStop": {"stopReason": "stop_sequence"}}]
    cut = {"contentBlockDelta": {"delta": {"text": ""}, "contentBlockIndex": 0}}
    assert list(scan_events(events, "END")) == [events[0], cut, cut, *closing]
    last = {"messageStop": {"stopReason": "stop_sequence", "additionalModelResponseFields": {"x": 1}}}
    assert list(scan_events(events, "END", drain=True)) == [events[0], cut, cut, events[3], last, events[-1]]


def test_bedrock_an_event_without_a_name_passes() -> None:
    first, text, *rest = wire.bedrock(["one END"])
    out = list(scan_events([first, {}, text, {}, *rest], "END", drain=True))
    assert out[1] == out[3] == {}
    assert len(out) == 4 + len(rest)


def test_bedrock_metadata_comes_when_the_stream_is_read_on() -> None:
    events = wire.bedrock(["one END", "more"])
    out = list(scan_events(events, "END", drain=True))
    assert [next(iter(event)) for event in out[-3:]] == ["contentBlockStop", "messageStop", "metadata"]
    assert out[-1] is events[-1]
    assert out[-2] == {"messageStop": {"stopReason": "stop_sequence"}}
