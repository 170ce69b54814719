"""Settings of `Repeat` from requests, command lines and environment variables. All are read in the same way."""

from __future__ import annotations

import argparse

import pytest
from reported_loops import REPORTS

from stopscan import Repeat, StopSet
from stopscan.repeats import add_repeat, in_environment, parse_repeat, read_repeat

OTHER = Repeat(5, max_period=100, min_length=64)


@pytest.mark.parametrize(
    ("value", "repeat"),
    [
        (None, OTHER),
        (False, None),
        (True, Repeat()),
        ([3, 10, 32], Repeat(3, max_period=10, min_length=32)),
        ((3, 10, 32), Repeat(3, max_period=10, min_length=32)),
    ],
)
def test_what_a_request_asks_for(value: object, repeat: Repeat | None) -> None:
    assert read_repeat(value, OTHER) == repeat


@pytest.mark.parametrize(
    "value", [0, 1, "true", "4,1024,256", [], [4], [4, 100], [4, 100, 64, 1], [4, 100, True], [4.0, 100, 64], {}]
)
def test_wrong_repeat_is_an_error_naming_the_option(value: object) -> None:
    with pytest.raises(ValueError, match=r"^x\.repeat must be true, false or \[count, max_period, min_length\]$"):
        read_repeat(value, name="x.repeat")


@pytest.mark.parametrize(
    "value", [[2, 100, 64], [4, 0, 64], [4, 65537, 64], [4, 100, 31], [-1, 1, 64], [4, 1 << 80, 64]]
)
def test_numbers_out_of_range_name_the_option(value: list[int]) -> None:
    with pytest.raises(ValueError, match=r"^repeat: "):
        read_repeat(value)


def test_a_command_line_asks_with_and_without_a_value() -> None:
    parser = argparse.ArgumentParser()
    add_repeat(parser)
    assert parser.parse_args([]).repeat is None
    assert parser.parse_args(["--repeat"]).repeat == Repeat()
    assert parser.parse_args(["--repeat", "5,100,64"]).repeat == OTHER


@pytest.mark.parametrize("text", ["", "4", "4,5", "4,5,6,7", "a,b,c", "2,100,64", f"{1 << 80},100,64"])
def test_a_value_that_is_none_is_a_usage_error(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_repeat(parser)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--repeat", text])
    assert "is not COUNT,PERIOD,LENGTH, such as 4,1024,256" in capsys.readouterr().err


def test_the_environment_asks_with_a_number_or_with_three() -> None:
    assert [in_environment(text) for text in (None, "", "0")] == [None, None, None]
    assert in_environment("1") == Repeat()
    assert in_environment("5,100,64") == parse_repeat("5,100,64") == OTHER
    with pytest.raises(ValueError, match="'yes' is not COUNT,PERIOD,LENGTH"):
        in_environment("yes")


@pytest.mark.parametrize("name", REPORTS)
def test_the_loops_of_reports(name: str) -> None:
    report = REPORTS[name]
    text, stops = "".join(report.script), StopSet(repeat=report.repeat)
    assert stops.find(text) == report.match
    assert stops.truncate(text)[0] == report.once
    by_default = StopSet(repeat=Repeat()).find(text)
    # By default, the loop of one report is not found, because its block is longer than 1,024 characters.
    assert (by_default is None) == (name == "llama.cpp-26039")
