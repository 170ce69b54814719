"""``generate`` with protected regions, in which no stop fires, and ``python -m stopscan.mlx_lm.generate``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

import mlx.core as mx
from mlx_harness import load, with_tool_calls

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm import RowScanner, generate
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter


def test_the_command(checkpoint: Path, reciter: Reciter) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "stopscan.mlx_lm.generate", "--model", str(checkpoint), *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    think = ("--prompt", reciter.prompt("think"), "--verbose", "F")
    first = run(*think, "--stop", "END")
    assert first.stdout == "<think>Is it \n"
    # `python -m` warns if importing the package has already imported the module that it is to run.
    assert "RuntimeWarning" not in first.stderr
    assert run(*think, "--stop=END", "--stop", "never", "--protect", "reasoning").stdout == f"{REASONED}\n"
    assert run(*think, "--stop=END", "--protect", *THINKING).stdout == f"{REASONED}\n"
    assert run(*think, "--pattern", r"E\w\w", "--include-stop").stdout == "<think>Is it END\n"
    assert run(*think, "--visible", "END").stdout == "<think>Is it END\n"
    loud = run("--prompt", reciter.prompt("count"), "--stop", "6").stdout.splitlines()
    assert loud[:3] == ["=" * 10, "1, 2, 3 hello world 4, 5, ", "=" * 10]
    help_text = run("--help").stdout
    assert {"--stop", "--pattern", "--visible", "--include-stop", "--protect", "--draft-model"} <= {*help_text.split()}
    for options, message in (
        (["--stop", ""], "stop 0 is empty"),
        (["--pattern", "a*"], "pattern"),
        (["--stop=END", "--protect", "nowhere"], "'nowhere' is not a region"),
        (["--no-such-argument"], "--no-such-argument"),
    ):
        refused = run(*think, *options)
        assert (refused.returncode, refused.stdout) == (2, ""), options
        assert message in refused.stderr


REASONED = "<think>Is it END?</think>It is 5 or 6 "


def test_protected_reasoning(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    prompt = reciter.prompt("think")
    assert generate(model, tokenizer, prompt, stop="END") == "<think>Is it "
    assert generate(model, tokenizer, prompt, stop="END", protect="reasoning") == REASONED
    assert generate(model, tokenizer, prompt, stop=StopSet("END", protect=[THINKING])) == REASONED
    unclosed = generate(model, tokenizer, reciter.prompt("unclosed"), stop="END", protect="reasoning")
    assert unclosed == reciter.text("unclosed")


@pytest.mark.parametrize("kind", ["text", "ids", "array"])
def test_protected_reasoning_that_the_prompt_opened(tmp_path: Path, kind: str) -> None:
    reciter = Reciter({"open": ["<think>", "\n", *SCRIPTS["think"][1:]], "closed": SCRIPTS["think"][1:]})
    model, tokenizer = load(reciter.write(tmp_path))

    def text(prompt: str, **options: Any) -> str:
        prompts = {"text": prompt, "ids": tokenizer.encode(prompt), "array": mx.array(tokenizer.encode(prompt))}
        return generate(model, tokenizer, prompts[kind], stop="END", protect=["reasoning"], **options)

    assert text("What is [open]<think>\n") == REASONED.removeprefix("<think>")  # a chat template may end like this
    assert text("What is [open]<think>\n", start_protected=False) == "Is it "
    assert text("What does <think> mean? [closed]") == "Is it "
    assert text("<think></think>[closed]") == "Is it "
    assert text("[closed]", start_protected=True) == REASONED.removeprefix("<think>")


def test_prompt_end_opens_regions_of_stops_too(mlx: tuple[Any, Any]) -> None:
    model, tokenizer = mlx
    stop = StopSet("END", protect=[THINKING])
    assert generate(model, tokenizer, "[think]<think>", stop=stop) == REASONED.removeprefix("<think>")


def test_a_stop_that_is_a_marker_leaves_no_region(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    text = generate(model, tokenizer, reciter.prompt("think"), stop=["</think>"], protect="reasoning")
    assert text == "<think>Is it END?"


def test_protected_reasoning_keeps_the_other_regions(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = mlx
    stop = StopSet("END", protect=[(" 5", "6 "), THINKING])
    assert generate(model, tokenizer, reciter.prompt("think"), stop=stop, protect="reasoning") == REASONED
    stop = StopSet("END", protect=[(" 5", "here")])
    whole = generate(model, tokenizer, reciter.prompt("think"), stop=stop, protect="reasoning")
    assert whole == reciter.text("think")


def test_region_the_model_lacks_is_refused(tmp_path: Path) -> None:
    reciter = Reciter({"one": ["a", "END", "b"]}, added_tokens=[])
    model, tokenizer = load(reciter.write(tmp_path))
    assert not tokenizer.has_thinking
    for name in ("reasoning", "tool_call"):
        with pytest.raises(ValueError, match=f"no markers for '{name}'"):
            generate(model, tokenizer, reciter.prompt("one"), stop="END", protect=name)
    # A region's two markers can be given instead of its name.
    assert generate(model, tokenizer, reciter.prompt("one"), stop="END", protect=["a", "b"]) == "aENDb"


CALL = ["Let me see ", "<tool_call>", '{"name": "now", "arguments": {"x": "EN', 'D"}}', "</tool_call>", " EN", "D."]


def test_protected_tool_calls(tmp_path: Path) -> None:
    reciter = Reciter({"call": CALL}, added_tokens=["<tool_call>", "</tool_call>"])
    model, tokenizer = load(reciter.write(tmp_path))
    with_tool_calls(tokenizer, "<tool_call>", "</tool_call>")
    prompt = reciter.prompt("call")
    assert generate(model, tokenizer, prompt, stop="END") == "".join(CALL[:2]) + '{"name": "now", "arguments": {"x": "'
    assert generate(model, tokenizer, prompt, stop="END", protect="tool_call") == "".join(CALL[:-2]) + " "


def test_unclosed_tool_calls_are_protected_to_the_end(tmp_path: Path) -> None:
    """Mistral's calls have no closing marker."""
    script = ["Now: ", "[TOOL_CALLS]", 'f[ARGS]{"x": "EN', 'D"}']
    reciter = Reciter({"call": script}, added_tokens=["[TOOL_CALLS]"])
    _, tokenizer = load(reciter.write(tmp_path))
    row = RowScanner(with_tool_calls(tokenizer, "[TOOL_CALLS]", ""), "END", protect="tool_call")
    assert "".join(map(row.feed, reciter.token_ids("call"))) == "".join(script)
    assert row.feed(reciter.eos_token_id) == ""
    assert row.finish == Finish("eos")
