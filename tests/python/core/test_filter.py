"""`python -m stopscan` in pipes: what it writes, when, what it reports, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from os import write as os_write
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_properties import Setup, streams

from stopscan import scan
from stopscan.__main__ import read_deltas
from stopscan.__main__ import write as write_all

FILTER = [sys.executable, "-m", "stopscan"]
SECONDS = 60  # until a hanging test ends; no test waits for it
FIRED, NONE_FIRED, BAD = 0, 1, 2
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell or argument bytes")


class Ended(NamedTuple):
    status: int
    out: bytes
    err: str


def run(data: bytes, *arguments: str | bytes) -> Ended:
    done = subprocess.run([*FILTER, *arguments], input=data, capture_output=True, timeout=SECONDS, check=False)
    return Ended(done.returncode, done.stdout, done.stderr.decode())


def report(sequence: str | None, offset: int | None, end: int | None) -> dict[str, object]:
    return {"sequence": sequence, "offset": offset, "end": end}


def test_a_loop_ends_the_copy() -> None:
    line = "I will now fix the bug.\n"
    done = run((20 * line).encode(), "--repeat", "--json")
    assert (done.status, len(done.out)) == (FIRED, 256)
    assert json.loads(done.err) == {**report((11 * line)[:256], 0, 256), "period": 24}
    done = run(b"=" * 100, "--repeat", "4,1,64")
    assert (done.status, done.out) == (FIRED, b"=" * 64)
    assert done.err == "stopscan: loop with period 1 at 0\n"
    assert run(b"=" * 100).status == NONE_FIRED


@pytest.mark.parametrize(
    ("arguments", "data", "out", "found"),
    [
        (["--stop", "END"], "one END two", "one ", ("END", 4, 7)),
        (["--stop", "END"], "one EN", "one EN", None),
        (["--stop", "END"], "", "", None),
        (["--stop", "is", "--stop", "a"], "this a", "th", ("is", 2, 4)),
        (["--stop", "b", "--stop", "ab"], "xab", "x", ("ab", 1, 3)),
        (["--visible", "."], "a.b", "a.", (".", 1, 2)),
        (["--stop", "END", "--visible", ".", "--visible", "!"], "a!b", "a!", ("!", 1, 2)),
        (["--stop", "END", "--include-stop"], "a END b", "a END", ("END", 2, 5)),
        (["--stop", "x", "--protect", "<", ">"], "<x>x", "<x>", ("x", 3, 4)),
        (["--stop", "x", "--protect", "<", ">", "--protect", "[", "]"], "[x>]x", "[x>]", ("x", 4, 5)),
        (["--stop", "END"], "é🦀字END", "é🦀字", ("END", 3, 6)),
        (["--stop", "🦀"], "🦁🦀", "🦁", ("🦀", 1, 2)),
        (["--stop", "END"], "a\r\nb\nEND", "a\r\nb\n", ("END", 5, 8)),
        (["--stop", "\n\n"], "a\n\nb", "a", ("\n\n", 1, 3)),
        (["--stop", "END"], "\0 \ufeff END", "\0 \ufeff ", ("END", 4, 7)),
        (["--stop=--"], "a -- b", "a ", ("--", 2, 4)),
        (["--visible=--", "--stop=---"], "a -- b", "a --", ("--", 2, 4)),
        (["--stop=-x"], "a -x", "a ", ("-x", 2, 4)),
        (["--stop", r"\n"], "a\nb\\n", "a\nb", (r"\n", 3, 5)),
        (["--stop", r"\n", "--escapes"], "a\\nb\n", r"a\nb", ("\n", 4, 5)),
        (["--escapes", "--stop", r"\x2d\u2028\U0001f980é\\"], "a-\u2028🦀é\\b", "a", ("-\u2028🦀é\\", 1, 6)),
        (["--stop", "x", "--escapes", "--protect", r"\t", r"\x0a"], "\tx\nx", "\tx\n", ("x", 3, 4)),
    ],
)
def test_output_status_and_report(
    arguments: list[str], data: str, out: str, found: tuple[str, int, int] | None
) -> None:
    status, written, err = run(data.encode(), *arguments, "--json")
    assert (status, written.decode()) == (NONE_FIRED if found is None else FIRED, out)
    assert err.count("\n") == 1
    assert json.loads(err) == report(*(found or (None, None, None)))


def test_plain_report() -> None:
    status, out, err = run(b"one END two", "--stop", "END")
    assert (status, out) == (FIRED, b"one ")
    assert err.count("\n") == 1
    assert "'END'" in err
    assert "4" in err


@pytest.mark.parametrize("stop", ["a\\", r"\u20", r"\N{NO SUCH NAME}"])
def test_an_escape_that_is_none_is_a_usage_error(stop: str) -> None:
    status, out, err = run(b"text", "--escapes", "--stop", stop)
    assert (status, out) == (BAD, b"")
    assert repr(stop) in err


def test_a_pattern() -> None:
    status, out, err = run(b"one\nUser 12: two", "--json", "--stop", "END", "--pattern", r"\n(User|Human) ?\d*:")
    assert (status, out) == (FIRED, b"one")
    assert json.loads(err) == report("\nUser 12:", 3, 12) | {"pattern": r"\n(User|Human) ?\d*:"}


def test_several_patterns_and_one_that_looks_like_an_option() -> None:
    assert run(b"one 12: two", "--pattern", r"\d{1,3}:", "--pattern", "x{3}y")[:2] == (FIRED, b"one ")
    assert run(b"one 12: two", "--pattern", r"\d{1,3}:", "--pattern=--")[:2] == (FIRED, b"one ")


def test_help_tells_each_option() -> None:
    status, out, err = run(b"", "--help")
    text = " ".join(out.decode().split())
    assert (status, err) == (0, "")
    for told in [
        "usage: stopscan",
        "Copy standard input",
        "Exit status: 0 a stop fired",
        "--stop S a stop that is cut",
        "--visible S a stop that stays",
        "--pattern S a regular expression",
        "--max-held N give a match",
        "--protect OPEN CLOSE markers between",
        "--include-stop keep every stop",
        "--escapes read",
        "--json report the match",
        "--version show",
    ]:
        assert told in text


def test_a_pattern_that_holds_for_ever_is_a_usage_error_without_a_limit() -> None:
    status, _, err = run(b"<one> two", "--pattern", "<.*>")
    assert status == BAD
    assert "max_held" in err
    assert run(b"<one> two", "--pattern", "<.*>", "--max-held", "9").status == FIRED


def test_version() -> None:
    status, out, _ = run(b"", "--version")
    assert (status, out.decode().strip()) == (0, f"stopscan {version('stopscan')}")


def test_no_report_when_none_fired() -> None:
    assert run(b"one two", "--stop", "END") == (NONE_FIRED, b"one two", "")


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 1_000_000])
def test_more_than_one_read(size: int) -> None:
    text = "é" * (size // 2) + "x" * (size % 2)
    status, out, err = run((text + "END more").encode(), "--stop", "END", "--json")
    assert (status, out.decode() == text) == (FIRED, True)
    assert json.loads(err) == report("END", len(text), len(text) + 3)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--stop", ""],
        ["--visible", ""],
        ["--protect", "", ">"],
        ["--protect", "<"],
        ["--stop"],
        ["--no-such-option"],
        ["--stop", "<", "--protect", "<", ">"],
        ["--stop", "END", "--visible", "END"],
        ["--protect", "<", "1", "--protect", "<", "2"],
        ["unexpected"],
    ],
    ids=" ".join,
)
def test_usage_errors(arguments: list[str]) -> None:
    status, out, err = run(b"text", *arguments)
    assert (status, out) == (BAD, b"")
    assert err
    assert "Traceback" not in err


@posix_only
def test_a_stop_that_is_not_utf8() -> None:
    status, out, err = run(b"text", b"--stop", b"\xff")
    assert (status, out) == (BAD, b"")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("data", "out", "offset"),
    [
        (b"\xff", b"", 0),
        (b"good E\xff more", b"good E", 6),
        ("é🦀".encode() + b"\x80", "é🦀".encode(), 6),
        (b"cut short \xf0\x9f\xa6", b"cut short ", 10),
        (b"a\xf0\x9fx", b"a", 1),
        (b"surrogate \xed\xa0\x80", b"surrogate ", 10),
        (b"overlong \xc0\xaf", b"overlong ", 9),
        (b"x" * 65_535 + b"\xf0\x9fx", b"x" * 65_535, 65_535),
        ("é".encode() * 100_001 + b"\xfe", "é".encode() * 100_001, 200_002),
    ],
    # The system bounds an environment, and pytest puts the test's name there.
    ids=["alone", "in-text", "continuation", "cut-short", "broken", "surrogate", "overlong", "over-a-read", "late"],
)
def test_invalid_utf8_is_named_after_the_good_text_was_written(data: bytes, out: bytes, offset: int) -> None:
    status, written, err = run(data, "--stop", "END")
    assert (status, written == out) == (BAD, True)
    assert f" {offset}" in err
    assert "Traceback" not in err


def test_invalid_utf8_behind_the_stop_is_never_seen() -> None:
    assert run(b"a END\xff", "--stop", "END", "--json")[:2] == (FIRED, b"a ")


@contextmanager
def running(*arguments: str, stdin: int = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes]]:
    """A filter at work; killed after a time, so that a read of what it never writes ends."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*FILTER, *arguments], stdin=stdin, stdout=pipe, stderr=pipe, bufsize=0) as process:
        killer = threading.Timer(SECONDS, process.kill)
        killer.start()
        try:
            yield process
        finally:
            killer.cancel()
            process.kill()


def write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)


def read(process: subprocess.Popen[bytes], count: int) -> bytes:
    """That many bytes, waiting for them: the writer writes no more until they are here."""
    assert process.stdout is not None
    data = b""
    while len(data) < count and (piece := process.stdout.read(count - len(data))):
        data += piece
    return data


def test_safe_text_appears_before_more_is_written() -> None:
    with running("--stop", "END") as process:
        for delta in [b"a", b" line without its end", b"\n", b"x"]:
            write(process, delta)
            assert read(process, len(delta)) == delta


def test_only_the_prefix_waits() -> None:
    with running("--stop", "END") as process:
        write(process, b"one E")
        assert read(process, 4) == b"one "
        write(process, b"N, ")
        assert read(process, 4) == b"EN, "
        write(process, b"EN")
        write(process, b"D two")
        assert (process.wait(SECONDS), read(process, 1)) == (FIRED, b"")


def test_held_text_is_written_at_the_end_of_input() -> None:
    with running("--stop", "END") as process:
        write(process, b"one E")
        assert read(process, 4) == b"one "
        assert process.stdin is not None
        process.stdin.close()
        assert (read(process, 2), process.wait(SECONDS)) == (b"E", NONE_FIRED)


def test_characters_split_over_writes() -> None:
    crab = "🦀".encode()
    with running("--stop", "END") as process:
        write(process, b"a" + crab[:1])
        assert read(process, 1) == b"a"
        write(process, crab[1:3])
        write(process, crab[3:] + crab[:2])
        assert read(process, 4) == crab
        write(process, crab[2:])
        assert read(process, 4) == crab


def test_a_stop_split_inside_a_character() -> None:
    stop = "é🦀".encode()
    with running("--stop", "é🦀", "--json") as process:
        write(process, b"a" + stop[:3])
        assert read(process, 1) == b"a"
        write(process, stop[3:])
        assert process.stderr is not None
        assert json.loads(process.stderr.read()) == report("é🦀", 1, 3)
        assert (process.wait(SECONDS), read(process, 1)) == (FIRED, b"")


def test_invalid_utf8_split_over_writes_is_counted_from_the_start() -> None:
    with running("--stop", "END") as process:
        for delta in [b"abc", "é".encode(), b"d"]:
            write(process, delta)
            assert read(process, len(delta)) == delta
        write(process, b"x\xf0")
        assert read(process, 1) == b"x"
        write(process, b"\x9fy")
        assert process.stderr is not None
        err = process.stderr.read().decode()
        assert process.wait(SECONDS) == BAD
        assert " 7" in err


@given(
    st.lists(
        st.sampled_from([b"a", "é".encode(), "🦀".encode(), b"\xf0\x9f", b"\xe2\x82", b"\x80", b"\xff"]), max_size=8
    ),
    st.integers(1, 7),
)
def test_invalid_utf8_is_at_the_same_offset_however_it_is_read(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    expected: tuple[str, int | None] = (data.decode(errors="ignore"), None)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        expected = data[: error.start].decode(), error.start
    assert read_apart(data, size) == expected


def read_apart(data: bytes, size: int) -> tuple[str, int | None]:
    """The text that is read, so many bytes at once, and the offset that an error names."""
    text, message = "", ""
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        os.close(writing)
        with patch("stopscan.__main__.READ_BYTES", size):
            for delta in read_deltas(reading):
                text += delta
    except ValueError as error:
        message = str(error)
    finally:
        os.close(reading)
    found = re.match(r"invalid UTF-8 at byte offset (\d+): ", message)
    assert bool(found) == bool(message)
    return text, int(found[1]) if found else None


def test_a_writer_without_end_ends() -> None:
    """What `seq 1 100000000 | python -m stopscan --stop 4242` does."""
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
def test_a_report_that_nobody_wants_does_not_go_into_the_output() -> None:
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
def test_a_disk_that_fills_up_in_mid_write_is_an_error(tmp_path: Path, limit: int) -> None:
    """The write that no longer fits is cut short and succeeds; only the next one fails."""
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


@settings(max_examples=25)
@given(streams())
def test_agrees_with_scan(stream: tuple[Setup, list[str]]) -> None:
    setup, deltas = stream
    setup = setup._replace(start_protected=False, regions=None, stop_in=None, region=None, repeat=None)
    # The filter sees a whole text, from its start.
    arguments = [f"--stop={stop}" for stop in setup.stop] + [f"--visible={stop}" for stop in setup.visible]
    arguments += [word for pair in setup.protect for word in ("--protect", *pair)]
    arguments += ["--include-stop"] * setup.include_stop
    expected = scan(deltas, setup.stop_set(), include_stop=setup.include_stop)
    text = "".join(expected)
    match = expected.match

    status, out, err = run("".join(deltas).encode(), *arguments, "--json")
    assert (status, out.decode()) == (FIRED if match else NONE_FIRED, text)
    assert json.loads(err) == report(*((match.sequence, match.offset, match.end) if match else (None, None, None)))
