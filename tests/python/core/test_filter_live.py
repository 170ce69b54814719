"""`python -m stopscan` in pipes writes safe text at once, however its input is cut."""

from __future__ import annotations

import json
import os
import re
from unittest.mock import patch

from filtering import BAD, FIRED, NONE_FIRED, SECONDS, read, report, running, write
from hypothesis import given
from hypothesis import strategies as st

from stopscan.__main__ import read_deltas


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


def test_split_invalid_utf8_counts_from_the_start() -> None:
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
def test_invalid_utf8_has_one_offset(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    expected: tuple[str, int | None] = (data.decode(errors="ignore"), None)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        expected = data[: error.start].decode(), error.start
    assert read_apart(data, size) == expected


def read_apart(data: bytes, size: int) -> tuple[str, int | None]:
    """Lets the filter read `data` from a pipe, `size` bytes at a time. Returns the text, and the offset that the error
    names, if there is an error."""
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
