"""The options ``repeat`` and ``max_held`` of the server for mlx-lm, and the number of reasoning tokens in the usage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from forms_said import FORMS, THOUGHT, write
from looping import LOOPS, ended
from mlx_harness import Server, serving, stream_events
from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import Repeat
from stopscan.mlx_lm import _row, server
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

SAID = Reciter({**LOOPS, "think": SCRIPTS["think"], "count": SCRIPTS["count"]})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SAID.write(tmp_path_factory.mktemp("loops"))


@pytest.fixture(scope="module")
def plain(path: Path) -> Iterator[Server]:
    with serving(server.main, "--model", path) as running:
        yield running


@pytest.fixture(scope="module")
def careful(path: Path) -> Iterator[Server]:
    """A server with a default for ``repeat``."""
    with serving(server.main, "--repeat", "3,1024,64", "--model", path) as running:
        yield running


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("options", [{}, {"seed": 1}], ids=["batched", "seeded"])
def test_a_request_may_ask_for_repeat(plain: Server, stream: bool, options: dict[str, Any]) -> None:
    for repeat, meant in ((True, Repeat()), ([3, 1024, 64], Repeat(3, min_length=64))):
        text, tokens, _ = ended("lines", meant)
        got = plain.ask("[lines]", stream=stream, max_tokens=900, repeat=repeat, **options)
        assert (got.text, got.finish_reason, got.matched_stop, got.tokens) == (text, "stop", None, tokens)


def test_a_loop_in_the_reasoning_ends_it(plain: Server) -> None:
    """No stop fires in the reasoning. But a loop there must end the generation, because most loops begin in the
    reasoning."""
    text, tokens, _ = ended("thoughts")
    got = plain.ask("[thoughts]", stop=["check"], repeat=True, max_tokens=900)
    assert (got.text, "<think>" + got.reasoning, got.tokens) == ("", text, tokens)


def test_without_it_a_loop_goes_on(plain: Server, careful: Server) -> None:
    for server_, repeat in ((plain, None), (plain, False), (careful, False)):
        got = server_.ask("[sentence]", max_tokens=900, repeat=repeat)
        assert got.text == "".join(LOOPS["sentence"])


def test_a_servers_default(careful: Server) -> None:
    for repeat, meant in ((None, Repeat(3, min_length=64)), (True, Repeat())):
        got = careful.ask("[sentence]", max_tokens=900, repeat=repeat, stop=["never"])
        assert (got.text, got.tokens) == ended("sentence", meant)[:2]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"repeat": 5}, "repeat must be true, false or [count, max_period, min_length]"),
        ({"repeat": [2, 1024, 256]}, "repeat count"),
        ({"repeat": [4, 1024, 2**70]}, "repeat "),
        ({"max_held": -1}, "max_held must be an integer from 0 to 2147483647, not -1"),
        ({"max_held": True}, "max_held must be an integer from 0 to 2147483647, not True"),
        ({"max_held": "5"}, "max_held must be an integer from 0 to 2147483647, not '5'"),
        ({"patterns": "a.*b"}, "max_held"),
    ],
)
def test_bad_values_are_told(plain: Server, body: dict[str, Any], message: str) -> None:
    status, reply = plain.post("completions", {"prompt": "[count]", **body})
    assert (status, message in json.loads(reply)["error"]["message"]) == (400, True), reply


def test_max_held_permits_an_endless_pattern(plain: Server) -> None:
    got = plain.ask("[count]", chat=False, patterns="3.*4", max_held=20)
    assert (got.text, got.matched_stop) == ("1, 2, ", "3 hello world 4")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_usage_of_chats_counts_reasoning_tokens(plain: Server, stream: bool) -> None:
    def usage(route: str, fields: dict[str, Any], **options: Any) -> Any:
        streaming = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        status, reply = plain.post(route, {**fields, **streaming, **options})
        assert status == 200, reply
        return (stream_events(reply)[-1] if stream else json.loads(reply))["usage"]

    def thought(name: str, **options: Any) -> int:
        fields = {"messages": [{"role": "user", "content": f"[{name}]"}]}
        return usage("chat/completions", fields, **options)["completion_tokens_details"]["reasoning_tokens"]

    assert THINKING[0] == SCRIPTS["think"][0]
    between = SCRIPTS["think"].index(THINKING[1]) - 1
    assert thought("think") == thought("think", stop=["END"]) == between
    # With `protect=[]`, the stop fires in the reasoning, so the reasoning ends early. The tokens of the stop are not
    # part of the answer, so they do not count.
    assert thought("think", stop=["END"], protect=[]) < between
    assert thought("count") == 0
    assert "completion_tokens_details" not in usage("completions", {"prompt": "[think]"})


def test_model_without_reasoning_lacks_the_field(plain: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TokenizerWrapper, "has_thinking", False)
    monkeypatch.setattr(_row, "graph_of", lambda _: None)
    _, reply = plain.post("chat/completions", {"messages": [{"role": "user", "content": "[count]"}]})
    assert "completion_tokens_details" not in json.loads(reply)["usage"]


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_that_chat_templates_tell(form: str, tmp_path: Path) -> None:
    """In OpenAI's Harmony and Mistral's ``[THINK]`` formats, mlx-lm does not separate the reasoning from the answer.
    The client gets the reasoning as content, so stops fire there, unless the request protects the reasoning."""
    _, thought, answered = FORMS[form]
    with serving(server.main, "--model", write(form, tmp_path)) as running:
        for options, text in (({}, thought), ({"protect": ["reasoning"]}, answered), ({"protect": []}, thought)):
            got = running.ask("[said]", stop=["END"], **options)
            assert (got.text, got.matched_stop) == (text, "END")
        body = {"messages": [{"role": "user", "content": "[said]"}], "stop": ["END"], "protect": ["reasoning"]}
        usage = json.loads(running.post("chat/completions", body)[1])["usage"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": THOUGHT[form]}
