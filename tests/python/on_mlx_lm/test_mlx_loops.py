"""``Repeat`` in mlx-lm's generation: if a model repeats itself, the token that proves the loop is the last one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

import mlx_lm
from looping import LOOPS, ended
from mlx_harness import NEW, Steps, load
from reported_loops import REPORTS

from stopscan import Repeat, StopSet
from stopscan.finish import Finish
from stopscan.mlx_lm import RowScanner, RowSegmenter, batch_generate, generate, stream_generate
from stopscan.segments import FORMATS, SegmentSet
from stopscan_conformance.reciter import Reciter

STOPS = StopSet("never", repeat=Repeat())


@pytest.fixture(scope="module")
def reciter() -> Reciter:
    return Reciter(LOOPS | {name: report.script for name, report in REPORTS.items()})


@pytest.fixture(scope="module")
def path(reciter: Reciter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reciter.write(tmp_path_factory.mktemp("loops"))


@pytest.fixture(scope="module")
def looping(path: Path) -> tuple[Any, Any]:
    return load(path)


@pytest.mark.parametrize("name", LOOPS)
def test_single_loop_ends_at_its_proving_token(looping: tuple[Any, Any], reciter: Reciter, name: str) -> None:
    model, tokenizer = Steps(looping[0]), looping[1]
    text, tokens, match = ended(name)
    responses = list(stream_generate(model, tokenizer, reciter.prompt(name), stop=STOPS, max_tokens=5000))
    assert "".join(response.text for response in responses) == text
    assert responses[-1].finish == Finish("repetition", offset=match.offset)
    assert (responses[-1].match, responses[-1].finish_reason) == (match, "stop")
    # mlx-lm begins the next model step before it checks the newest token. So there is one step more than there are
    # generated tokens.
    assert (len(responses), len(model)) == (tokens, tokens + 1)
    assert generate(looping[0], tokenizer, reciter.prompt(name), stop=STOPS, max_tokens=5000) == text


@pytest.mark.parametrize("name", REPORTS)
def test_the_loops_of_reports(looping: tuple[Any, Any], reciter: Reciter, name: str) -> None:
    report, model = REPORTS[name], Steps(looping[0])
    stops = StopSet(repeat=report.repeat)
    responses = list(stream_generate(model, looping[1], reciter.prompt(name), stop=stops, max_tokens=5000))
    assert "".join(response.text for response in responses) == report.streamed
    assert responses[-1].match == report.match
    assert (len(responses), len(model)) == (report.tokens, report.tokens + 1)


@pytest.mark.parametrize("name", LOOPS)
def test_rows_and_segments(looping: tuple[Any, Any], reciter: Reciter, name: str) -> None:
    ids = reciter.token_ids(name)
    text, tokens, match = ended(name)
    row = RowScanner(looping[1], STOPS)
    assert row.feed_many(ids) == text
    assert (row.tokens_seen, row.match, row.finish) == (tokens, match, Finish("repetition", offset=match.offset))
    # A loop ends the stream in every region, even in one that `stop_in` does not name.
    segments = RowSegmenter(looping[1], SegmentSet(FORMATS["think"], stop="never", stop_in=["answer"], repeat=Repeat()))
    received = segments.feed_many(ids)
    assert "".join(segment[1] for segment in received) == text.removeprefix("<think>")
    assert [segment[0] for segment in received] == ["reasoning" if name == "thoughts" else "answer"]
    assert (segments.tokens_seen, segments.finish) == (tokens, Finish("repetition", offset=match.offset))


@pytest.mark.skipif(not NEW, reason=f"mlx-lm {mlx_lm.__version__} is before 0.32")
def test_batches(looping: tuple[Any, Any], reciter: Reciter) -> None:
    model, tokenizer = Steps(looping[0]), looping[1]
    prompts = [tokenizer.encode(reciter.prompt(name)) for name in LOOPS]
    batch = batch_generate(model, tokenizer, prompts, stop=STOPS, max_tokens=5000, return_token_ids=True)
    expected = [ended(name) for name in LOOPS]
    assert batch.texts == [text for text, _, _ in expected]
    assert batch.finishes == [Finish("repetition", offset=match.offset) for _, _, match in expected]
    assert [len(ids) for ids in batch.token_ids] == [tokens for _, tokens, _ in expected]
    steps = [shape[0] for shape in model.shapes if shape[1] == 1]
    assert sum(steps) == sum(tokens + 1 for _, tokens, _ in expected)


def test_the_command(path: Path, reciter: Reciter) -> None:
    command = [sys.executable, "-m", "stopscan.mlx_lm.generate", "--model", str(path), "--max-tokens", "5000"]
    command += ["--verbose", "F", "--prompt", reciter.prompt("sentence"), "--repeat"]
    for value, repeat in (([], Repeat()), (["3,1024,64"], Repeat(3, min_length=64))):
        completed = subprocess.run([*command, *value], capture_output=True, text=True, timeout=120)
        assert completed.stdout == ended("sentence", repeat)[0] + "\n", completed.stderr
    refused = subprocess.run([*command, "3,0,64"], capture_output=True, text=True, timeout=120)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'3,0,64' is not COUNT,PERIOD,LENGTH" in refused.stderr
