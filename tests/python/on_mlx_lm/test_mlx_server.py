"""``python -m stopscan.mlx_lm.server`` beside the server that it is made of."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import RemoteDisconnected
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import Answer, Server, serving, stream_events
from mlx_lm import server as plain_server
from mlx_lm.generate import TextStateMachine
from mlx_lm.models import llama
from recital import recite
from transformers import ByT5Tokenizer

from stopscan._engine.request import FIELDS
from stopscan.mlx_lm import server as our_server
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

# What is asked: a script, and the request's options.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "no stop": ("count", {}),
    "one token": ("count", {"stop": ["6"]}),
    "as encode spells it": ("alphabet", {"stop": "fgh"}),
    "half characters as encode spells them": ("accents", {"stop": ["é"]}),
    "one that does not come": ("title", {"stop": ["###"]}),
    "held at max_tokens": ("held", {"stop": ["STOP"], "max_tokens": 5}),
    "no text": ("empty", {"stop": ["a"]}),
    "reasoning": ("think", {}),
    "other tokens": ("split", {"stop": ["END"]}),
    "pieces of three tokens": ("count", {"stop": ["hello world"]}),
    "inside a token": ("inside", {"stop": ["END"]}),
    "at the start of a token": ("straddle", {"stop": ["XYZ", "END"]}),
    "long": ("late", {"stop": ["<|end_of_document|>", "never"]}),
    "nested": ("nested", {"stop": ["abc", "b"]}),
    "after a run": ("runs-end", {"stop": ["aab"]}),
    "a run": ("runs", {"stop": ["ab"]}),
    "held at EOS": ("held", {"stop": ["STOP"]}),
    "emoji": ("emoji", {"stop": ["🛑"]}),
    "cjk": ("cjk", {"stop": ["世界"]}),
    "reasoned": ("think", {"stop": ["END"]}),
    "spaces at both ends": ("spaces", {}),
    "half a character at the end": ("broken", {}),
}
# Where mlx_lm.server goes wrong, what it makes of them: the text, and how many tokens it generates.
FAULTS = {
    # The stop is deleted, and the generation goes on.
    "other tokens": ("This is the  of it", 9),
    "pieces of three tokens": ("1, 2, 3  4, 5, 6, 7, 8", 16),
    "inside a token": ("The path WS on", 5),
    "at the start of a token": ("AbcW EN! go", 8),
    "long": (SCRIPTS["late"][0] + "".join(map(str, SCRIPTS["late"][1:15])) + " more", 21),
    "nested": ("xacd y", 7),
    "after a run": ("aaaaaa tail", 11),
    "emoji": ("Go 🚀 then  now 👩\u200d💻.", 12),
    "cjk": ("你好、。再见", 9),
    "reasoned": ("<think>Is it ?</think>It is 5 or 6  here", 18),
    # What is withheld at EOS is lost.
    "a run": ("", 17),
    "held at EOS": ("Please do not ", 7),
    # Its detokenizer trims the first space, and what it withholds at EOS is lost, too.
    "spaces at both ends": ("lead  gap  tail", 8),
    "half a character at the end": ("half ", 3),
}
if not hasattr(TextStateMachine, "split"):  # 0.32.0 reads what it withholds twice
    FAULTS["one that does not come"] = ("Intro\n## Tit# Title\nText", 7)
ENGINES = {"batched": {}, "seeded": {"seed": 1}, "drafted": {}}


@contextmanager
def both(checkpoint: Path, *arguments: Any) -> Iterator[tuple[Server, Server]]:
    with (
        serving(plain_server.main, "--model", checkpoint, *arguments) as plain,
        serving(our_server.main, "--model", checkpoint, *arguments) as ours,
    ):
        yield plain, ours


@pytest.fixture(scope="module")
def servers(checkpoint: Path) -> Iterator[dict[str, tuple[Server, Server]]]:
    """The plain server and ours; a seed makes both serve a request by itself, and so does a draft model."""
    with both(checkpoint) as pair, both(checkpoint, "--draft-model", checkpoint) as drafted:
        yield {"batched": pair, "seeded": pair, "drafted": drafted}


@pytest.fixture(scope="module")
def ours(servers: dict[str, tuple[Server, Server]]) -> Server:
    return servers["batched"][1]


def answer(text: str, tokens: int, chat: bool, finish_reason: str = "stop", matched: str | None = None) -> Answer:
    """The answer with this text; its reasoning is apart in chats, and not shown in completions."""
    reasoning = ""
    if text.startswith("<think>"):
        reasoning, _, text = text.removeprefix("<think>").partition("</think>")
    return Answer(text, reasoning if chat else "", finish_reason, matched, tokens)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("chat", [True, False], ids=["chat", "completion"])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_differences_to_the_plain_server_are_its_faults(
    servers: dict[str, tuple[Server, Server]], reciter: Reciter, engine: str, chat: bool, stream: bool
) -> None:
    plain, ours = servers[engine]
    for case, (name, body) in CASES.items():
        options = {"chat": chat, "stream": stream, **body, **ENGINES[engine]}
        stops = body.get("stop", [])
        stops = [stops] if isinstance(stops, str) else stops
        # In chats, stops are for the answer.
        protect = [THINKING] if chat else []
        recital = recite(SCRIPTS[name], stops, protect=protect, max_tokens=body.get("max_tokens", -1))
        right = answer(recital.text, len(recital.texts), chat, recital.finish_reason, recital.matched)
        assert ours.ask(reciter.prompt(name), **options) == right, case
        right.matched_stop = None
        assert (case in FAULTS) == (plain.ask(reciter.prompt(name), **options) != right), case
        if case in FAULTS:
            assert plain.ask(reciter.prompt(name), **options) == answer(*FAULTS[case], chat), case


def test_what_else_differs_without_a_stop(tmp_path: Path) -> None:
    reciter = Reciter({"marker": ["It is x", " <th"], "beyond": ["a", "b"]})
    checkpoint = reciter.write(tmp_path)
    beyond = json.loads((checkpoint / "config.json").read_text())["vocab_size"] - 1
    with both(checkpoint) as (plain, ours):
        asked = {"prompt": reciter.prompt("marker"), "chat": False}
        assert (plain.ask(**asked).text, ours.ask(**asked).text) == ("It is x ", "It is x <th")
        asked = {"prompt": reciter.prompt("beyond"), "max_tokens": 3, "logit_bias": {str(beyond): 1000}}
        assert (plain.ask(**asked).text, ours.ask(**asked).text) == ("!!!", "")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_prompt_that_is_cached_with_its_answer_needs_a_server_without_a_cache(checkpoint: Path) -> None:
    """mlx-lm's fault: the thread that generates dies of it. It fails when that is repaired."""
    asked = [("[alphabet]", 27), ("[alphabet]abcdefghijklmnopqrstuvwxyz<|eos|>", 1)]
    with serving(plain_server.main, "--model", checkpoint) as plain:
        assert plain.ask(asked[0][0], chat=False).tokens == 27
        with pytest.raises(RemoteDisconnected):
            plain.ask(asked[1][0], chat=False)
    with serving(our_server.main, "--prompt-cache-size", 0, "--model", checkpoint) as ours:
        for prompt, tokens in asked:
            assert ours.ask(prompt, chat=False).tokens == tokens


@pytest.mark.parametrize("chat", [True, False], ids=["chat", "completion"])
@pytest.mark.parametrize("engine", ENGINES)
def test_each_chunk_has_the_text_that_is_safe_by_then(
    servers: dict[str, tuple[Server, Server]], reciter: Reciter, engine: str, chat: bool
) -> None:
    _, ours = servers[engine]
    for name, body in CASES.values():
        if SCRIPTS[name] and SCRIPTS[name][0] == "<think>":
            continue
        prompt = reciter.prompt(name)
        asked = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
        route = "chat/completions" if chat else "completions"
        _, reply = ours.post(route, {**asked, **body, **ENGINES[engine], "stream": True})
        choices = [event["choices"][0] for event in stream_events(reply)]
        texts = [choice["delta"].get("content", "") if chat else choice["text"] for choice in choices]
        stops = body.get("stop", [])
        stops = [stops] if isinstance(stops, str) else stops
        # In chats, stops are for the answer.
        protect = [THINKING] if chat else []
        recital = recite(SCRIPTS[name], stops, protect=protect, max_tokens=body.get("max_tokens", -1))
        assert texts == [*filter(None, recital.texts), ""], name


def test_requests_at_once(ours: Server, reciter: Reciter) -> None:
    asked = [(name, body, chat) for name, body in CASES.values() for chat in (True, False)]

    def ask(one: tuple[str, dict[str, Any], bool]) -> Answer:
        name, body, chat = one
        return ours.ask(reciter.prompt(name), chat=chat, stream=len(name) % 2 == 0, **body)

    one_by_one = [ask(one) for one in asked]
    with ThreadPoolExecutor(len(asked)) as pool:
        assert list(pool.map(ask, asked)) == one_by_one


@contextmanager
def row_steps() -> Iterator[list[int]]:
    """How many rows each step of any Llama has."""
    counted: list[int] = []
    step = llama.Model.__call__

    def counting(model: Any, tokens: Any, *args: Any, **options: Any) -> Any:
        counted.append(tokens.shape[0])
        return step(model, tokens, *args, **options)

    with patch.object(llama.Model, "__call__", counting):
        yield counted


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stop_ends_the_generation(tmp_path: Path, engine: str) -> None:
    """It costs the steps of an EOS at the same place, also if other requests come at the same time."""
    words = [f" word{number}" for number in range(6)]
    scripts = {f"stop{length}": [*words[:length], "W!ND", *words * 2] for length in range(6)}
    reciter = Reciter(scripts | {f"eos{length}": words[:length] for length in range(6)})
    checkpoint = reciter.write(tmp_path)
    draft = ["--draft-model", checkpoint] if engine == "drafted" else []
    with serving(our_server.main, "--model", checkpoint, *draft) as ours, row_steps() as counted:

        def ask(prompt: str) -> Answer:
            return ours.ask(reciter.prompt(prompt), stop=["!N"], **ENGINES[engine])

        def rows(kind: str) -> int:
            counted.clear()
            for length in range(6):
                ask(f"{kind}{length}")
                ask("eos0")  # whatever the first had left undone is done now
            return sum(counted)

        alone = rows("eos")
        assert rows("stop") == alone
        counted.clear()
        with ThreadPoolExecutor() as pool:
            answers = list(pool.map(ask, [f"stop{length}" for length in range(6)] + ["eos0"] * 5))
        ask("eos0")
        assert [answer.tokens for answer in answers] == [1, 2, 3, 4, 5, 6] + [1] * 5
        assert sum(counted) == alone


def test_stop_token_ids(ours: Server, reciter: Reciter) -> None:
    five, six = reciter.token_id("count", "5"), reciter.token_id("count", "6")
    for stream in (False, True):
        got = ours.ask(reciter.prompt("count"), stream=stream, stop_token_ids=[six, five])
        assert got == Answer("1, 2, 3 hello world 4, ", "", "stop", five, 9)
        assert ours.ask(reciter.prompt("count"), stream=stream, stop=["5"], stop_token_ids=[five]).matched_stop == "5"


def test_min_tokens(ours: Server, reciter: Reciter) -> None:
    for min_tokens in range(8):
        got = ours.ask(reciter.prompt("straddle"), stop=["XYZ", "END"], min_tokens=min_tokens)
        recital = recite(SCRIPTS["straddle"], ["XYZ", "END"], min_tokens=min_tokens)
        assert (got.text, got.matched_stop, got.tokens) == (recital.text, recital.matched, len(recital.texts))


def test_include_stop(ours: Server, reciter: Reciter) -> None:
    got = ours.ask(reciter.prompt("inside"), stop="END", include_stop=True)
    assert got == Answer("The path WEND", "", "stop", "END", 3)


def test_options_may_be_null(ours: Server, reciter: Reciter) -> None:
    got = ours.ask(reciter.prompt("held"), **dict.fromkeys(FIELDS))
    assert got == Answer(reciter.text("held"), "", "stop", None, 7)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"stop": ""}, "stop 0 is empty"),
        ({"stop": ["a", ""]}, "stop 1 is empty"),
        ({"stop": 5}, "stop must be a string or a list of strings, not 5"),
        ({"stop": 0}, "stop must be a string or a list of strings, not 0"),
        ({"stop": {"a": 1}}, "stop must be a string or a list of strings, not {'a': 1}"),
        ({"stop": ["a", 5]}, "stop 1: expected str, got int"),
        ({"stop": ["\ud800"]}, "surrogates not allowed"),
        ({"stop_token_ids": 5}, "stop_token_ids must be a list of integers, not 5"),
        ({"stop_token_ids": [5, "6"]}, "stop_token_ids must be a list of integers"),
        ({"stop_token_ids": [True]}, "stop_token_ids must be a list of integers"),
        ({"min_tokens": -1}, "min_tokens must be a number of tokens, not -1"),
        ({"min_tokens": 5, "max_tokens": 4}, "min_tokens must be at most max_tokens, 4"),
        ({"min_tokens": 1.5}, "min_tokens must be a number of tokens, not 1.5"),
        ({"include_stop": 1}, "include_stop must be true or false, not 1"),
        ({"stop_token_ids": [-1]}, "stop_token_ids: -1"),
        ({"stop_token_ids": [5, 2**70]}, f"stop_token_ids: {2**70}"),
        ({"patterns": 5}, "patterns must be a string or a list of strings, not 5"),
        ({"patterns": ["a", "(b"]}, "(b"),
        ({"patterns": ["a*"]}, "a*"),
        ({"protect": True}, "protect must be a list of regions, not True"),
        ({"protect": "thoughts"}, "protect: 'thoughts' is neither a name"),
        ({"protect": ["<a>"]}, "protect: '<a>' is neither a name"),
        ({"protect": [["<a>"]]}, "is not an opening and a closing marker"),
        ({"protect": ["tool_call"]}, "protect: this model has no markers for 'tool_call'"),
        ({"start_protected": 1}, "start_protected must be true or false, not 1"),
        ({"start_protected": True}, "start_protected"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_requests(ours: Server, reciter: Reciter, body: dict[str, Any], message: str, stream: bool) -> None:
    status, reply = ours.post("completions", {"prompt": reciter.prompt("count"), "stream": stream, **body})
    assert status == 400
    assert message in json.loads(reply)["error"]
    assert list(json.loads(reply)) == ["error"]


def test_mlx_lms_own_refusals_stay(servers: dict[str, tuple[Server, Server]]) -> None:
    def refusal(server: Server, body: dict[str, Any]) -> tuple[int, str]:
        try:
            return server.post("completions", body)
        except RemoteDisconnected as error:  # 0.32.0 answers some with nothing
            return 400, str(error)

    for body in ({"max_tokens": "5"}, {"temperature": -1}, {}):
        plain, ours = (refusal(server, body) for server in servers["batched"])
        assert plain == ours
        assert plain[0] >= 400


@pytest.mark.parametrize("asked", [{"logprobs": True}, {"logprobs": True, "top_logprobs": 2}])
def test_logprobs_end_where_the_text_ends(ours: Server, reciter: Reciter, asked: dict[str, Any]) -> None:
    for name, body, kept in (
        ("count", {"stop": ["hello world"]}, 5),
        ("inside", {"stop": ["END"]}, 3),
        ("count", {"stop_token_ids": [reciter.token_id("count", "5")]}, 8),
        ("held", {"stop": ["STOP"], "max_tokens": 5}, 5),
        ("held", {"stop": ["STOP"]}, 7),
    ):
        status, reply = ours.post("completions", {"prompt": reciter.prompt(name), **body, **asked})
        assert status == 200
        content = json.loads(reply)["choices"][0]["logprobs"]["content"]
        assert [entry["id"] for entry in content] == [*reciter.token_ids(name), reciter.eos_token_id][:kept]


def test_protected_reasoning(checkpoint: Path, ours: Server, reciter: Reciter) -> None:
    prompt, body = reciter.prompt("think"), {"stop": ["END"]}
    shown = Answer("", "Is it ", "stop", "END", 6)
    kept = Answer("It is 5 or 6 ", "Is it END?", "stop", "END", 16)
    for stream in (False, True):
        # Stops are for the answer of a chat, unless the request says otherwise; a raw completion is all answer.
        assert ours.ask(prompt, stream=stream, **body) == kept
        assert ours.ask(prompt, stream=stream, protect=[], **body) == shown
        assert ours.ask(prompt, stream=stream, chat=False, **body).tokens == 6
        assert ours.ask(prompt, stream=stream, protect="reasoning", **body) == kept
    with serving(our_server.main, "--protect", "--model", checkpoint) as everywhere:
        assert everywhere.ask(prompt, **body) == shown
    with serving(our_server.main, "--protect", "reasoning", "--model", checkpoint) as protecting:
        assert protecting.ask(prompt, **body) == kept
        assert protecting.ask(prompt, protect=[], **body) == shown
        assert protecting.ask(prompt, protect=None, **body) == kept
        marker = protecting.ask(prompt, stop=["</think>"])
        assert (marker.reasoning, marker.matched_stop) == ("Is it END?", "</think>")


def test_protected_reasoning_that_the_prompt_opened(tmp_path: Path) -> None:
    reciter = Reciter({"open": SCRIPTS["think"], "closed": SCRIPTS["think"][1:]})
    with serving(our_server.main, "--protect", "reasoning", "--model", reciter.write(tmp_path)) as protecting:
        for options in ({}, {"seed": 1}):
            got = protecting.ask("[open]<think>", stop=["END"], **options)
            assert got == Answer("It is 5 or 6 ", "Is it END?", "stop", "END", 15)
            got = protecting.ask("[open]<think>", stop=["END"], start_protected=False, **options)
            assert got == Answer("", "Is it ", "stop", "END", 5)
            got = protecting.ask("[open]<think>", chat=False, stop=["END"], **options)
            assert got == Answer("Is it END?</think>It is 5 or 6 ", "", "stop", "END", 15)
            # What a user writes opens nothing.
            got = protecting.ask("What does <think> mean? [closed]", chat=False, stop=["END"], **options)
            assert got == Answer("Is it ", "", "stop", "END", 5)


def test_patterns(ours: Server, reciter: Reciter) -> None:
    for stream in (False, True):
        got = ours.ask(reciter.prompt("count"), stream=stream, patterns=r"w\w+d \d", stop=["8"])
        assert (got.text, got.matched_stop) == ("1, 2, 3 hello ", "world 4")


def with_tools(checkpoint: Path) -> Path:
    config = json.loads((checkpoint / "tokenizer_config.json").read_text())
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(config | {"tool_parser_type": "json_tools"}))
    return checkpoint


def test_protected_tool_calls(tmp_path: Path) -> None:
    call = ["<tool_call>", '{"name": "say",', ' "arguments": {"x": "EN', 'D"}}', "</tool_call>"]
    reciter = Reciter({"call": [*call, " EN", "D."]}, added_tokens=[*THINKING, "<tool_call>", "</tool_call>"])
    with serving(our_server.main, "--model", with_tools(reciter.write(tmp_path))) as ours:
        for stream in (False, True):
            asked = {"messages": [{"role": "user", "content": "[call]"}], "stop": ["END"], "stream": stream}
            _, reply = ours.post("chat/completions", {**asked, "protect": ["reasoning", "tool_call"]})
            choice = last_choice_with_calls(reply, stream)
            assert choice["calls"] == [("say", '{"x": "END"}')]
            assert (choice["text"], choice["finish_reason"], choice["matched_stop"]) == (" ", "tool_calls", "END")
            _, reply = ours.post("chat/completions", {**asked, "protect": []})
            choice = last_choice_with_calls(reply, stream)
            assert (choice["calls"], choice["finish_reason"], choice["matched_stop"]) == ([], "stop", "END")


def test_the_servers_regions_need_not_be_the_models(checkpoint: Path, reciter: Reciter) -> None:
    arguments = ("--protect", "reasoning", "tool_call", "5 or", "6", "--model", checkpoint)
    with serving(our_server.main, *arguments) as protecting:
        got = protecting.ask(reciter.prompt("think"), stop=["END", "or 6"])
        assert got == Answer("It is 5 or 6 ", "Is it END?", "stop", "END", 16)


@pytest.mark.parametrize("options", [{}, {"seed": 1}], ids=["batched", "seeded"])
def test_a_tokenizer_that_cannot_be_scanned_is_served_without_stops(tmp_path: Path, options: dict[str, Any]) -> None:
    # ByT5's has an EOS, 1, behind each prompt, and then the model counts: 2 is <unk>, 3 the first character.
    checkpoint = Reciter({"count": [f"w{number}" for number in range(120)]}).write(tmp_path)
    for file in checkpoint.glob("tokenizer*"):
        file.unlink()
    ByT5Tokenizer().save_pretrained(checkpoint)
    with serving(our_server.main, "--protect", "reasoning", "--model", checkpoint) as ours:
        for chat, stream in product((False, True), repeat=2):
            got = ours.ask("Hello", chat=chat, stream=stream, max_tokens=100, stop=[], min_tokens=2, **options)
            assert got == Answer("<unk>" + "".join(map(chr, range(99))), "", "length", None, 100)
            for stops in ({"stop": "b"}, {"patterns": ["b"]}, {"stop_token_ids": [99]}):
                status, reply = ours.post("completions", {"prompt": "Hello", "stream": stream, **stops, **options})
                assert (status, "ByT5Tokenizer" in json.loads(reply)["error"]) == (400, True), reply


def test_tool_calls_stay_tool_calls(tmp_path: Path) -> None:
    call = ["<tool_call>", '{"name": "now",', ' "arguments": {}}', "</tool_call>"]
    reciter = Reciter(
        {"call": call, "text": ["Let me", " see ", *call], "stopped": [*call, " EN", "D."]},
        added_tokens=[*THINKING, "<tool_call>", "</tool_call>"],
    )
    with both(with_tools(reciter.write(tmp_path))) as (plain, ours):
        for name, stream in product(("call", "text", "stopped"), (False, True)):
            asked = {"messages": [{"role": "user", "content": reciter.prompt(name)}], "stop": ["END"], "stream": stream}
            choices = [last_choice_with_calls(one.post("chat/completions", asked)[1], stream) for one in (plain, ours)]
            if name == "stopped":
                assert choices[1].pop("matched_stop") == "END"
            assert [choice["finish_reason"] for choice in choices] == ["tool_calls"] * 2
            assert choices[0]["calls"] == choices[1]["calls"] == [("now", "{}")]
            assert choices[1]["text"] == {"call": "", "text": "Let me see ", "stopped": " "}[name]
            _, reply = ours.post("chat/completions", {**asked, "max_tokens": 5})
            assert last_choice_with_calls(reply, stream)["finish_reason"] == (
                "tool_calls" if name == "call" else "length"
            )


def last_choice_with_calls(reply: str, stream: bool) -> dict[str, Any]:
    replies = stream_events(reply) if stream else [json.loads(reply)]
    parts = [one["choices"][0].get("delta") or one["choices"][0]["message"] for one in replies]
    functions = [call["function"] for part in parts for call in part.get("tool_calls", [])]
    return {
        **replies[-1]["choices"][0],
        "calls": [(function["name"], function["arguments"]) for function in functions],
        "text": "".join(part.get("content") or "" for part in parts),
    }


def test_a_client_that_leaves_does_not_end_the_others(ours: Server, reciter: Reciter) -> None:
    body = {"prompt": reciter.prompt("late"), "stop": ["more"], "stream": True}
    data = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", ours.port)) as leaving:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
        leaving.sendall(head.encode() + data)
        leaving.recv(64)
    assert ours.ask(reciter.prompt("count"), stop=["6"]).matched_stop == "6"


@pytest.mark.parametrize(("chat", "kind"), [(True, "chat.completion.chunk"), (False, "text_completion")])
def test_every_chunk_of_a_stream_has_its_type(ours: Server, reciter: Reciter, chat: bool, kind: str) -> None:
    prompt = reciter.prompt("count")
    asked = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
    body = {**asked, "stop": "5", "stream": True, "stream_options": {"include_usage": True}}
    _, reply = ours.post("chat/completions" if chat else "completions", body)
    chunks = [json.loads(line.removeprefix("data: ")) for line in reply.splitlines() if "{" in line]
    assert [chunk["object"] for chunk in chunks] == [kind] * len(chunks)
    assert chunks[-1]["usage"]["completion_tokens"] == 9


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_the_answer_of_a_client_that_left_is_not_generated(tmp_path: Path, engine: str, stream: bool) -> None:
    checkpoint = Reciter({"long": [" word"] * 4000}).write(tmp_path)
    draft = ["--draft-model", checkpoint] if engine == "drafted" else []
    body = {"prompt": "[long]", "stop": ["never"], "max_tokens": 4000, "stream": stream, **ENGINES[engine]}
    data = json.dumps(body).encode()
    with serving(our_server.main, "--model", checkpoint, *draft) as ours, row_steps() as counted:
        with socket.create_connection(("127.0.0.1", ours.port)) as leaving:
            head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
            leaving.sendall(head.encode() + data)
            while len(counted) < 5:
                time.sleep(0.01)
        before = -1
        while before != len(counted):
            before = len(counted)
            time.sleep(0.3)
        # Drafted tokens are checked five at a time.
        assert len(counted) < 2000 / (5 if engine == "drafted" else 1)


def test_the_command(checkpoint: Path, reciter: Reciter, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stopscan.mlx_lm.server"]
    told = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert {"--protect", "reasoning,", "--decode-concurrency"} <= {*told.split()}
    refused = subprocess.run([*command, "--no-such-argument"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "--no-such-argument" in refused.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command += ["--model", str(checkpoint), "--protect", "reasoning", "--port", str(port)]
    log = tmp_path / "log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            for _ in range(600):
                assert process.poll() is None, log.read_text()
                try:
                    got = Server(port).ask(reciter.prompt("think"), stop=["END"])
                    break
                except OSError:
                    time.sleep(0.1)
            assert got == Answer("It is 5 or 6 ", "Is it END?", "stop", "END", 16)
        finally:
            process.send_signal(signal.SIGTERM)
