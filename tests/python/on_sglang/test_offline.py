"""sglang's offline `Engine` with stopscan's plugin on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sglang", reason="sglang is not installed; ci/sglang-env makes its environment")

pytestmark = pytest.mark.sglang


def test_the_offline_engine_whole_and_in_streams(checkpoint: Path, reciter: Any) -> None:
    # sglang alone leaves the match of a pattern in the text. So an answer without the match shows that stopscan ran.
    params = {"temperature": 0, "max_new_tokens": 40, "stop_regex": ["E[A-Z]D"]}
    script = Path(__file__).with_name("offline.py")
    command = [sys.executable, str(script), str(checkpoint), reciter.prompt("split"), json.dumps(params)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, "STOPSCAN_SGLANG": "1"}, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    assert list(answers) == ["sync", "stream", "async", "async stream"]
    assert all(answer == ["This is the ", "E[A-Z]D"] for answer in answers.values()), answers
