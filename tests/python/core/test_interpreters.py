"""A second interpreter in the same process cannot import the module. Otherwise, both interpreters would share the
module's objects."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

run = getattr(interpreters, "exec", None) or interpreters.run_string
IMPORT = f"import sys; sys.path[:] = {sys.path!r}" + '''
try:
    from stopscan.segments import SegmentSet
    print("imported", SegmentSet({"a": {}}).regions, flush=True)
except ImportError as error:
    print("refused:", error, flush=True)
'''

def in_another() -> None:
    other = interpreters.create()
    run(other, IMPORT)
    interpreters.destroy(other)
"""
REFUSED = "refused: "


def printed(*lines: str) -> list[str]:
    program = PROGRAM + "\n".join(lines)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    return ended.stdout.splitlines()


@pytest.mark.parametrize("times", [1, 3])
def test_a_second_interpreter_gets_an_import_error(times: int) -> None:
    first, *others, last = printed("exec(IMPORT)", *["in_another()"] * times, "exec(IMPORT)")
    assert first == last == "imported ('a',)"
    assert len(others) == times
    assert all(line.startswith(REFUSED) and "interpreter" in line for line in others)


def test_only_one_interpreter_imports_the_module() -> None:
    """From version 3.12 on, CPython itself refuses the import in every interpreter but the main one."""
    lines = printed("in_another()", "in_another()", "exec(IMPORT)")
    assert len(lines) == 3
    assert [line for line in lines if not line.startswith(REFUSED)] == ["imported ('a',)"]
