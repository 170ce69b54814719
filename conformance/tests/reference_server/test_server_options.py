"""The options about stops, which are the same on all routes, and the defaults that an operator sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_harness import Engine, clients, served

from stopscan import Repeat
from stopscan.engines import Defaults
from stopscan_conformance.reciter import Reciter

CHAT = [{"role": "user", "content": "[think]"}]


@pytest.fixture(scope="module")
def model(reciter: Reciter, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(reciter.write(tmp_path_factory.mktemp("options") / "reciter"))


@pytest.fixture(scope="module")
def everywhere(model: str) -> Iterator[httpx.Client]:
    """A client of a server whose stops fire everywhere by default, also in reasoning."""
    with served(Engine(model), defaults=Defaults(())) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def chat(client: Any, **options: Any) -> tuple[str, str | None]:
    """Returns the answer and the stop that fired."""
    (choice,) = client.openai.chat.completions.create(model=client.model, messages=CHAT, extra_body=options).choices
    return choice.message.content, getattr(choice, "matched_stop", None)


def text(client: Any, prompt: str = "[think]", **options: Any) -> tuple[str, str | None]:
    (choice,) = client.openai.completions.create(model=client.model, prompt=prompt, extra_body=options).choices
    return choice.text, getattr(choice, "matched_stop", None)


def test_stops_are_for_the_answer_where_the_route_knows_it(client: Any) -> None:
    assert chat(client, stop="END") == ("It is 5 or 6 ", "END")
    assert chat(client, stop="END", protect=None) == ("It is 5 or 6 ", "END")
    assert chat(client, stop="END", protect=[]) == ("", "END")
    assert text(client, stop="END") == ("<think>Is it ", "END")
    assert text(client, stop="END", protect=None) == ("<think>Is it ", "END")
    assert text(client, stop="END", protect=["reasoning"]) == ("<think>Is it END?</think>It is 5 or 6 ", "END")


def test_pairs_of_markers_are_protected_in_text(client: Any) -> None:
    whole = "<think>Is it END?</think>It is 5 or 6 "
    assert text(client, stop="END", protect=["<think>", "</think>"]) == (whole, "END")
    assert text(client, stop="END", protect=["tool_call", "<think>", "</think>"]) == (whole, "END")


def test_pairs_of_markers_are_protected_where_parts_come_apart(client: Any) -> None:
    """Routes that separate reasoning from the answer must also accept a pair of markers in `protect`."""
    assert chat(client, stop="END", protect=["<think>", "</think>"]) == ("It is 5 or 6 ", "END")
    assert chat(client, stop=["5", "6"], protect=["is", "or"]) == ("It is 5 or ", "6")
    assert chat(client, stop=["END", "it"], protect=["Is", "?"]) == ("It is 5 or 6 ", "END")
    reply = client.openai.responses.create(
        model=client.model, input="[think]", extra_body={"stop": ["it", "5"], "protect": ["Is", "?"]}
    )
    assert [item.content[0].text for item in reply.output] == ["Is it END?", "It is "]


def test_a_stop_that_is_a_marker_wins_on_all_routes(client: Any) -> None:
    """A stop that is also a marker fires on all routes: chat routes must not refuse it."""
    options = {"stop": ["5", "END"], "protect": ["reasoning", "5", "6"]}
    assert chat(client, **options) == ("It is ", "5")
    assert text(client, **options) == ("<think>Is it END?</think>It is ", "5")
    assert chat(client, stop=["<think>", "END"]) == ("", "<think>")


LOOPING = {"repeat": [3, 20, 32]}
ONCE = "Wait, "


@pytest.fixture(scope="module")
def looping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    scripts = {"loop": ["Well. ", *[ONCE] * 500], "muse": ["<think>", *[ONCE] * 500]}
    with served(Engine(str(Reciter(scripts).write(tmp_path_factory.mktemp("loop") / "reciter")))) as url:
        yield clients(url)


def test_a_loop_ends_the_answer_on_all_routes(looping: Any) -> None:
    told = "Well. Wait,"  # the loop begins with the space after "Well."
    asked: Any = [{"role": "user", "content": "[loop]"}]
    (choice,) = looping.openai.chat.completions.create(model="reciter", messages=asked, extra_body=LOOPING).choices
    assert (choice.message.content, choice.finish_reason) == (told, "stop")
    (choice,) = looping.openai.completions.create(model="reciter", prompt="[loop]", extra_body=LOOPING).choices
    assert (choice.text, choice.finish_reason) == (told, "stop")
    response = looping.openai.responses.create(model="reciter", input="[loop]", extra_body=LOOPING)
    assert (response.output_text, response.status) == (told, "completed")
    message = looping.anthropic.messages.create(model="reciter", messages=asked, max_tokens=999, extra_body=LOOPING)
    assert (message.content[0].text, message.stop_reason) == (told, "end_turn")
    assert message.usage.output_tokens < 20
    for path, body in (("/api/chat", {"messages": asked}), ("/api/generate", {"prompt": "[loop]"})):
        answer = looping.http.post(path, json={"options": LOOPING, "stream": False, **body}).json()
        assert (answer.get("response") or answer["message"]["content"], answer["done_reason"]) == (told, "stop")
    answer = looping.http.post("/generate", json={"text": "[loop]", "sampling_params": LOOPING}).json()
    assert answer["text"] == told


def test_a_stream_and_include_stop_have_all_of_a_loop(looping: Any) -> None:
    body = {"model": "reciter", "prompt": "[loop]", "extra_body": LOOPING}
    streamed = "".join(chunk.choices[0].text for chunk in looping.openai.completions.create(stream=True, **body))
    body["extra_body"] = {**LOOPING, "include_stop": True}
    (choice,) = looping.openai.completions.create(**body).choices
    assert streamed == choice.text == ("Well. " + 500 * ONCE)[: 5 + 32]


def test_a_loop_in_the_reasoning_ends_it(looping: Any) -> None:
    asked: Any = [{"role": "user", "content": "[muse]"}]
    (choice,) = looping.openai.chat.completions.create(model="reciter", messages=asked, extra_body=LOOPING).choices
    assert (choice.message.content, choice.message.reasoning_content, choice.finish_reason) == ("", ONCE, "stop")


def test_the_operators_repeat_and_a_request_without(tmp_path: Path) -> None:
    model = Reciter({"long": ["word "] * 200}, special_tokens=[]).write(tmp_path / "reciter")
    repeat = Repeat(3, max_period=20, min_length=32)
    with served(Engine(str(model)), defaults=Defaults(repeat=repeat)) as url:
        own = clients(url)
        body = {"model": own.model, "prompt": "[long]", "max_tokens": 60}
        assert own.openai.completions.create(**body).usage.completion_tokens < 60
        assert own.openai.completions.create(**body, extra_body={"repeat": False}).usage.completion_tokens == 60


@pytest.mark.parametrize(
    ("repeat", "message"),
    [
        ("4,1024,256", "repeat must be true, false or [count, max_period, min_length]"),
        ([4, 1024], "repeat must be true, false or [count, max_period, min_length]"),
        ([1, 1024, 256], "repeat count must be at least 3, not 1"),
    ],
)
def test_what_is_no_repeat_is_refused_by_name(client: Any, repeat: Any, message: str) -> None:
    response = client.http.post("/v1/completions", json={"prompt": "[count]", "repeat": repeat})
    assert (response.status_code, response.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize("ask", [chat, text])
def test_the_stop_can_be_included(client: Any, ask: Any) -> None:
    answer, stop = ask(client, stop="5", include_stop=True)
    assert (answer.removeprefix("<think>Is it END?</think>"), stop) == ("It is 5", "5")


def test_a_stop_counts_after_so_many_tokens(client: Any) -> None:
    early, _ = text(client, "[count]", stop=["2", "6"])
    assert text(client, "[count]", stop=["2", "6"], min_tokens=5) == ("1, 2, 3 hello world 4, 5, ", "6")
    assert early == "1, "


def test_patterns_that_hold_for_ever_need_a_limit(client: Any) -> None:
    assert text(client, "[count]", patterns=["3.*5"], max_held=20) == ("1, 2, ", "3 hello world 4, 5")


@pytest.mark.parametrize("options", [{"top_k": 5}, {"min_p": 0.1}, {"top_k": 1, "temperature": 1.5}])
def test_samplers_of_mlx_lm(client: Any, options: dict[str, Any]) -> None:
    assert text(client, "[count]", stop="5", **options) == ("1, 2, 3 hello world 4, ", "5")


def test_the_operator_says_where_stops_sleep(everywhere: httpx.Client) -> None:
    def answer(**options: Any) -> str:
        body = {"messages": CHAT, "stop": "END", **options}
        reply = everywhere.post("/v1/chat/completions", json=body).json()
        return str(reply["choices"][0]["message"]["content"])

    assert answer() == ""
    assert answer(protect=["reasoning"]) == "It is 5 or 6 "


def test_nothing_of_the_server_is_private() -> None:
    """A copy of the server needs only the library's public names."""
    for path in (Path(__file__).parents[2] / "reference_server").glob("*.py"):
        assert "stopscan._" not in path.read_text(encoding="utf-8")
