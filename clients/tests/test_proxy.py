"""Official clients use the proxy, which is in front of a server that ignores stops."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest
import wire
from apis import APIS, MESSAGES, client
from events import field
from replay import Recording, Replay
from running import Running, raw_server, running
from test_clients_loops import LOOP, loop
from test_proxy_limits import connected, rest
from through import endless, is_gone
from wholes import PATHS, WHOLES

from stopscan import Repeat
from stopscan_clients.proxy.__main__ import main, parser

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def proxied(server: Replay) -> Iterator[Running]:
    with running(server.url, "--stop", "END", "--max-body", "100000", "--max-stops", "5") as made:
        yield made


@pytest.mark.parametrize("api", APIS, ids=str)
def test_a_stream_of_the_official_client(server: Replay, proxied: Running, api: Any) -> None:
    recording = endless(api.name)
    events = list(api.open(proxied.url, server.record(recording)))
    assert api.read(events) == "one "
    assert len([event for event in events if api.finish(event)]) == 1
    assert is_gone(recording), "nothing is generated after the stop"


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic", "ollama"])
def test_a_whole_answer_of_the_official_client(server: Replay, proxied: Running, api: str) -> None:
    model = server.record(Recording(whole=WHOLES[api]("one END two")))
    if api == "chat":
        answer: Any = client(openai.OpenAI, proxied.url).chat.completions.create(model=model, messages=MESSAGES)
    elif api == "responses":
        answer = client(openai.OpenAI, proxied.url).responses.create(model=model, input="hi")
    elif api == "anthropic":
        made = client(anthropic.Anthropic, proxied.url)
        answer = made.messages.create(model=model, messages=MESSAGES, max_tokens=9)
    else:
        answer = client(ollama.Client, proxied.url).chat(model=model, messages=MESSAGES)
    assert field(answer, *PATHS[api]) == "one "


def test_the_stops_of_a_request(server: Replay, proxied: Running) -> None:
    recording = Recording(wire.chat(["one x", "y two"]))
    made = client(openai.OpenAI, proxied.url)
    stream = made.chat.completions.create(model=server.record(recording), messages=MESSAGES, stream=True, stop="xy")
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one "
    assert chunks[-1].choices[0].model_extra == {"matched_stop": "xy"}
    assert "stop" not in recording.requests[0]


def test_stops_go_on_except_with_api_none(server: Replay, proxied: Running) -> None:
    """For a whole answer, the proxy must send the stops on, so that the server ends the answer. With ``--api none``, it
    must not send them."""
    with running(server.url, "--api", "none") as faulty:
        for url, sent in ((proxied.url, ["END", "two"]), (faulty.url, None)):
            recording = Recording(whole=WHOLES["chat"]("one two"))
            body = {"model": server.record(recording), "messages": MESSAGES, "stop": "two"}
            answer = httpx.post(f"{url}{CHAT}", json=body, timeout=60).json()
            assert answer["choices"][0]["message"]["content"] == "one "
            assert answer["choices"][0]["matched_stop"] == "two"
            assert [body.get("stop") for body in recording.requests] == [sent]


def test_a_silent_proxy_ends_the_wait() -> None:
    """``Running.wait`` must give up after its time limit. It once limited only the number of tries. Each try waited for
    its own timeout, and all together took 50 minutes."""
    silent, _, _ = raw_server(b"", 30)
    made = Running("http://127.0.0.1:9")
    made.url = silent
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        made.wait(1)
    assert time.monotonic() - begun < 15
    made.stop()


@pytest.fixture(scope="module")
def looping(server: Replay) -> Iterator[Running]:
    with running(server.url, "--repeat", "4,100,32") as made:
        yield made


@pytest.mark.parametrize("api", APIS, ids=str)
def test_a_looping_upstream_is_ended(server: Replay, looping: Running, api: Any) -> None:
    recording = loop(api.name)
    events = list(api.open(looping.url, server.record(recording)))
    assert api.read(events) == LOOP * 4
    assert len([event for event in events if api.finish(event)]) == 1
    assert is_gone(recording), "nothing is generated after the loop"


def test_a_looping_answer_ends_after_the_first_copy(server: Replay, looping: Running) -> None:
    body = {"model": server.record(Recording(whole=WHOLES["chat"](LOOP * 9))), "messages": MESSAGES}
    answer = httpx.post(f"{looping.url}{CHAT}", json=body, timeout=60).json()
    assert answer["choices"][0]["message"]["content"] == LOOP


def test_repeat_without_a_value_is_the_default() -> None:
    assert parser().parse_args(["http://a", "--repeat"]).repeat == Repeat()
    assert parser().parse_args(["http://a"]).repeat is None


def test_a_wrong_repeat_ends_the_start_with_a_word() -> None:
    for text, words in (("4", "COUNT,PERIOD,LENGTH"), ("1,100,64", "at least 3")):
        made = Running("http://127.0.0.1:9", "--repeat", text)
        made.process.join(60)
        assert made.process.exitcode == 2
        assert words in made.stop()[1]


def test_wrong_stops_and_too_many_are_a_400(proxied: Running) -> None:
    for stop, words in (([""], "empty"), ([str(n) for n in range(9)], "stop has 9 entries; the limit is 5")):
        answer = httpx.post(f"{proxied.url}{CHAT}", json={"stop": stop, "stream": True})
        assert answer.status_code == 400
        assert words in answer.json()["error"]["message"]


def test_a_body_that_is_too_long_is_a_413(proxied: Running) -> None:
    answer = httpx.post(f"{proxied.url}/v1/messages", content=b"x" * 200_000)
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_headers_of_a_connection_are_not_passed_on() -> None:
    hop = b"Keep-Alive: 5\r\nX-Hop: 1\r\nConnection: X-Hop\r\n"
    answer = b"HTTP/1.1 418 Teapot\r\nX-Own: 1\r\n" + hop + b"Content-Length: 3\r\n\r\n\x00\xff!"
    upstream, read, _ = raw_server(answer)
    with running(f"{upstream}/base/", "--stop", "END") as made:
        headers = {"connection": "x-mine", "x-mine": "1", "x-other": "2", "authorization": "Bearer k"}
        got = httpx.put(f"{made.url}/any/%2Fpath?q=%20", content=b"\x00body", headers=headers)
        out, log = made.stop()
    assert (got.status_code, got.content, got.headers["x-own"]) == (418, b"\x00\xff!", "1")
    assert "x-hop" not in got.headers
    assert "keep-alive" not in got.headers
    sent = read[0].lower()
    assert sent.startswith(b"put /base/any/%2fpath?q=%20 http/1.1")
    assert b"x-other: 2" in sent
    assert b"bearer k" in sent
    assert b"x-mine" not in sent
    assert "Bearer" not in out + log


def test_a_wrong_upstream_or_stop_is_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    for options, words in ((["nowhere"], "http or https"), (["http://a", "--stop", ""], "empty")):
        made = Running(options[0], *options[1:])
        made.process.join(60)
        assert made.process.exitcode == 2
        assert words in made.stop()[1]


def test_the_proxy_says_where_it_listens_and_reads_escapes(server: Replay) -> None:
    with running(server.url, "--escapes", "--stop", r"\n\nQuestion:") as made:
        model = server.record(Recording(whole=WHOLES["chat"]("one\n\nQuestion: two")))
        answer = httpx.post(f"{made.url}{CHAT}", json={"model": model, "messages": MESSAGES}, timeout=60).json()
        assert answer["choices"][0]["message"]["content"] == "one"
    assert made.stop()[1].splitlines()[0] == f"stopscan_clients.proxy listens at {made.url}"


def test_the_module_is_a_command(server: Replay) -> None:
    options = [sys.executable, "-m", "stopscan_clients.proxy", server.url, "--port", "0"]
    with subprocess.Popen(options, stderr=subprocess.PIPE) as made:
        assert made.stderr is not None
        url = made.stderr.readline().decode().split()[-1]
        assert httpx.get(f"{url}/health").json() == {"status": "ok"}
        made.terminate()


@pytest.mark.parametrize("target", [b"/reader/https://host/a", b"http://proxy:8080/reader/https://host/a"])
def test_a_url_within_a_path_keeps_its_host(target: bytes) -> None:
    upstream, read, _ = raw_server(b"HTTP/1.1 204 No Content\r\n\r\n")
    with running(upstream, "--stop", "END") as made, connected(made) as connection:
        connection.sendall(b"GET %b HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" % target)
        head = rest(connection).lower()
    assert read[0].startswith(b"GET /reader/https://host/a HTTP/1.1\r\n")
    assert head.startswith(b"http/1.1 204 ")
    assert b"content-length" not in head


WRONG = [("--port", "99999"), ("--port", "-1"), ("--grace", "-1"), ("--max-stops", "-1"), ("--max-body", "x")]
WRONG += [(option, seconds) for option in ("--timeout", "--request-timeout") for seconds in ("nan", "inf", "-1")]


@pytest.mark.parametrize(("option", "value"), WRONG)
def test_a_number_out_of_range_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, option: str, value: str
) -> None:
    monkeypatch.setattr("stopscan_clients.proxy.__main__.serve", lambda *args, **options: 0)
    with pytest.raises(SystemExit) as raised:
        main(["http://a", option, value])
    assert raised.value.code == 2
    assert f"argument {option}: " in capsys.readouterr().err
    assert main(["http://a", option, "7"]) == 0
