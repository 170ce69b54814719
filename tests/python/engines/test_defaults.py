"""The operator's defaults, the switch that turns an adapter on, and `Failures`, which turns the adapter off."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from asyncio import CancelledError

import pytest

from stopscan import Repeat
from stopscan.engines import Defaults, Failures, Limits, add_defaults, switch


def test_defaults_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Defaults.from_environment("STOPSCAN_X") == Defaults()
    monkeypatch.setenv("STOPSCAN_X_PROTECT", '["reasoning", "<a>", "</a>"]')
    monkeypatch.setenv("STOPSCAN_X_REPEAT", "1")
    monkeypatch.setenv("STOPSCAN_X_LIMITS", "stops=4,bytes=100")
    found = Defaults.from_environment("STOPSCAN_X")
    assert found == Defaults(("reasoning", ("<a>", "</a>")), Repeat(), Limits(stops=4, bytes=100))
    hash(found)
    monkeypatch.setenv("STOPSCAN_X_PROTECT", "reasoning")
    assert Defaults.from_environment("STOPSCAN_X").protect == ("reasoning",)
    monkeypatch.setenv("STOPSCAN_X_PROTECT", "[]")
    assert Defaults.from_environment("STOPSCAN_X").protect == ()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PROTECT", "thoughts"),
        ("PROTECT", '["<a>"]'),
        ("PROTECT", '{"<a>": "</a>"}'),
        ("PROTECT", '[["<a>", "</a>"], ["<a>", "</b>"]]'),
        ("REPEAT", "yes"),
        ("REPEAT", "2,1024,256"),
        ("LIMITS", "stops"),
        ("LIMITS", "stops=-1"),
        ("LIMITS", "stop=1"),
        ("LIMITS", "stops=1,,"),
    ],
)
def test_a_wrong_variable_is_named(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"STOPSCAN_X_{variable}", value)
    with pytest.raises(ValueError, match=f"^STOPSCAN_X_{variable}: "):
        Defaults.from_environment("STOPSCAN_X")


def parsed(*arguments: str) -> Namespace:
    parser = ArgumentParser()
    add_defaults(parser)
    return parser.parse_args(arguments)


def test_defaults_on_a_command_line() -> None:
    assert Defaults.from_arguments(parsed()) == Defaults()
    assert Defaults.from_arguments(parsed("--protect")) == Defaults(())
    given = parsed("--protect", "reasoning", "<a>", "</a>", "--repeat", "4,512,64")
    assert Defaults.from_arguments(given) == Defaults(
        ("reasoning", ("<a>", "</a>")), Repeat(4, max_period=512, min_length=64)
    )
    with pytest.raises(ValueError, match=r"^--protect 'thoughts' is not a region"):
        Defaults.from_arguments(parsed("--protect", "thoughts"))


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "0"), ("", "0"), ("0", "0"), ("1", "1"), ("optional", "optional")]
)
def test_the_switch(value: str | None, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STOPSCAN_X", raising=False)
    if value is not None:
        monkeypatch.setenv("STOPSCAN_X", value)
    assert switch("STOPSCAN_X") == expected


def test_a_wrong_switch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPSCAN_X", "yes")
    with pytest.raises(ValueError, match="STOPSCAN_X must be 0, 1 or optional, not 'yes'"):
        switch("STOPSCAN_X")


def test_three_faults_turn_an_adapter_off(caplog: pytest.LogCaptureFixture) -> None:
    failures = Failures(logging.getLogger("x"))
    for number in range(4):
        assert failures.off == (number >= 3)
        failures.note(RuntimeError(f"fault {number}"), "was left to the engine")
    assert [record.getMessage().split(".")[0] for record in caplog.records] == [
        "stopscan failed in a request, which was left to the engine",
        "stopscan failed 3 times and is off for new requests",
    ]
    assert "fault 0" in caplog.text
    assert not Failures(logging.getLogger("x")).off


def test_failures_count_for_each_hook() -> None:
    """Failures are counted for each hook, and three failures of one hook switch stopscan off. Two failures of each of
    three hooks must not switch it off."""
    failures = Failures(logging.Logger("silent", 99))
    for _ in range(2):
        for hook in ("a", "b", "c"):
            failures.note(RuntimeError("fault"), "was left to the engine", hook)
    assert (failures.count, failures.off) == (6, False)
    failures.note(RuntimeError("fault"), "was left to the engine", "a", alone=True)
    assert (failures.off, failures.gone("a"), failures.gone("b")) == (False, True, False)
    failures.note(RuntimeError("fault"), "was left to the engine", "b")
    assert failures.off


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), GeneratorExit(), CancelledError()], ids=repr)
def test_what_is_none_of_ours_goes_on(error: BaseException) -> None:
    failures = Failures(logging.getLogger("x"))
    with pytest.raises(type(error)):
        failures.note(error, "ended")
    assert failures.count == 0
