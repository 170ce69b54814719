"""How `python -m stopscan` ends: when the program before or after it in a pipe ends, at a signal, or when the disk is
full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from os import write as os_write
from pathlib import Path
from unittest.mock import patch

import pytest
from filtering import BAD, FIRED, NONE_FIRED, SECONDS, posix_only, read, running, write

from stopscan.__main__ import write as write_all


def test_a_writer_without_end_ends() -> None:
    """Like `seq 1 100000000 | python -m stopscan --stop 4242`: the writer must end when the filter has ended."""
    code = "import itertools\nfor n in itertools.count(1): print(n)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
        assert writer.stdout is not None
        with running("--stop", "4242", stdin=writer.stdout.fileno()) as process:
            writer.stdout.close()
            out, err = process.communicate(timeout=SECONDS)
        assert writer.wait(SECONDS) != 0
    text = "".join(f"{number}{os.linesep}" for number in range(1, 4242))
    assert (process.returncode, out.decode() == text) == (FIRED, True)
    assert err.count(b"\n") == 1


def test_a_reader_that_leaves_ends_the_filter() -> None:
    code = "import itertools\nfor n in itertools.count(1): print(n)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
        assert writer.stdout is not None
        with running("--stop", "END", stdin=writer.stdout.fileno()) as process:
            writer.stdout.close()
            assert read(process, 1) == b"1"
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert b"Traceback" not in process.stderr.read()
            assert process.wait(SECONDS) != NONE_FIRED
        assert writer.wait(SECONDS) != 0


@posix_only
def test_it_ends_as_quietly_as_its_reader() -> None:
    with running("--stop", "END") as process:
        write(process, b"one")
        assert read(process, 3) == b"one"
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        write(process, b"two")
        assert (process.stderr.read(), process.wait(SECONDS)) == (b"", -signal.SIGPIPE)


@posix_only
def test_an_interrupt_ends_it_quietly() -> None:
    with running("--stop", "END") as process:
        write(process, b"one E")
        assert read(process, 4) == b"one "
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        assert (process.stderr.read(), process.wait(SECONDS)) == (b"", -signal.SIGINT)


def run_in_shell(redirection: str) -> subprocess.CompletedProcess[str]:
    command = f'printf "one END two" | "$0" -m stopscan --stop END {redirection}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable], capture_output=True, text=True, timeout=SECONDS, check=False
    )


@posix_only
@pytest.mark.parametrize("redirection", ["<&-", ">&-"], ids=["input", "output"])
def test_a_closed_stream_is_an_error(redirection: str) -> None:
    done = run_in_shell(redirection)
    assert (done.returncode, done.stdout) == (BAD, "")
    assert done.stderr
    assert "Traceback" not in done.stderr


@posix_only
def test_unwanted_report_stays_out_of_the_output() -> None:
    done = run_in_shell("2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (FIRED, "one ", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_error() -> None:
    done = run_in_shell("> /dev/full")
    assert done.returncode == BAD
    assert done.stderr
    assert "Traceback" not in done.stderr


@posix_only
@pytest.mark.parametrize("limit", [1, 20], ids=["in-the-first-write", "later"])
def test_full_disk_during_a_write_is_an_error(tmp_path: Path, limit: int) -> None:
    """The filter must report a full disk, even if the disk becomes full during a write. The system then writes only a
    part of the data, and reports no error. Only the next write fails."""
    out = tmp_path / "out"
    command = f'ulimit -f {limit} && exec "$0" -m stopscan --stop END > "$1"'
    text = b"0123456789abcde\n" * 10_000
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, str(out)], input=text, capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode == BAD, done.stderr
    assert done.stderr.startswith(b"stopscan: ")
    assert 0 < out.stat().st_size < len(text)


@posix_only
@pytest.mark.parametrize("count", [1, 3, 1000])
def test_all_is_written_by_short_writes(count: int) -> None:
    text = "one é🦀 " * 100
    reading, writing = os.pipe()

    def short(fd: int, data: memoryview) -> int:
        return os_write(writing, data[:count])

    with patch("stopscan.__main__.os.write", short):
        write_all(text)
        write_all("")
    os.close(writing)
    with open(reading, "rb") as written:
        assert written.read().decode() == text
