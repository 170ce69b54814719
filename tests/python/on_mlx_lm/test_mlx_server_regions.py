"""Stops of stopscan's server for mlx-lm, in answers with reasoning or tool calls."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import Answer, Server, both, serving, stream_events

from stopscan.mlx_lm import server as our_server
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter


def test_protected_reasoning(checkpoint: Path, ours: Server, reciter: Reciter) -> None:
    prompt, body = reciter.prompt("think"), {"stop": ["END"]}
    shown = Answer("", "Is it ", "stop", "END", 6)
    kept = Answer("It is 5 or 6 ", "Is it END?", "stop", "END", 16)
    for stream in (False, True):
        # In chats, stops fire only in the answer, unless the request says otherwise. In completions they fire anywhere.
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
            # A marker in the user's words opens no region.
            got = protecting.ask("What does <think> mean? [closed]", chat=False, stop=["END"], **options)
            assert got == Answer("Is it ", "", "stop", "END", 5)


def with_tools(checkpoint: Path) -> Path:
    config = json.loads((checkpoint / "tokenizer_config.json").read_text())
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(config | {"tool_parser_type": "json_tools"}))
    return checkpoint


def test_protected_tool_calls(tmp_path: Path) -> None:
    call = ["<tool_call>", '{"name": "say",', ' "arguments": {"x": "EN', 'D"}}', "</tool_call>"]
    reciter = Reciter({"call": [*call, " EN", "D."]}, added_tokens=[*THINKING, "<tool_call>", "</tool_call>"])
    with serving(our_server.main, "--model", with_tools(reciter.write(tmp_path))) as ours:
        for stream in (False, True):
            request_body = {"messages": [{"role": "user", "content": "[call]"}], "stop": ["END"], "stream": stream}
            _, reply = ours.post("chat/completions", {**request_body, "protect": ["reasoning", "tool_call"]})
            choice = last_choice_with_calls(reply, stream)
            assert choice["calls"] == [("say", '{"x": "END"}')]
            assert (choice["text"], choice["finish_reason"], choice["matched_stop"]) == (" ", "tool_calls", "END")
            _, reply = ours.post("chat/completions", {**request_body, "protect": []})
            choice = last_choice_with_calls(reply, stream)
            assert (choice["calls"], choice["finish_reason"], choice["matched_stop"]) == ([], "stop", "END")


def test_the_servers_regions_need_not_be_the_models(checkpoint: Path, reciter: Reciter) -> None:
    arguments = ("--protect", "reasoning", "tool_call", "5 or", "6", "--model", checkpoint)
    with serving(our_server.main, *arguments) as protecting:
        got = protecting.ask(reciter.prompt("think"), stop=["END", "or 6"])
        assert got == Answer("It is 5 or 6 ", "Is it END?", "stop", "END", 16)


def test_tool_calls_stay_tool_calls(tmp_path: Path) -> None:
    call = ["<tool_call>", '{"name": "now",', ' "arguments": {}}', "</tool_call>"]
    reciter = Reciter(
        {"call": call, "text": ["Let me", " see ", *call], "stopped": [*call, " EN", "D."]},
        added_tokens=[*THINKING, "<tool_call>", "</tool_call>"],
    )
    with both(with_tools(reciter.write(tmp_path))) as (plain, ours):
        for name, stream in product(("call", "text", "stopped"), (False, True)):
            request_body = {
                "messages": [{"role": "user", "content": reciter.prompt(name)}],
                "stop": ["END"],
                "stream": stream,
            }
            choices = [
                last_choice_with_calls(one.post("chat/completions", request_body)[1], stream) for one in (plain, ours)
            ]
            if name == "stopped":
                assert choices[1].pop("matched_stop") == "END"
            assert [choice["finish_reason"] for choice in choices] == ["tool_calls"] * 2
            assert choices[0]["calls"] == choices[1]["calls"] == [("now", "{}")]
            assert choices[1]["text"] == {"call": "", "text": "Let me see ", "stopped": " "}[name]
            _, reply = ours.post("chat/completions", {**request_body, "max_tokens": 5})
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
