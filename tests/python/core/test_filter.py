"""`python -m stopscan`: what it writes and what it reports."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from filtering import BAD, FIRED, NONE_FIRED, posix_only, report, run
from hypothesis import given, settings
from setups import Setup, streams

from stopscan import scan


def test_a_loop_ends_the_copy() -> None:
    line = "I will now fix the bug.\n"
    done = run((20 * line).encode(), "--repeat", "--json")
    assert (done.status, len(done.out)) == (FIRED, 256)
    assert json.loads(done.err) == {**report((11 * line)[:256], 0, 256), "period": 24}
    done = run(b"=" * 100, "--repeat", "4,1,64")
    assert (done.status, done.out) == (FIRED, b"=" * 64)
    assert done.err == "stopscan: loop with period 1 at 0\n"
    assert run(b"=" * 100, "--stop", "x").status == NONE_FIRED


def test_keys_are_replaced_behind_the_stops() -> None:
    names = ["--replace", "<P1>=Ada", "--replace", "a=b=c", "--replace", "x="]
    assert run(b"<P1>, axa", *names) == (NONE_FIRED, b"Ada, b=cb=c", "")
    done = run(b"<P1> ENDx<P1>", *names, "--stop", "END")
    assert (done.status, done.out, done.err) == (FIRED, b"Ada ", "stopscan: stop 'END' at 5\n")
    assert run(b"a\tb", "--escapes", "--replace", "\\t= ").out == b"a b"
    assert run(b"unfinished <P", *names).out == b"unfinished <P"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a stop or a replacement"),
        (["--replace", "ab"], "--replace: expected FROM=TO, got 'ab'"),
        (["--replace", "=b"], "key 0 is empty"),
        (["--replace", "a=b", "--replace", "a=c"], "--replace: 'a' has two replacements"),
    ],
)
def test_wrong_replacements_are_usage_errors(arguments: list[str], message: str) -> None:
    done = run(b"text", *arguments)
    assert (done.status, done.out) == (BAD, b"")
    assert message in done.err


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


def test_a_visible_pattern_stays() -> None:
    status, out, err = run(b"At 1.5 km. Then", "--json", "--visible-pattern", r"[.!?]\s", "--visible-pattern", "<.*>")
    assert (status, out) == (FIRED, b"At 1.5 km. ")
    assert json.loads(err) == report(". ", 9, 11) | {"pattern": r"[.!?]\s"}


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
        "--visible-pattern S a regular expression; its match stays",
        "--max-held N give up a match",
        "--protect OPEN CLOSE markers between",
        "--include-stop keep every stop",
        "--escapes interpret",
        "--json report the match",
        "--version show",
    ]:
        assert told in text


def test_endless_pattern_needs_a_limit() -> None:
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
    # These ids keep the names of the tests short. Otherwise a name would contain the data of its test. pytest puts the
    # name of the running test into an environment variable, and the size of environment variables is limited.
    ids=["alone", "in-text", "continuation", "cut-short", "broken", "surrogate", "overlong", "over-a-read", "late"],
)
def test_good_text_precedes_the_invalid_utf8_error(data: bytes, out: bytes, offset: int) -> None:
    status, written, err = run(data, "--stop", "END")
    assert (status, written == out) == (BAD, True)
    assert f" {offset}" in err
    assert "Traceback" not in err


def test_invalid_utf8_behind_the_stop_is_never_seen() -> None:
    assert run(b"a END\xff", "--stop", "END", "--json")[:2] == (FIRED, b"a ")


@settings(max_examples=25)
@given(streams())
def test_agrees_with_scan(stream: tuple[Setup, list[str]]) -> None:
    setup, deltas = stream
    setup = setup if setup.stop or setup.visible else setup._replace(stop=("END",))
    setup = setup._replace(start_protected=False, regions=None, stop_in=None, region=None, repeat=None)
    # `python -m stopscan` has no options for a start inside a region or for a graph of regions, so this test leaves
    # both out. It also leaves out `--repeat`, which other tests try.
    arguments = [f"--stop={stop}" for stop in setup.stop] + [f"--visible={stop}" for stop in setup.visible]
    arguments += [word for pair in setup.protect for word in ("--protect", *pair)]
    arguments += ["--include-stop"] * setup.include_stop
    expected = scan(deltas, setup.stop_set(), include_stop=setup.include_stop)
    text = "".join(expected)
    match = expected.match

    status, out, err = run("".join(deltas).encode(), *arguments, "--json")
    assert (status, out.decode()) == (FIRED if match else NONE_FIRED, text)
    assert json.loads(err) == report(*((match.sequence, match.offset, match.end) if match else (None, None, None)))
