"""What a request may cost the others: prompts of any size, clients that do not go on, and clients that do not read."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from server_harness import APIS, MAX_VALUES, Connection, CountingEngine, check, raw_body, running, served
from starlette.exceptions import HTTPException

from stopscan_conformance.reciter import Reciter

LONG = 2_000
COUNT = {"prompt": "[count]", "stop": "5"}


@pytest.fixture
def own(model: str, tmp_path: Path) -> str:
    """A copy of the model."""
    return str(shutil.copytree(model, tmp_path / "own"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    reciter = Reciter({"long": ["word "] * LONG, "count": "123456789"}, special_tokens=[])
    return str(reciter.write(tmp_path_factory.mktemp("limits") / "reciter"))


@pytest.fixture(scope="module")
def engine(model: str) -> CountingEngine:
    return CountingEngine(model)


@pytest.fixture(scope="module")
def url(engine: CountingEngine) -> Iterator[str]:
    with served(engine) as url:
        yield url


def serves(url: str) -> bool:
    return httpx.post(f"{url}/v1/completions", json=COUNT, timeout=60).json()["choices"][0]["text"] == "1234"


def connected(url: str) -> socket.socket:
    place = urlsplit(url)
    assert place.hostname
    return socket.create_connection((place.hostname, place.port), timeout=30)


CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": f"[{'[],' * 600_000}[]]"}}
HEAVY: dict[str, tuple[str, bytes]] = {
    "3.9 MB of text": ("/v1/completions", json.dumps({"prompt": "x" * 3_900_000}).encode()),
    "1.9 MB of text": ("/v1/completions", json.dumps({"prompt": "x" * 1_900_000}).encode()),
    "1.9 MB of escapes": ("/v1/completions", b'{"prompt": "' + rb"\n" * 950_000 + b'"}'),
    "900,000 token ids": ("/v1/completions", b'{"prompt": [' + b"1," * 900_000 + b"1]}"),
    "60,000 messages": (
        "/v1/chat/completions",
        b'{"messages": [' + b'{"role": "user", "content": "x"},' * 60_000 + b'{"role": "user", "content": "x"}]}',
    ),
    "600,000 lists": ("/v1/chat/completions", b'{"messages": [' + b"[]," * 600_000 + b"[]]}"),
    "600,000 lists in a call": (
        "/v1/chat/completions",
        json.dumps({"messages": [{"role": "assistant", "content": "", "tool_calls": [CALL]}]}).encode(),
    ),
    "a field's name of 1.9 MB": ("/v1/chat/completions", json.dumps({"messages": [], "x" * 1_900_000: 1}).encode()),
    "100,000 unknown fields": ("/api/chat", b"{" + b",".join(b'"%d":0' % n for n in range(100_000)) + b"}"),
}


WRONG = {
    "/v1/chat/completions": [
        {"messages": [1]},
        {"messages": [{"role": "user", "content": [1]}]},
        {"messages": [{"role": "assistant", "tool_calls": [1]}]},
        {"messages": [{"role": "user", "content": "a"}], "tools": [1]},
        {"messages": [{"role": "user", "content": "a"}], "stop": [1], "patterns": [1], "stop_token_ids": ["a"]},
    ],
    "/v1/completions": [{"prompt": ["a", 1]}, {"prompt": [1, "a"]}, {"prompt": [["a"]]}],
    "/v1/responses": [{"input": [1]}, {"input": [{"role": "user", "content": [1]}]}, {"input": "a", "tools": [1]}],
    "/v1/messages": [
        {"max_tokens": 9, "messages": [1]},
        {"max_tokens": 9, "messages": [{"role": "user", "content": [1]}], "tools": [1]},
    ],
    "/api/chat": [{"messages": [1], "tools": [1]}],
    "/generate": [{"input_ids": ["a"]}],
}


@pytest.mark.parametrize("path", WRONG)
def test_one_wrong_item_of_a_list_is_told(path: str) -> None:
    """Of 250,000 wrong numbers pydantic made as many errors, for 0.7 s in which nothing else ran."""
    api = next(api for api in APIS if api.path == path)
    for body in WRONG[path]:
        errors = []
        for times in (1, 50):
            raw = json.dumps({name: longer(value, times) for name, value in body.items()})
            with pytest.raises(ValidationError) as error:
                api.body.model_validate_json(raw)
            errors.append(error.value.error_count())
        assert errors[0] == errors[1] <= 3, body


def longer(value: Any, times: int) -> Any:
    """The value, with each list's last item so many times."""
    if isinstance(value, dict):
        return {name: longer(item, times) for name, item in value.items()}
    if isinstance(value, list):
        inner = [longer(item, times) for item in value]
        return inner[:-1] + inner[-1:] * times
    return value


@pytest.mark.parametrize("name", HEAVY)
def test_what_is_too_much_is_refused_at_once(url: str, name: str) -> None:
    path, body = HEAVY[name]
    response = httpx.post(f"{url}{path}", content=body, timeout=60)
    assert response.status_code in (400, 413)
    assert response.json()["error"]
    assert len(response.content) < 1_200


def test_heavy_requests_hold_up_nobody(own: str) -> None:
    """20 streams and /health, without and with the heaviest requests beside them. Before: 46 s.

    In this model's context 1.9 MB of text may fit, and are made into tokens.
    """
    place = Path(own, "config.json")
    config = json.loads(place.read_text(encoding="utf-8"))
    place.write_text(json.dumps({**config, "max_position_embeddings": 250_000}), encoding="utf-8")

    def heavy(url: str, over: threading.Event) -> None:
        for path, body in cycle(HEAVY.values()):
            if over.is_set():
                return
            assert httpx.post(f"{url}{path}", content=body, timeout=300).status_code in (400, 413)

    with running(own) as (_, url):
        alone = longest_gaps(url, lambda over: None)
        beside = longest_gaps(url, lambda over: heavy(url, over))
    print(f"longest gaps of a stream and of /health, alone {alone} and beside {beside} s")
    for before, after in zip(alone, beside, strict=True):
        assert after < before + 5, (alone, beside)  # on a quiet machine they differ by milliseconds


def longest_gaps(url: str, beside: Callable[[threading.Event], None]) -> tuple[float, float]:
    """Of 20 streams, and of /health, in seconds."""
    over = threading.Event()

    def stream(_: int) -> float:
        body = {"prompt": "[long]", "stream": True, "max_tokens": 300}
        with httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=300) as response:
            return longest(line for line in response.iter_lines() if "word" in line)

    def health() -> float:
        with httpx.Client(base_url=url, timeout=300) as client:
            return longest(client.get("/health") for _ in iter(over.is_set, True) if not time.sleep(0.002))

    with ThreadPoolExecutor(22) as pool:
        others = [pool.submit(health), pool.submit(beside, over)]
        try:
            gaps = list(pool.map(stream, range(20)))
        finally:
            over.set()
        others[1].result()
        return max(gaps), others[0].result()


def longest(events: Iterable[object]) -> float:
    stamps = [time.perf_counter() for _ in events]
    return max(after - before for before, after in pairwise(stamps))


@pytest.mark.parametrize("numbers", [0, 10])
def test_values_are_counted_where_they_are_values(numbers: int) -> None:
    texts = json.dumps({"text": '[{",' * 50_000 + "\\", "more": ['"', "\\\\", "a"]}).encode()
    check(texts, numbers)
    check(b'["' + b"a" * 100_000, numbers)  # no JSON
    with pytest.raises(HTTPException, match="values"):
        check(b'["a",' * (MAX_VALUES // 2 + 1), numbers)
    check(b"[" + b"1," * (MAX_VALUES + numbers) + b"1]", numbers)
    with pytest.raises(HTTPException, match="numbers"):
        check(b"[" + b"1," * (MAX_VALUES + numbers + 1) + b"1]", numbers)


def values(part: Any) -> int:
    """Strings, lists and objects, by the parser."""
    if isinstance(part, dict):
        return 1 + sum(1 + values(item) for item in part.values())
    return 1 + sum(map(values, part)) if isinstance(part, list) else int(isinstance(part, str))


JSON = st.recursive(
    st.none() | st.integers() | st.text() | st.text('"\\[{,'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('"\\[{a', max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(body=JSON, ascii_only=st.booleans())
def test_as_many_values_as_the_parser_finds(body: Any, ascii_only: bool) -> None:
    raw = json.dumps(body, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_body, "MAX_VALUES", values(body))
        check(raw, 10**6)
        if values(body):
            patch.setattr(raw_body, "MAX_VALUES", values(body) - 1)
            with pytest.raises(HTTPException, match="values"):
                check(raw, 10**6)


def test_half_a_head_is_not_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.3)
    whole = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
    for before, begin in ((b"", b""), (b"", b"POST /v1/comp"), (whole, b"POST /v1/completions HTTP/1.1\r\nHost")):
        with connected(url) as half:
            if before:
                half.sendall(before)
                assert b'"ok"' in received(half, until=b'"ok"')
            half.sendall(begin)
            begun = time.monotonic()
            assert received(half) == b""
            assert time.monotonic() - begun < 4  # uvicorn's own limit for idle connections is 5 s
    assert serves(url)


def test_a_head_of_many_lines_is_refused(url: str) -> None:
    """15,000 lines held the loop for 50 ms: h11 takes them all at once."""
    lines = b"".join(b"a%d:\r\n" % number for number in range(Connection.head_lines + 200))
    for head in (lines, b"a:" + b"x" * (Connection.head_bytes + Connection.step_bytes)):
        with connected(url) as client:
            client.sendall(b"GET /health HTTP/1.1\r\n" + head)
            assert b" 400 " in received(client)
    with connected(url) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n" + lines[:400] + b"Cookie: " + b"x" * 8_000 + b"\r\n\r\n")
        assert b" 200 " in received(client)
    assert serves(url)


def received(client: socket.socket, until: bytes = b"") -> bytes:
    """What the server sends, up to these bytes: a head and its body may come together or apart."""
    data = b""
    try:
        while (more := client.recv(4096)) and until not in (data := data + more):
            pass
    except ConnectionResetError:
        pass
    return data


def test_half_a_body_is_not_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_body, "BODY_SECONDS", 0.3)
    with connected(url) as half:
        half.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{")
        answer = received(half, until=b'"type":"error"')
    assert b" 408 " in answer
    assert b'"type":"error"' in answer
