"""Bug reports of other projects, tried with this package. They are about stops, ends and empty blocks in streams of
real servers. A test that is named after a report has the input of the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from stopscan_clients import StopTransport, scan_events

CHAT, MESSAGES, GEMINI = "/v1/chat/completions", "/v1/messages", "/v1beta/models/g:streamGenerateContent?alt=sse"


class Answer:
    """Sends a request through a transport to a server with a fixed answer. Keeps the answer and the sent requests."""

    def __init__(
        self, path: str, request: Any, body: Any, stop: Any = (), media: str = "text/event-stream", **options: Any
    ):
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.requests: list[httpx.Request] = []

        def handler(upstream: httpx.Request) -> httpx.Response:
            self.requests.append(upstream)
            return httpx.Response(200, headers={"content-type": media}, content=sent)

        transport = StopTransport(stop, transport=httpx.MockTransport(handler), **options)
        with httpx.Client(transport=transport) as client, client.stream("POST", f"http://api{path}", json=request) as r:
            self.body = b"".join(r.iter_raw())
            self.status = r.status_code
            self.matches = dict(r.extensions.get("stopscan") or {})

    @property
    def sent(self) -> Any:
        return json.loads(self.requests[-1].content)

    @property
    def events(self) -> list[Any]:
        lines = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]

    def text(self, index: int = 0) -> str:
        """The text of a choice in a chat stream."""
        choices = [c for e in self.events if isinstance(e, dict) for c in e["choices"] if c.get("index", 0) == index]
        return "".join((c.get("delta") or {}).get("content") or "" for c in choices)

    def blocks(self) -> list[tuple[int, str]]:
        """The texts of Anthropic's blocks."""
        deltas = [event for event in self.events if event["type"] == "content_block_delta"]
        return [(event["index"], event["delta"]["text"]) for event in deltas if event["delta"]["text"]]


def sse(events: list[Any], done: bool = False) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n" * done


def chunk(text: str | None = None, finish: str | None = None, index: int = 0, **delta: Any) -> Any:
    delta |= {} if text is None else {"content": text}
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}


def chat(chunks: list[Any], stop: str = "END", done: bool = True, **options: Any) -> Answer:
    return Answer(CHAT, {"model": "m", "messages": [], "stream": True}, sse(chunks, done), stop, **options)


def candidate(text: str, finish: str | None = None, index: int = 0) -> Any:
    ending = {"finishReason": finish} if finish else {}
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": index, **ending}]}


def gemini_text(answer: Answer, index: int = 0) -> str:
    candidates = [c for event in answer.events for c in event["candidates"] if c.get("index", 0) == index]
    return "".join(part.get("text", "") for c in candidates for part in c.get("content", {}).get("parts", []))


USAGE = {"input_tokens": 7, "output_tokens": 1}
START: Any = {
    "type": "message_start",
    "message": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    },
}


def block(index: int) -> Any:
    return {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}


def delta(index: int, text: str) -> Any:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def block_stop(index: int) -> Any:
    return {"type": "content_block_stop", "index": index}


END: list[Any] = [
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 9},
    },
    {"type": "message_stop"},
]


def messages(events: list[Any], stop: Any = "END", **request: Any) -> Answer:
    return Answer(
        MESSAGES, {"model": "m", "max_tokens": 9, "messages": [], "stream": True, **request}, sse(events), stop
    )


def test_litellm_2195_cliproxyapi_5651_stop_in_every_chunk() -> None:
    answer = Answer(GEMINI, {"contents": []}, sse([candidate(t, "STOP") for t in ("one E", "ND two", " three")]), "END")
    assert gemini_text(answer) == "one "
    assert answer.matches[0].offset == 4


def test_open_webui_16377_chat_says_stop_in_every_chunk() -> None:
    assert chat([chunk(text, "stop") for text in ("one E", "ND two", " three")]).text() == "one "
    texts = ("one E", "n two E", "nd")
    whole = chat([chunk(text, "stop") for text in texts])
    assert whole.text() == "".join(texts)
    assert not whole.matches


@pytest.mark.parametrize(
    "stub",
    [
        {"function_call": {"name": "", "arguments": ""}},
        {"tool_calls": [{"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": ""}}]},
    ],
)
def test_workbuddy_gateway_3_stubs_of_calls_in_every_chunk(stub: Any) -> None:
    assert chat([*(chunk(text, None, **stub) for text in ("one E", "ND two")), chunk("", "stop")]).text() == "one "


def test_a_stop_spans_no_call() -> None:
    call = {"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chunks = [chunk("one E"), chunk(tool_calls=[call]), chunk("ND two"), chunk(None, "tool_calls")]
    assert chat(chunks).text() == "one END two"


def test_anthropic_sdk_kotlin_147_a_block_without_an_end() -> None:
    closing = [block_stop(1), *END]
    answer = messages([START, block(0), delta(0, "one E"), block(1), delta(1, "two END three"), *closing])
    assert answer.blocks() == [(0, "one "), (0, "E"), (1, "two ")]
    answer = messages([START, block(0), delta(0, "one E"), block(1), delta(1, "two"), *closing])
    assert answer.blocks() == [(0, "one "), (0, "E"), (1, "two")]


def test_bifrost_4262_bedrock_behind_a_gateway_ends_no_block() -> None:
    def block_delta(index: int, text: str) -> Any:
        return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": text}}}

    def deltas_of(last: str) -> list[tuple[int, str]]:
        events = [block_delta(0, "one E"), block_delta(1, last), {"messageStop": {"stopReason": "end_turn"}}]
        with_text = [event["contentBlockDelta"] for event in scan_events(events, "END") if "contentBlockDelta" in event]
        return [(piece["contentBlockIndex"], piece["delta"]["text"]) for piece in with_text if piece["delta"]["text"]]

    assert deltas_of("two END x") == [(0, "one "), (0, "E"), (1, "two ")]
    assert deltas_of("two") == [(0, "one "), (0, "E"), (1, "two")]


def test_rig_gemini_stop_in_the_middle_of_a_candidate() -> None:
    events = [candidate("zero ", "STOP", 0), candidate("one END", None, 1), candidate("goes on", "STOP", 0)]
    answer = Answer(GEMINI, {"contents": []}, sse([*events, candidate("x", "STOP", 1)]), "END")
    assert (gemini_text(answer, 0), gemini_text(answer, 1)) == ("zero goes on", "one ")


def test_rig_a_stop_before_any_text_leaves_no_block() -> None:
    events = [START, block(0), delta(0, "al"), delta(0, "pha bravo"), block_stop(0), *END]
    answer = messages(events, (), stop_sequences=["alpha"])
    assert [event["type"] for event in answer.events] == ["message_start", "message_delta", "message_stop"]


def test_rig_2329_no_empty_text_in_a_whole_answer() -> None:
    whole = {**START["message"], "content": [{"type": "text", "text": "🌊 alpha"}], "stop_reason": "end_turn"}
    request = {"model": "m", "max_tokens": 9, "messages": [], "stop_sequences": ["🌊"]}
    cut = json.loads(Answer(MESSAGES, request, whole, media="application/json", api="none").body)
    assert (cut["content"], cut["stop_reason"], cut["stop_sequence"]) == ([], "stop_sequence", "🌊")


def test_req_llm_462_last_event_without_a_blank_line() -> None:
    body = sse([chunk("one E"), chunk("nough", "stop")]).removesuffix(b"\n\n")
    answer = Answer(CHAT, {"model": "m", "stream": True, "messages": []}, body, "END")
    assert answer.text() == "one Enough"
    assert answer.events[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("done", [True, False])
def test_pi_7441_vercel_19165_no_finish_reason(done: bool) -> None:
    answer = chat([chunk("one "), chunk("EN"), {"choices": [], "usage": {"completion_tokens": 5}}], done=done)
    assert answer.text() == "one EN"
    assert (answer.events[-1] == "[DONE]") == done


def test_zed_48119_ollama_3629_no_empty_list_is_sent() -> None:
    line = {"model": "m", "message": {"role": "assistant", "content": "a END b"}, "done": False}
    request = {"model": "m", "messages": [], "options": {"stop": ["END"], "seed": 1}}
    answer = Answer("/api/chat", request, json.dumps(line).encode() + b"\n", media="application/x-ndjson")
    assert answer.sent["options"] == {"seed": 1}
    request = {"model": "m", "messages": [], "stream": True, "stop": ["END"]}
    assert "stop" not in Answer(CHAT, request, sse([chunk("a END b", "stop")], True)).sent


def test_tabbyapi_141_vllm_31135_a_stop_inside_several_tokens() -> None:
    def entry(token: str) -> Any:
        return {"token": token, "logprob": -1.0, "bytes": [*token.encode()], "top_logprobs": []}

    first = chunk("Hello! END x")
    first["choices"][0]["logprobs"] = {"content": [entry(t) for t in ("Hello", "!", " EN", "D", " x")]}
    answer = chat([first, chunk(None, "stop")])
    choices = [choice for event in answer.events if isinstance(event, dict) for choice in event["choices"]]
    rows = [row["token"] for c in choices for row in ((c.get("logprobs") or {}).get("content") or [])]
    assert (answer.text(), rows) == ("Hello! ", ["Hello", "!", " EN"])


def test_mcp_web_ui_5_400_is_readable_raw() -> None:
    answer = messages([], (), stop_sequences=["", "x"])
    assert answer.status == 400
    assert json.loads(answer.body)["error"]["type"] == "invalid_request_error"
    assert not answer.requests


def whole_chat(**fields: Any) -> Any:
    message = {"role": "assistant", "content": "one END and what follows it", **fields.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **fields.pop("choice", {})}
    return {"id": "x", "object": "chat.completion", "choices": [choice], **fields}


BEHIND = " and what follows it"
CITED = {"type": "url_citation", "url_citation": {"start_index": 4, "end_index": 20, "url": "u", "title": "t"}}
GROUNDING = {
    "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 27, "text": f"one END{BEHIND}"}}],
    "groundingChunks": [{"web": {"uri": "u"}}],
}
BESIDE: list[tuple[str, str, Any]] = [
    ("chat's annotations behind the cut", CHAT, whole_chat(message={"annotations": [CITED]})),
    ("vLLM's token_ids", CHAT, whole_chat(choice={"token_ids": [1, 2, 3], "stop_reason": None})),
    ("llama.cpp's __verbose", CHAT, whole_chat(__verbose={"content": f"one END{BEHIND}", "tokens": [1]})),
    ("a field that no row knows", CHAT, whole_chat(answer={"text": [f"one END{BEHIND}"]})),
    ("a field of the message", CHAT, whole_chat(message={"copy": f"one END{BEHIND}"})),
    (
        "Gemini's grounding and citations",
        "/v1beta/models/g:generateContent",
        {
            "candidates": [
                {
                    "index": 0,
                    "content": {"role": "model", "parts": [{"text": f"one END{BEHIND}"}]},
                    "finishReason": "STOP",
                    "groundingMetadata": GROUNDING,
                    "citationMetadata": {"citationSources": [{"startIndex": 0, "endIndex": 27, "uri": "u"}]},
                }
            ]
        },
    ),
    (
        "Bedrock's guardrail trace",
        "/model/m/converse",
        {
            "output": {"message": {"role": "assistant", "content": [{"text": f"one END{BEHIND}"}]}},
            "stopReason": "end_turn",
            "trace": {"guardrail": {"modelOutput": [f"one END{BEHIND}"]}},
        },
    ),
]


@pytest.mark.parametrize(("field", "path", "answer"), BESIDE, ids=[name for name, *_ in BESIDE])
def test_what_stands_beside_the_text_is_cut_with_it(field: str, path: str, answer: Any) -> None:
    cut = Answer(path, {"model": "m"}, answer, "END", media="application/json").body.decode()
    assert "what follows" not in cut
    for gone in ("end_index", "endIndex", "token_ids", "__verbose", "guardrail"):
        assert gone not in cut


@pytest.mark.parametrize("drain", [False, True])
def test_copies_of_a_streams_text_go_with_it(drain: bool) -> None:
    """Text after the stop must be in no field of any event. With ``drain``, this includes the events after the stop."""
    first = {**chunk(f"one END{BEHIND}"), "copy": f"one END{BEHIND}", "note": "it follows"}
    usage = {"choices": [], "usage": {"completion_tokens": 5}, "full": f"one END{BEHIND}", "model": "m"}
    answer = chat([first, chunk(None, "stop"), usage], drain=drain)
    assert "what follows" not in answer.body.decode()
    assert "note" not in answer.events[0]
    assert (5 in [(event.get("usage") or {}).get("completion_tokens") for event in answer.events[:-1]]) == drain


def test_reasoning_that_quotes_the_answer_stays() -> None:
    answer = whole_chat(message={"reasoning_content": f"I say: one END{BEHIND}"})
    cut = json.loads(Answer(CHAT, {"model": "m"}, answer, "END", media="application/json").body)
    assert cut["choices"][0]["message"]["reasoning_content"] == f"I say: one END{BEHIND}"


def validated(kind: Any) -> Callable[[Any], Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python


def test_langchain_a_made_end_fits_anthropics_type() -> None:
    from anthropic.types import RawMessageStreamEvent

    answer = messages([START, block(0), delta(0, "one END"), block_stop(0), *END])
    for event in answer.events:
        validated(RawMessageStreamEvent)(event)
    (end,) = [event for event in answer.events if event["type"] == "message_delta"]
    assert end["usage"] == USAGE, "the last that the API said"
    bare = messages([block(0), delta(0, "one END")])
    for event in bare.events:
        validated(RawMessageStreamEvent)(event)


@pytest.mark.parametrize("path", ["/v1/chat/completions/", "/x/y", "/v1/beta/chat/completions/z"])
def test_events_tell_the_api_on_any_path(path: str) -> None:
    answer = Answer(path, {"model": "m", "stream": True}, sse([chunk("one E"), chunk("ND two")], True), "END")
    assert answer.text() == "one "


def test_llama_cpp_its_own_completion_is_a_row() -> None:
    events = [{"content": text, "stop": False, "index": 0} for text in ("one E", "ND two")]
    events.append({"content": "", "stop": True, "stop_type": "eos", "index": 0, "tokens_predicted": 9})
    answer = Answer("/completion", {"prompt": "x", "stream": True, "stop": ["END"]}, sse(events))
    assert "".join(event["content"] for event in answer.events) == "one "
    assert answer.events[-1]["stop_type"] == "word"
    assert answer.events[-1]["stopping_word"] == "END"
    assert "stop" not in answer.sent


@pytest.mark.parametrize(
    "path", ["/generate", "/generate_stream", "/v1/chat", "/v1beta/interactions", "/v1/conversations"]
)
def test_a_stream_of_no_row_is_an_error(path: str) -> None:
    with pytest.raises(TypeError, match="not an event of a known API"):
        Answer(path, {"stream": True}, sse([{"text": "one END", "more": {}}]), "END")


@pytest.mark.parametrize("path", ["/chain/invoke", "/x/messages"])
def test_a_whole_answer_of_another_service_passes(path: str) -> None:
    answer = Answer(path, {"input": "x"}, {"output": "one END two"}, "END", media="application/json")
    assert json.loads(answer.body) == {"output": "one END two"}


def test_a_whole_answer_that_is_a_list_passes() -> None:
    for body in ([{"label": "x", "score": 1.0}], [[0.1, 0.2]]):
        assert json.loads(Answer("/classify", {"inputs": "END"}, body, "END", media="application/json").body) == body


def test_an_encoding_that_cannot_be_read_is_an_error() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        stream = request.url.path == CHAT
        media = "text/event-stream" if stream else "application/json"
        headers = {"content-type": media, "content-encoding": "compress"}
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"\x1f\x9d"))

    with httpx.Client(transport=StopTransport("END", transport=httpx.MockTransport(handler))) as client:
        with pytest.raises(TypeError, match="the content-encoding 'compress'"):
            client.post(f"http://api{CHAT}", json={"stream": True})
        answer = client.post(f"http://api{MESSAGES}", json={"stop_sequences": ["x"]})
        assert (answer.status_code, answer.json()["type"]) == (502, "error")
        assert "compress" in answer.json()["error"]["message"]


def test_responses_a_stop_before_any_text_leaves_no_item() -> None:
    where = {"item_id": "msg", "output_index": 0, "content_index": 0}
    item = {"id": "msg", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    response = {"id": "r", "object": "response", "status": "in_progress", "output": [], "usage": None}
    events: list[Any] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **where, "part": part},
        {"type": "response.output_text.delta", **where, "delta": "END two", "logprobs": []},
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    answer = Answer("/v1/responses", {"input": "x", "stream": True}, sse(numbered), "END")
    assert [event["type"] for event in answer.events] == ["response.created", "response.completed"]
    assert answer.events[-1]["response"]["output"] == []
    assert answer.events[-1]["response"]["status"] == "completed"


def test_the_choices_of_a_request_are_all_awaited() -> None:
    """If choice 0 stops first, the text of choice 1 must still come. It was once lost, with
    `chat.completions.stream(n=2)` and with Gemini's `candidate_count`."""
    chunks = [chunk("one END"), chunk("two", None, 1), chunk(None, "stop", 1)]
    answer = Answer(CHAT, {"model": "m", "messages": [], "stream": True, "n": 2}, sse(chunks, True), "END")
    assert (answer.text(0), answer.text(1)) == ("one ", "two")
    for config in ({"generationConfig": {"candidateCount": 2}}, {"generation_config": {"candidate_count": 2}}):
        events = [candidate("one END"), candidate("two", "STOP", 1)]
        answer = Answer(GEMINI, {"contents": [], **config}, sse(events), "END")
        assert (gemini_text(answer, 0), gemini_text(answer, 1)) == ("one ", "two")


def test_gemini_requests_may_use_snake_case() -> None:
    request = {"contents": [], "generation_config": {"stop_sequences": ["END"], "max_output_tokens": 9}}
    answer = Answer(GEMINI, request, sse([candidate("one END")]))
    assert answer.sent == {"contents": [], "generationConfig": {"maxOutputTokens": 9}}
    assert gemini_text(answer) == "one "


def test_a_body_that_breaks_off_confirms_no_pattern() -> None:
    from stopscan import StopSet

    stops: Any = StopSet(patterns=["E$"])
    assert chat([chunk("one E")], stops, done=False).text() == "one E"
    assert chat([chunk("one E")], stops, done=True).text() == "one "
    assert chat([chunk("one E"), chunk(None, "stop")], stops, done=False).text() == "one "


def test_an_end_waits_for_an_event_past_comments() -> None:
    body = sse([chunk("one E", "stop")]) + b": still here\n\n" + sse([chunk("ND two", "stop")], True)
    answer = Answer(CHAT, {"model": "m", "stream": True, "messages": []}, body, "END")
    assert answer.text() == "one "
    assert b": still here\n\n" in answer.body
    body = sse([chunk("one E", "stop")]) + b": still here\n\n" + sse([], True)
    assert Answer(CHAT, {"model": "m", "stream": True, "messages": []}, body, "END").body == body, "byte for byte"


def test_pings_behind_a_waiting_block_keep_their_place() -> None:
    ping = {"type": "ping"}
    events = [START, block(0), ping, delta(0, "E"), ping, delta(0, "one"), block_stop(0), *END]
    kinds = [event["type"] for event in messages(events).events]
    assert kinds == [event["type"] for event in events]
    stopped = messages([START, block(0), ping, delta(0, "END")])
    assert [event["type"] for event in stopped.events] == ["message_start", "ping", "message_delta", "message_stop"]


def test_a_response_resumed_by_get_is_cut() -> None:
    body = sse([{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "one END"}])

    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    with httpx.Client(transport=StopTransport("END", transport=httpx.MockTransport(handler))) as client:
        assert '"delta":"one "' in client.get("http://api/v1/responses/resp_1?stream=true").text
