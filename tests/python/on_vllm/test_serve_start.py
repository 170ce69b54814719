"""Starts ``vllm serve`` with stopscan and vLLM's parsers, or with settings that must keep it from starting."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

from vllm_harness import THINK
from vllm_serving import serve

from stopscan_conformance.reciter import SCRIPTS, Reciter

pytestmark = pytest.mark.vllm


# The answer "unmarked" begins inside its reasoning, without an opening marker. The answer "call" has a tool call.
ANSWERS = {
    "unmarked": ["Is", " it", " ", "E", "ND", "?", "</think>", "It", " is", " 5", " ", "E", "ND", " here"],
    "call": [
        "</think>",
        "<tool_call>",
        '{"name": "f", "arguments": {"a": "',
        "E",
        "ND",
        '"}}',
        "</tool_call>",
        "E",
        "ND",
    ],
}


def test_the_default_of_a_server_with_parsers(tmp_path: Path) -> None:
    checkpoint = Reciter({**SCRIPTS, **ANSWERS}, added_tokens=[*THINK, "<tool_call>", "</tool_call>"]).write(
        tmp_path / "model"
    )
    # `--api-server-count 2` starts two API server processes. Each has its own detokenizer, and both must find stops.
    arguments = ["--reasoning-parser", "deepseek_r1", "--tool-call-parser", "hermes", "--enable-auto-tool-choice"]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    with serve(checkpoint, tmp_path / "log", *arguments, "--api-server-count", "2", STOPSCAN_VLLM="1") as server:

        def answer(prompt: str, **options: Any) -> Any:
            create = server.openai.chat.completions.create
            common = {"model": "reciter", "stop": ["END"], "temperature": 0, "max_tokens": 40}
            (choice,) = create(messages=[{"role": "user", "content": prompt}], **common, **options).choices
            assert choice.model_extra["stop_reason"] == "END"
            return choice.message

        for _ in range(4):
            marked, unmarked = answer("[think]"), answer("[unmarked]")
            assert (marked.model_extra["reasoning"], marked.content) == ("Is it END?", "It is 5 or 6 ")
            assert (unmarked.model_extra["reasoning"], unmarked.content) == ("Is it END?", "It is 5 ")
        # The chat template may add the tools to the prompt. This does not change the answer, because the model only
        # looks at the last token of the prompt, [call].
        (call,) = answer("[call]", tools=[tool]).tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("f", {"a": "END"})
        # Without tools, or with the tool choice "none", the call is a part of the content, so the stop fires in it.
        for options in ({}, {"tools": [tool], "tool_choice": "none"}):
            message = answer("[call]", **options)
            assert "END" not in (message.content or "")
            assert not message.tool_calls
        # END does not fire in the reasoning of a Responses request, but it fires in the reasoning of a completion. The
        # client may choose the id of a request, so stopscan must not rely on the id to tell the two apart.
        own_body = {"stop": ["END"], "temperature": 0, "request_id": "mine"}
        response = server.openai.responses.create(model="reciter", input="[unmarked]", extra_body=own_body)
        assert response.output_text == "It is 5 "
        thought = server.openai.completions.create(model="reciter", prompt="[unmarked]", stop=["END"])
        assert thought.choices[0].text == "Is it "
    assert "stopscan finds the stops; known regions and their opening markers: reasoning (<think>)" in (
        tmp_path / "log"
    ).read_text().replace(", tool_call (<tool_call>)", "")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"STOPSCAN_VLLM_PROTECT": '["<a>"]'}, r"STOPSCAN_VLLM_PROTECT: '<a>' is not a region"),
        # Here Python is in the place of vLLM's Rust frontend. The server must end before vLLM starts this program.
        (
            {"VLLM_USE_RUST_FRONTEND": "1", "VLLM_RUST_FRONTEND_PATH": sys.executable},
            "stopscan: with VLLM_USE_RUST_FRONTEND=1, stops are found outside of Python",
        ),
    ],
)
def test_unfit_server_does_not_start(
    checkpoint: Path, tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    with (
        pytest.raises(AssertionError, match=message),
        serve(checkpoint, tmp_path / "log", STOPSCAN_VLLM="1", **environment),
    ):
        pass


def test_the_example() -> None:
    example = Path(__file__).parents[3] / "examples" / "vllm_serve.py"
    output = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=True).stdout
    assert "token  vLLM      with stopscan" in output
    assert "reasoning, vLLM:           '<think>Is it '\n" in output
    assert "reasoning, with stopscan:  '<think>Is it END?</think>It is 5 or 6 '\n" in output
