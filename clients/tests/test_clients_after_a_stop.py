"""Tests which fields are kept in the event, choice or answer in which a stop fires. Also tests streams that begin or
end in an unusual way."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import wire
from replay import sse
from test_recorded import through

from stopscan import StopSet
from stopscan_clients import StopTransport, scan_events, truncate_response
from stopscan_clients.body import Body, Plan
from stopscan_clients.machine import ScanOptions


def chunk(text: str | None, reason: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    return wire.chat_chunk([{**wire.chat_choice(index, reason, content=text), **fields}])


@pytest.mark.parametrize("whole", [False, True])
def test_gemini_thoughts_before_the_stop_stay_alone(whole: bool) -> None:
    before, behind = {"text": "hm", "thought": True}, {"text": "Qz7", "thought": True}
    event = wire.gemini_chunk([wire.candidate(before, {"text": "one END"}, behind, {"functionCall": {"name": "f"}})])
    out = truncate_response(event, "END") if whole else next(scan_events([event], "END"))
    assert out["candidates"][0]["content"]["parts"] == [before, {"text": "one "}]


@pytest.mark.parametrize("kind", ["thinking", "reference", "image_url", "text"])
@pytest.mark.parametrize("whole", [False, True])
def test_mistral_pieces_before_the_stop_stay_alone(kind: str, whole: bool) -> None:
    piece, text = {"type": kind, kind: "Qz7"}, {"type": "text", "text": "one END"}
    before = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    content = [before, text, piece]
    if whole:
        kept = truncate_response(wire.chat_whole(content), "END")["choices"][0]["message"]["content"]
    else:
        kept = next(scan_events([wire.chat_chunk([wire.chat_choice(content=content)])], "END"))
        kept = kept["choices"][0]["delta"]["content"]
    assert kept == [before, {"type": "text", "text": "one "}]


def test_gemini_offsets_of_a_remark_count_in_its_part() -> None:
    def remark(part: int, end: int) -> dict[str, Any]:
        return {"segment": {"partIndex": part, "endIndex": end}}

    remarks = [remark(1, 3), remark(1, 4), remark(2, 1)]
    parts = [{"text": "one "}, {"text": "twoEND"}]
    answer = wire.gemini_chunk([wire.candidate(*parts, groundingMetadata={"groundingSupports": remarks})])
    kept = truncate_response(answer, "END")["candidates"][0]
    assert [part["text"] for part in kept["content"]["parts"]] == ["one ", "two"]
    assert kept["groundingMetadata"]["groundingSupports"] == [remark(1, 3)]


@pytest.mark.parametrize("drain", [False, True])
def test_a_made_end_has_no_fields_of_earlier_events(drain: bool) -> None:
    events = [chunk("one ", note="Qz7"), chunk("END"), chunk(None, "stop")]
    events[0]["note"] = events[1]["note"] = "Qz7"
    _, *rest = scan_events(events, "END", drain=drain)
    assert rest
    assert "Qz7" not in str(rest)


@pytest.mark.parametrize("drain", [False, True])
def test_words_about_the_uncut_end_go(drain: bool) -> None:
    words = {"matched_stop": 151645, "native_finish_reason": "MAX_TOKENS", "stop_details": "Qz7", "stop_reason": 2}
    out = list(scan_events([chunk("one END two", "length", **words)], "END", drain=drain))
    choice = out[-1]["choices"][0]
    assert (choice["finish_reason"], choice["matched_stop"]) == ("stop", "END")
    assert not {*words} & {*choice} - {"matched_stop"}
    gemini = wire.gemini_chunk([wire.candidate({"text": "one END"}, finishReason="MAX_TOKENS", finishMessage="Qz7")])
    assert "finishMessage" not in truncate_response(gemini, "END")["candidates"][0]
    studio = {**wire.chat_whole("one END"), "stats": {"stop_reason": "eosFound"}}
    assert "stats" not in truncate_response(studio, "END")


COPIES = ["ab", " and then more \n", "and then m", ["and ", "then ", "more"], {"and then more": 1}, '"and then more"']


@pytest.mark.parametrize("copy", COPIES, ids=str)
def test_copies_of_the_text_behind_the_stop_go(copy: Any) -> None:
    event = {**chunk("one ENDand then more", "length", copy=copy), "copy": copy}
    out = list(scan_events([event], "END"))
    assert "copy" not in out[0]
    assert "copy" not in out[0]["choices"][0]


def test_counts_are_numbers_and_the_words_that_are_named() -> None:
    usage = {
        "output_tokens": 3,
        "service_tier": "standard",
        "note": "Qz7",
        "cache": {"in": 1, "note": "Qz7"},
        "x": ["Qz7"],
    }
    answer = {**wire.anthropic_whole([{"type": "text", "text": "one END"}]), "usage": usage}
    kept = truncate_response(answer, "END")["usage"]
    assert kept == {"output_tokens": 3, "service_tier": "standard", "cache": {"in": 1}, "x": []}


def test_other_choices_stay_as_they_came() -> None:
    events = [chunk("one END", note="a"), chunk("two", index=1, note="b"), chunk(None, "stop", index=1, note="c")]
    out = list(scan_events(events, "END", choices=2))
    assert [choice.get("note") for event in out for choice in event["choices"]] == [None, None, "b", "c"]


def test_comments_and_unknown_lines_stay_before_a_stop_alone() -> None:
    pieces = [b": one\nx-y: 1\n" + sse(chunk("one")), b": END\nid: 7\nx-y: END\nretry: 1\n" + sse(chunk(" END"))]
    out, _ = through(pieces, ["END"], "text/event-stream")
    assert out.startswith(pieces[0])
    assert out[len(pieces[0]) :].startswith(b"id: 7\ndata: ")


def test_a_ping_after_the_stop_has_only_named_fields() -> None:
    out = list(scan_events([chunk("END"), {"type": "ping", "note": "Qz7"}, chunk(None, "stop")], "END", drain=True))
    assert "Qz7" not in str(out)


FIRST = [b"x-request-id: 7\n\n", b"data\n\n", b"data\nid: 3\n\n", b"\xef\xbb\xbfx-y\n\n", b"event: x\ndata\n\n"]


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_stream_may_begin_with_fields_that_nobody_knows(first: bytes, size: int) -> None:
    """https://html.spec.whatwg.org/multipage/server-sent-events.html: unknown fields are ignored, and a line without a
    colon is a field without a value."""
    whole = first + sse(chunk("one END"))
    out, body = through([whole[at : at + size] for at in range(0, len(whole), size)], ["END"], "text/event-stream")
    assert out.startswith(first)
    assert body.matches[0].offset == 4


def exchange(request: Any, media: str, content: bytes, path: str = "/v1/chat/completions", **options: Any) -> Any:
    answer = httpx.Response(200, headers={"content-type": media}, content=content)
    transport = StopTransport("END", transport=httpx.MockTransport(lambda _: answer), **options)
    return httpx.Client(transport=transport).post(f"http://server{path}", json=request)


@pytest.mark.parametrize("content", [b"hello\n\n", b"data: hello\n\n"])
def test_a_stream_that_is_not_understood_is_refused(content: bytes) -> None:
    body, request = b"".join([content, b'data: {"a": 1}\n\n']), {"stream": True}
    with pytest.raises(TypeError, match="not an event of a known API"):
        exchange(request, "text/event-stream", body)
    assert exchange(request, "text/event-stream", body, strict=False).content == body


def test_another_body_is_refused_if_the_request_has_stops() -> None:
    with pytest.raises(TypeError, match="neither JSON nor a stream of events"):
        exchange({"stream": True, "stop": "X"}, "text/plain", b"\0\1 END")
    assert exchange({"stream": True}, "text/plain", b"\0\1 END").content == b"\0\1 END"
    assert exchange({"stop": "X"}, "application/json", b"[1]").status_code == 502
    assert exchange({}, "application/json", b"[1]").content == b"[1]"
    assert exchange({"stop": "X"}, "application/json", b'{"a": 1}').status_code == 502
    assert exchange({"input": "a"}, "application/json", b'{"data": []}', "/v1/embeddings").content == b'{"data": []}'


class Decoder:
    def decode(self, data: bytes) -> bytes:
        return data.replace(b"X", b"N")

    def flush(self) -> bytes:
        return b""


def test_encodings_are_read_that_httpx_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(httpx._decoders.SUPPORTED_DECODERS, "br", Decoder)
    content = sse(chunk("one EXD")).replace(b"END", b"EXD")
    headers = {"content-type": "text/event-stream", "content-encoding": "br"}
    answer = httpx.Response(200, headers=headers, stream=httpx.ByteStream(content))
    transport = StopTransport("END", transport=httpx.MockTransport(lambda _: answer))
    cut = httpx.Client(transport=transport).post("http://server/v1/chat/completions", json={"stream": True})
    assert b'"matched_stop":"END"' in cut.content
    assert "content-encoding" not in cut.headers


def test_a_reason_in_each_chunk_and_two_choices() -> None:
    events = [chunk("one E", "stop"), chunk("two E", "stop", 1), chunk("ND x", "stop"), chunk("nd", "stop", 1)]
    stream = scan_events(events, "END", choices=2)
    texts = {0: "", 1: ""}
    for event in stream:
        for choice in event["choices"]:
            texts[choice["index"]] += choice["delta"].get("content") or ""
    assert texts == {0: "one ", 1: "two End"}
    assert list(stream.matches) == [0]
    early = [chunk("two ", "stop", 1), chunk("one E", "stop"), chunk("ND", "stop"), chunk("more", "stop", 1)]
    texts = [event["choices"][0]["delta"].get("content") for event in scan_events(early, "END", choices=2)]
    assert texts == ["two ", "one ", "", "more"]


def test_an_end_waits_for_no_other_choice() -> None:
    events = [chunk("one E", "stop"), chunk("two", None, 1), chunk(" three", None, 1)]
    stream = scan_events(iter([*events, chunk(None, "stop", 1)]), "END", choices=2)
    assert next(stream) is events[1]
    assert next(stream) is events[2]
    assert [event["choices"][0]["delta"].get("content") for event in stream] == [None, "one E"]


def test_the_fast_path_does_not_scan_an_echoed_prompt() -> None:
    """The answer begins with a copy of the prompt, and the prompt contains the stop. A stop must not fire in this copy,
    not even in the fast path, which scans the text of an event without parsing its JSON."""
    events = [wire.completions_chunk([wire.completions_choice(text)]) for text in ("Q: ", "EN", "D A", ": ", "4 END 5")]
    frames = [sse(event) for event in events]
    body = Body(Plan(ScanOptions(StopSet("END"), echoed=(len("Q: END A: "),)), True), "text/event-stream")
    out = b"".join(body.feed(frame) for frame in frames)
    assert out.startswith(b"".join(frames[:4]))
    assert body.matches[0].offset == len("Q: END A: 4 ")


def test_a_cut_responses_stream_counts_with_numbers() -> None:
    """Vercel's SDK rejects a `response.completed` whose usage is null or has no numbers."""
    *_, last = scan_events(wire.responses(["one END"]), "END")
    usage = last["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (0, 0, 0)
    assert json.loads(json.dumps(usage)) == usage


def test_held_text_comes_before_a_torn_end() -> None:
    """A body breaks off within an event. Without the transport, the client openai then reads the text of the complete
    events, `ab E`. With the transport, it must read the same, although ` E` was held."""
    whole = sse(chunk("ab E")) + sse(chunk("nough"))
    out, _ = through([whole[: len(sse(chunk("ab E"))) + 20]], ["END"], "text/event-stream")
    events = [json.loads(frame[6:]) for frame in out.split(b"\n\n")[:-1]]
    assert "".join(event["choices"][0]["delta"]["content"] for event in events) == "ab E"
    assert out.endswith(sse(chunk("nough"))[:20])
