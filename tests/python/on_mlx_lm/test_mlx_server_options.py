"""Valid and invalid options of requests to stopscan's server for mlx-lm."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import Answer, Server, serving
from recital import recite
from transformers import ByT5Tokenizer

from stopscan.mlx_lm import server as our_server
from stopscan_conformance.reciter import SCRIPTS, Reciter

OPTIONS = (
    "stop", "patterns", "max_held", "stop_token_ids", "min_tokens", "include_stop", "protect", "start_protected",
    "repeat",
)  # fmt: skip


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
    got = ours.ask(reciter.prompt("held"), **dict.fromkeys(OPTIONS))
    assert got == Answer(reciter.text("held"), "", "stop", None, 7)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"stop": ""}, "stop is malformed: stop 0 is empty"),
        ({"stop": ["a", ""]}, "stop is malformed: stop 1 is empty"),
        ({"stop": 5}, "stop must be a string or a list of strings, not 5"),
        ({"stop": 0}, "stop must be a string or a list of strings, not 0"),
        ({"stop": {"a": 1}}, "stop must be a string or a list of strings, not {'a': 1}"),
        ({"stop": ["a", 5]}, "stop must be a string or a list of strings, not ['a', 5]"),
        ({"stop": ["\ud800"]}, "surrogates not allowed"),
        ({"stop_token_ids": 5}, "stop_token_ids must be a list of token ids, not 5"),
        ({"stop_token_ids": [5, "6"]}, "stop_token_ids must be a list of token ids"),
        ({"stop_token_ids": [True]}, "stop_token_ids must be a list of token ids"),
        ({"min_tokens": -1}, "min_tokens must be an integer from 0 to 2147483647, not -1"),
        ({"min_tokens": 5, "max_tokens": 4}, "min_tokens must be at most max_tokens, 4"),
        ({"min_tokens": 1.5}, "min_tokens must be an integer from 0 to 2147483647, not 1.5"),
        ({"include_stop": 2}, "include_stop must be true or false, not 2"),
        ({"stop_token_ids": [-1]}, "stop_token_ids must be a list of token ids, not [-1]"),
        ({"stop_token_ids": [5, 2**70]}, "stop_token_ids must be a list of token ids"),
        ({"patterns": 5}, "patterns must be a string or a list of strings, not 5"),
        ({"patterns": ["a", "(b"]}, "(b"),
        ({"patterns": ["a*"]}, "a*"),
        ({"protect": True}, "protect must be a list of names of regions or pairs of markers, not True"),
        ({"protect": "thoughts"}, "protect 'thoughts' is not a region"),
        ({"protect": ["<a>"]}, "protect '<a>' is not a region"),
        ({"protect": [["<a>"]]}, "is not a pair of an opening and a closing marker"),
        ({"protect": ["tool_call"]}, "protect: this model has no markers for 'tool_call'"),
        ({"start_protected": "1"}, "start_protected must be true or false, not '1'"),
        ({"start_protected": True}, "start_protected"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_requests(ours: Server, reciter: Reciter, body: dict[str, Any], message: str, stream: bool) -> None:
    status, reply = ours.post("completions", {"prompt": reciter.prompt("count"), "stream": stream, **body})
    assert status == 400
    error = json.loads(reply)["error"]
    assert message in error.pop("message")
    assert error == {"type": "invalid_request_error", "param": None, "code": None}
    assert list(json.loads(reply)) == ["error"]


@pytest.mark.parametrize("fields", [{"logprobs": True}, {"logprobs": True, "top_logprobs": 2}])
def test_logprobs_end_where_the_text_ends(ours: Server, reciter: Reciter, fields: dict[str, Any]) -> None:
    for name, body, kept in (
        ("count", {"stop": ["hello world"]}, 5),
        ("inside", {"stop": ["END"]}, 3),
        ("count", {"stop_token_ids": [reciter.token_id("count", "5")]}, 8),
        ("held", {"stop": ["STOP"], "max_tokens": 5}, 5),
        ("held", {"stop": ["STOP"]}, 7),
    ):
        status, reply = ours.post("completions", {"prompt": reciter.prompt(name), **body, **fields})
        assert status == 200
        content = json.loads(reply)["choices"][0]["logprobs"]["content"]
        assert [entry["id"] for entry in content] == [*reciter.token_ids(name), reciter.eos_token_id][:kept]


def test_patterns(ours: Server, reciter: Reciter) -> None:
    for stream in (False, True):
        got = ours.ask(reciter.prompt("count"), stream=stream, patterns=r"w\w+d \d", stop=["8"])
        assert (got.text, got.matched_stop) == ("1, 2, 3 hello ", "world 4")


@pytest.mark.parametrize("options", [{}, {"seed": 1}], ids=["batched", "seeded"])
def test_unknown_tokenizer_is_served_with_stops(tmp_path: Path, options: dict[str, Any]) -> None:
    # ByT5's tokenizer ends each prompt with EOS, whose id is 1. This model always generates the next higher id, so its
    # answer is the ids 2, 3, 4 and so on. In ByT5, the id 2 is <unk>, the id 3 is chr(0), and the id 4 is chr(1).
    checkpoint = Reciter({"count": [f"w{number}" for number in range(120)]}).write(tmp_path)
    for file in checkpoint.glob("tokenizer*"):
        file.unlink()
    ByT5Tokenizer().save_pretrained(checkpoint)
    with serving(our_server.main, "--protect", "reasoning", "--model", checkpoint) as ours:
        for chat, stream in product((False, True), repeat=2):
            got = ours.ask("Hello", chat=chat, stream=stream, max_tokens=100, stop=[], min_tokens=2, **options)
            assert got == Answer("<unk>" + "".join(map(chr, range(99))), "", "length", None, 100)
            for stops, end in (({"stop": "b"}, "b"), ({"patterns": "[b]"}, "b"), ({"stop_token_ids": [99]}, 99)):
                got = ours.ask("Hello", chat=chat, stream=stream, max_tokens=100, **{"stop": [], **stops}, **options)
                assert (got.text, got.matched_stop) == (
                    "<unk>" + "".join(map(chr, range(ord("b") if end == "b" else 96))),
                    end,
                )


@pytest.mark.parametrize(("chat", "kind"), [(True, "chat.completion.chunk"), (False, "text_completion")])
def test_every_chunk_of_a_stream_has_its_type(ours: Server, reciter: Reciter, chat: bool, kind: str) -> None:
    prompt = reciter.prompt("count")
    fields = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
    body = {**fields, "stop": "5", "stream": True, "stream_options": {"include_usage": True}}
    _, reply = ours.post("chat/completions" if chat else "completions", body)
    chunks = [json.loads(line.removeprefix("data: ")) for line in reply.splitlines() if "{" in line]
    assert [chunk["object"] for chunk in chunks] == [kind] * len(chunks)
    assert chunks[-1]["usage"]["completion_tokens"] == 9
