"""Logprobs are cut with the text: the entry of a token is sent with the first character of the token."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any

import pytest
import wire
from events import field, text_of
from hypothesis import given
from hypothesis import strategies as st
from reference import Reference

from stopscan_clients import scan_events, truncate_response
from stopscan_clients.beside import Tokens

CHUNKS = st.lists(st.lists(st.text("abE", min_size=1, max_size=3), min_size=1, max_size=3), min_size=1, max_size=6)
STOPS = st.lists(st.text("abE", min_size=1, max_size=4), max_size=3)


def entry(token: str, number: int) -> dict[str, Any]:
    return {"token": token, "logprob": -number / 100, "bytes": [*token.encode()], "top_logprobs": []}


def chat(chunks: list[list[str]]) -> list[Any]:
    numbers = iter(range(999))
    events = []
    for tokens in chunks:
        choice = wire.chat_choice(content="".join(tokens))
        choice["logprobs"] = {"content": [entry(token, next(numbers)) for token in tokens], "refusal": None}
        events.append(wire.chat_chunk([choice]))
    return [*events, wire.chat_chunk([wire.chat_choice(finish_reason="length")])]


def completions(chunks: list[list[str]]) -> list[Any]:
    number, offset, events = 0, 100, []  # the API counts offsets from the beginning of the prompt
    for tokens in chunks:
        numbers = range(number, number + len(tokens))
        offsets = [offset + len("".join(tokens[:place])) for place in range(len(tokens))]
        logprobs = {"tokens": tokens, "token_logprobs": [-n / 100 for n in numbers], "top_logprobs": None}
        text = "".join(tokens)
        choice = wire.completions_choice(text, logprobs={**logprobs, "text_offset": offsets})
        events.append(wire.completions_chunk([choice]))
        number, offset = number + len(tokens), offset + len(text)
    return [*events, wire.completions_chunk([wire.completions_choice("", finish_reason="length")])]


def responses(chunks: list[list[str]]) -> list[Any]:
    events = wire.responses(["".join(tokens) for tokens in chunks])
    numbers = iter(range(999))
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    for event, tokens in zip(deltas, chunks, strict=True):
        event["logprobs"] = [{"token": t, "logprob": -next(numbers) / 100, "top_logprobs": []} for t in tokens]
    return events


def ollama(chunks: list[list[str]]) -> list[Any]:
    numbers = iter(range(999))
    events = []
    for tokens in chunks:
        message = {"role": "assistant", "content": "".join(tokens)}
        logprobs = [{"token": token, "logprob": -next(numbers) / 100} for token in tokens]
        events.append(wire.ollama_line(message=message, logprobs=logprobs))
    return [*events, wire.ollama_line(done=True, message={"role": "assistant", "content": ""})]


def gemini(chunks: list[list[str]]) -> list[Any]:
    numbers = iter(range(999))
    events = []
    for tokens in chunks:
        chosen = [{"token": token, "logProbability": -next(numbers) / 100} for token in tokens]
        result = {"chosenCandidates": chosen, "topCandidates": [{"candidates": [candidate]} for candidate in chosen]}
        candidate = wire.candidate({"text": "".join(tokens)}, logprobsResult=result)
        events.append(wire.gemini_chunk([candidate]))
    return [*events, wire.gemini_chunk([wire.candidate({"text": ""}, finishReason="STOP")])]


def chat_rows(event: Any) -> list[tuple[str, float]]:
    rows = field(event, "choices", 0, "logprobs", "content") or []
    return [(field(row, "token"), field(row, "logprob")) for row in rows]


def completions_rows(event: Any) -> list[tuple[str, float]]:
    logprobs = field(event, "choices", 0, "logprobs")
    columns = [field(logprobs, name) or [] for name in ("tokens", "token_logprobs", "text_offset")]
    assert len({*map(len, columns)}) == 1
    return list(zip(*columns[:2], strict=True))


def list_rows(event: Any) -> list[tuple[str, float]]:
    kind = field(event, "type")
    rows = field(event, "logprobs") if kind in (None, "response.output_text.delta") else None
    return [(field(row, "token"), field(row, "logprob")) for row in rows or []]


def gemini_rows(event: Any) -> list[tuple[str, float]]:
    result = field(event, "candidates", 0, "logprobsResult") or field(event, "candidates", 0, "logprobs_result")
    rows = field(result, "chosenCandidates") or field(result, "chosen_candidates") or []
    tops = field(result, "topCandidates") or field(result, "top_candidates") or []
    assert [field(top, "candidates", 0, "token") for top in tops] == [field(row, "token") for row in rows]
    return [(field(row, "token"), field(row, "logProbability") or field(row, "log_probability") or 0) for row in rows]


FORMS: dict[str, Any] = {
    "chat": (chat, chat_rows),
    "completions": (completions, completions_rows),
    "responses": (responses, list_rows),
    "ollama": (ollama, list_rows),
    "gemini": (gemini, gemini_rows),
}


@pytest.mark.parametrize("api", FORMS)
@given(chunks=CHUNKS, stop=STOPS, include_stop=st.booleans())
def test_any_tokens(api: str, chunks: Any, stop: list[str], include_stop: bool) -> None:
    make, rows = FORMS[api]
    events = make(chunks)
    oracle = Reference(stop, include_stop=include_stop)
    text = oracle.feed("".join("".join(tokens) for tokens in chunks)) + oracle.flush()
    tokens, begin = [], 0
    for number, token in enumerate(chain.from_iterable(chunks)):
        if begin < len(text):
            tokens.append((token, -number / 100))
        begin += len(token)
    came = [row for event in scan_events(events, stop, include_stop=include_stop) for row in rows(event)]
    assert came == tokens


@pytest.mark.parametrize("api", FORMS)
@given(chunks=CHUNKS, stop=STOPS)
def test_no_token_comes_before_its_text_or_long_after(api: str, chunks: Any, stop: list[str]) -> None:
    make, rows = FORMS[api]
    out = list(scan_events(make(chunks), stop))
    emitted = tokens_text = ""
    for event in out:
        emitted += text_of(api, event) or ""
        tokens_text += "".join(token for token, _ in rows(event))
        assert tokens_text.startswith(emitted)
        assert len(tokens_text) - len(emitted) < 3, "the rest of one token, at most"


@given(chunks=CHUNKS, stop=STOPS, include_stop=st.booleans())
def test_gemini_held_text_keeps_its_tokens(chunks: Any, stop: list[str], include_stop: bool) -> None:
    """A function call ends the text before it, so text that was held is sent, and no stop spans the call. A stop can
    still span two chunks: it begins after the last call of one chunk, and ends before the first call of the next."""
    events = gemini(chunks)
    oracle, text, tokens_text = Reference(stop, include_stop=include_stop), "", chain.from_iterable(chunks)
    for event, tokens in zip(events, chunks, strict=False):
        call = {"functionCall": {"name": "f"}}
        parts = [part for token in tokens for part in (call, {"text": token})][1:]
        event["candidates"][0]["content"]["parts"] = parts
        for number, token in enumerate(tokens):
            text += (oracle.flush() if number else "") + oracle.feed(token)
    text += oracle.flush()
    out = list(scan_events(events, stop, include_stop=include_stop))
    parts = [part for event in out for part in field(event, "candidates", 0, "content", "parts")]
    assert "".join(field(part, "text") or "" for part in parts) == text
    places = accumulate(map(len, chain.from_iterable(chunks)), initial=0)
    expected = [
        (token, -n / 100)
        for n, (token, begin) in enumerate(zip(tokens_text, places, strict=False))
        if begin < len(text)
    ]
    assert [row for event in out for row in gemini_rows(event)] == expected


def test_completions_all_columns_are_cut() -> None:
    """Logprobs are parallel lists here, such as `token_logprobs`. A list that is null stays null. If the list
    `text_offset` is null or missing, the lengths of the tokens tell where each token begins."""
    whole: dict[str, Any] = {
        "tokens": ["one", " E", "N", "D two"],
        "token_logprobs": [None, -1.0, -2.0, -3.0],
        "top_logprobs": [None, {" E": -1.0}, {"N": -2.0}, {"D two": -3.0}],
        "text_offset": [7, 10, 12, 13],
    }

    def part(columns: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
        return {name: column and column[begin:end] for name, column in columns.items()}

    for columns in (
        whole,
        {**whole, "text_offset": None},
        {**whole, "top_logprobs": None},
        {"tokens": whole["tokens"]},
    ):
        places = ((0, 2), (2, 3), (3, 4))
        events = [
            wire.completions_chunk([wire.completions_choice(text, logprobs=part(columns, *place))])
            for text, place in zip(("one E", "N", "D two"), places, strict=True)
        ]
        out = [event["choices"][0] for event in scan_events(events, "END")]
        nothing = part(columns, 0, 0)
        assert [choice["logprobs"] for choice in out] == [part(columns, 0, 2), nothing, nothing, None]
        out = [event["choices"][0] for event in scan_events(events[:2], "END")]
        assert [choice["text"] for choice in out] == ["one ", "", "EN"]
        assert [choice["logprobs"] for choice in out] == [part(columns, 0, 2), nothing, part(columns, 2, 3)]
        cut = truncate_response(
            wire.completions_chunk([wire.completions_choice("one END two", logprobs=columns)]), "END"
        )
        assert cut["choices"][0]["logprobs"] == part(columns, 0, 2)


def test_completions_tokens_without_text_keep_their_offsets() -> None:
    tokens = ["bytes:\\xc3", "bytes:\\xa9", "x"]
    logprobs = {"tokens": tokens, "token_logprobs": [-1.0, -2.0, -3.0], "text_offset": [5, 5, 6]}
    whole = wire.completions_chunk([wire.completions_choice("éx", logprobs=logprobs)])
    assert truncate_response(whole, "x")["choices"][0]["logprobs"]["tokens"] == tokens[:2]


@pytest.mark.parametrize("api", FORMS)
def test_a_token_waits_with_its_own_text(api: str) -> None:
    make, rows = FORMS[api]
    out = scan_events(make([["E"], ["E"], ["x"]]), "END")
    assert [rows(event) for event in out if text_of(api, event) is not None][:3] == [
        [],
        [("E", 0)],
        [("E", -0.01), ("x", -0.02)],
    ]


def test_half_characters_begin_where_their_character_does() -> None:
    """A chunk with half a character has a token, but no text. If no text is held, the token stays in this chunk."""
    first, second = ([byte] for byte in "é".encode())
    chunks = [
        ("a", [entry("a", 0)]),
        ("", [{"token": "\\xc3", "logprob": -1.0, "bytes": first, "top_logprobs": []}]),
        ("é", [{"token": "\\xa9", "logprob": -2.0, "bytes": second, "top_logprobs": []}]),
        ("b", [entry("b", 3)]),
    ]
    events = []
    for text, rows in chunks:
        choice = wire.chat_choice(content=text)
        choice["logprobs"] = {"content": rows, "refusal": None}
        events.append(wire.chat_chunk([choice]))
    for stop, kept in (("éb", 2), ("b", 3), ("aéb", 0), ("aéc", 4)):
        out = list(scan_events(events, stop))
        assert len([row for event in out for row in chat_rows(event)]) == kept, stop
    texts = [(text_of("chat", event), [token for token, _ in chat_rows(event)]) for event in scan_events(events, "aéc")]
    assert texts == [("", []), ("", []), ("", []), ("aéb", ["a", "\\xc3", "\\xa9", "b"])]


def spelled(entries: list[Any], text: str) -> list[tuple[int, Any]]:
    return Tokens("rows").read({"rows": entries}, text)


def test_tokens_longer_than_the_text_stay_within_it() -> None:
    assert spelled([entry("<s>", 0), entry("ab", 1)], "ab") == [(0, entry("<s>", 0)), (1, entry("ab", 1))]
    assert spelled([{"token": "ab", "bytes": None}, {"token": "", "bytes": []}], "ab")[1][0] == 1
    assert spelled([entry("x", 0)], "") == [(0, entry("x", 0))]


def test_a_whole_response_loses_the_tokens_of_the_stop() -> None:
    whole = wire.chat_whole("one END two")
    tokens = ["one", " E", "ND", " two"]
    whole["choices"][0]["logprobs"] = {"content": [entry(t, n) for n, t in enumerate(tokens)], "refusal": None}
    cut = truncate_response(whole, "END")
    assert [row["token"] for row in cut["choices"][0]["logprobs"]["content"]] == ["one", " E"]
    part = wire.output_text("one END two", logprobs=[entry(t, n) for n, t in enumerate(tokens)])
    cut = truncate_response(wire.responses_whole([wire.output_message([part])]), "END")
    assert [row["token"] for row in cut["output"][0]["content"][0]["logprobs"]] == ["one", " E"]


def test_a_token_begins_where_its_character_does() -> None:
    halves = [{"token": "?", "bytes": [byte]} for byte in "xéa".encode()]
    assert [begin for begin, _ in spelled(halves, "xéa")] == [0, 1, 1, 2]
    words = [entry(token, number) for number, token in enumerate(["é\u0100", "日本", "🙂", "a"])]
    assert [begin for begin, _ in spelled(words, "é\u0100日本🙂a")] == [0, 2, 4, 5]
    nothing: dict[str, Any] = {"token": None, "bytes": None}
    assert [begin for begin, _ in spelled([nothing, {"token": "a"}, {"token": "b"}], "ab")] == [0, 0, 1]


@pytest.mark.parametrize("api", FORMS)
def test_each_delta_has_the_tokens_of_its_text(api: str) -> None:
    """While text is held, an event may come out with the text of an earlier event. It must then have the tokens of the
    earlier text, and not its own, even if both texts are equally long."""
    make, rows = FORMS[api]
    events = make([["a"], ["E"], ["E"], ["E"], ["N", "b", "E"]])
    out = [event for event in scan_events(events, "END") if text_of(api, event) or rows(event)]
    assert any(out[0] is event for event in events)
    assert [text_of(api, event) for event in out] == ["a", "E", "E", "ENb", "E"]
    last = [[("E", -0.03), ("N", -0.04), ("b", -0.05)], [("E", -0.06)]]
    assert [rows(event) for event in out] == [[("a", 0)], [("E", -0.01)], [("E", -0.02)], *last]


def test_responses_closing_events_repeat_the_tokens() -> None:
    events = wire.responses(["one ", "two ", "END"])
    for event in events:
        if event["type"] == "response.output_text.delta":
            event["logprobs"] = [{"token": event["delta"], "logprob": -0.5}]
    out = {event["type"]: event for event in scan_events(events, "END")}
    tokens = [entry["token"] for entry in out["response.output_text.done"]["logprobs"]]
    assert tokens == [entry["token"] for entry in out["response.content_part.done"]["part"]["logprobs"]]
    assert tokens == ["one ", "two "]


@pytest.mark.parametrize("second", [None, "absent", [], [1], {}, "x"])
def test_a_second_chunk_may_have_no_logprobs(second: Any) -> None:
    """The text of two chunks is held, and comes out in one event. If only the first chunk has logprobs, the event has
    the logprobs of the first chunk."""
    columns = {"tokens": ["a ", "E"], "token_logprobs": [0, -1], "top_logprobs": None, "text_offset": [0, 2]}
    more = {} if second == "absent" else {"logprobs": second}
    chunks = [
        {"choices": [{"index": 0, "text": "a E", "logprobs": columns}]},
        {"choices": [{"index": 0, "text": "N", **more}]},
        {"choices": [{"index": 0, "text": "", "finish_reason": "length"}]},
    ]
    out = [event["choices"][0] for event in scan_events(chunks, "END")]
    assert [choice["text"] for choice in out] == ["a ", "", "EN", ""]
    if not second or second == "absent":
        assert (out[2]["logprobs"]["tokens"], out[2]["logprobs"]["token_logprobs"]) == (["E"], [-1])
