"""The programs ``examples/mlx_lm_*.py`` emit and report the same as the reference, and waste no model steps."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

import mlx_lm
from mlx_harness import Steps
from mlx_lm.generate import BatchGenerator
from recital import recite

from stopscan_conformance.reciter import SCRIPTS, Reciter

EXAMPLES = Path(__file__).parents[3] / "examples"
batched = pytest.mark.skipif(
    not hasattr(BatchGenerator, "next_generated"),
    reason=f"mlx-lm {mlx_lm.__version__} batches otherwise; 0.31 is needed",
)

ASKED = [
    ("split", ["END"]),
    ("count", ["hello world", "6"]),
    ("inside", ["END"]),
    ("held", ["STOP"]),
    ("runs", ["ab"]),
    ("emoji", ["🛑"]),
    ("late", ["<|end_of_document|>"]),
]


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"mlx_lm_{name}.py"))


def report(name: str, stop: list[str], max_tokens: int = -1) -> tuple[str, dict[str, str | None]]:
    """The text of a script up to a stop, and the report of why the text ended, in the words of Anthropic's API."""
    recital = recite(SCRIPTS[name], stop, max_tokens=max_tokens)
    reasons = {"stop": "stop_sequence" if recital.matched else "end_turn", "length": "max_tokens"}
    return recital.text, {"stop_reason": reasons[recital.finish_reason], "stop_sequence": recital.matched}


@batched
@pytest.mark.parametrize("max_tokens", [4, 50])
def test_a_batch_whose_rows_are_taken_out(mlx: tuple[Any, Any], reciter: Reciter, max_tokens: int) -> None:
    requests = [(reciter.prompt(name), stop) for name, stop in ASKED]
    messages = example("batch")["answers"](*mlx, requests, max_tokens)
    for (name, stop), message in zip(ASKED, messages, strict=True):
        tokens = message.pop("usage")["output_tokens"]
        recital = recite(SCRIPTS[name], stop, max_tokens=max_tokens)
        assert tokens == len(recital.texts)
        text, end = report(name, stop, max_tokens)
        assert message == {"content": [{"type": "text", "text": text}], **end}


@batched
def test_removed_row_is_not_stepped_again(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    steps = Steps(mlx[0])
    example("batch")["answers"](steps, mlx[1], [("[split]", ["END"]), ("[count]", ["hello world"])])
    # The rows have 6 and 7 tokens. mlx-lm begins the next step before it looks at a token, so the rows take 7 and 8
    # steps: 7 steps together, and then one step with a single row.
    assert [shape[0] for shape in steps.shapes if shape[1] == 1][-8:] == [2] * 7 + [1]


@pytest.mark.parametrize("max_tokens", [4, 50])
def test_a_single_stream(mlx: tuple[Any, Any], reciter: Reciter, max_tokens: int) -> None:
    events = example("single")["events"]
    for name, stop in ASKED:
        *deltas, end = events(*mlx, reciter.prompt(name), stop, max_tokens)
        text, reported = report(name, stop, max_tokens)
        assert "".join(delta["delta"]["text"] for delta in deltas) == text
        assert end["delta"] == reported


def test_a_client_that_leaves_a_single_stream_ends_it(mlx: tuple[Any, Any], reciter: Reciter) -> None:
    steps = Steps(mlx[0])
    events = example("single")["events"](steps, mlx[1], "[count]", ["END"])
    next(events)
    events.close()
    assert len(steps) == 2


@batched
@pytest.mark.parametrize("max_tokens", [4, 50])
def test_a_scheduler_that_detokenizes_itself(mlx: tuple[Any, Any], reciter: Reciter, max_tokens: int) -> None:
    scheduler = example("scheduler")["Scheduler"](*mlx)
    uids = {scheduler.add(reciter.prompt(name), stop, max_tokens): (name, stop) for name, stop in ASKED}
    left = scheduler.add(reciter.prompt("alphabet"), ["z"], max_tokens)
    with pytest.raises(ValueError, match="stop 0 is empty"):
        scheduler.add(reciter.prompt("alphabet"), [""])
    texts, ends = dict.fromkeys(uids, ""), {}
    for uid, event in scheduler.run():
        if uid == left:
            assert event["delta"] == {"type": "text_delta", "text": "a"}
            scheduler.abort(left)
        elif event["type"] == "message_delta":
            ends[uid] = event["delta"]
        else:
            assert uid not in ends
            texts[uid] += event["delta"]["text"]
    scheduler.close()
    assert {uid: (texts[uid], ends[uid]) for uid in uids} == {
        uid: report(name, stop, max_tokens) for uid, (name, stop) in uids.items()
    }


@pytest.mark.parametrize(
    ("name", "lines"),
    [pytest.param("batch", 3, marks=batched), ("single", 4), pytest.param("scheduler", 10, marks=batched)],
)
def test_they_run_as_they_stand(name: str, lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"mlx_lm_{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == lines
    assert sum('"stop_reason": "stop_sequence", "stop_sequence": "END"' in line for line in printed) == 1
