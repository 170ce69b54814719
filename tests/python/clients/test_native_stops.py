"""What an API takes of a list of stops: nothing gets lost, and the two halves together do what one scan does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import Reference

from stopscan import truncate
from stopscan.clients import native_stops
from stopscan.clients._native import LIMITS

FIVE = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("api", "stop", "native", "left"),
    [
        ("openai", FIVE, FIVE[:4], FIVE[4:]),
        ("azure", FIVE, FIVE[:4], FIVE[4:]),
        ("mistral", FIVE, FIVE[:4], FIVE[4:]),
        ("openai-reasoning", FIVE, [], FIVE),
        ("responses", FIVE, [], FIVE),
        ("grok", FIVE, [], FIVE),
        ("gemini", [*FIVE, "f"], FIVE, ["f"]),
        ("anthropic", ["\n", "END", " \t", *FIVE], ["END", *FIVE], ["\n", " \t"]),
        ("deepseek", [f"<{n}>" for n in range(20)], [f"<{n}>" for n in range(16)], [f"<{n}>" for n in range(16, 20)]),
        ("bedrock", [f"<{n}>" for n in range(2501)], [f"<{n}>" for n in range(2500)], ["<2500>"]),
        ("vllm", FIVE, FIVE[:4], FIVE[4:]),
        ("ollama", ["\n", *FIVE], ["\n", *FIVE], []),
        ("openai", "END", ["END"], []),
        ("openai", None, [], []),
        ("openai", ["a", "a", "b"], ["a", "b"], []),
    ],
)
def test_limits(api: str, stop: list[str] | str | None, native: list[str], left: list[str]) -> None:
    assert native_stops(api, stop) == (native, left)


@pytest.mark.parametrize("api", ["openai", "azure", "gemini", "mistral", "deepseek", "bedrock", "ollama", "vllm"])
def test_white_space_may_be_a_stop(api: str) -> None:
    assert native_stops(api, "\n") == (["\n"], [])


def test_every_limit_names_its_source() -> None:
    assert all(limit.source for limit in LIMITS.values())


def test_an_api_that_is_not_known() -> None:
    with pytest.raises(ValueError, match=r"'claude'.*anthropic"):
        native_stops("claude", "END")


def test_a_bad_stop_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        native_stops("openai", ["a", ""])
    with pytest.raises(TypeError):
        native_stops("openai", b"END")  # type: ignore[arg-type]


def test_a_stop_that_would_hide_another_is_left() -> None:
    assert native_stops("openai", ["b", "1", "2", "3", "ab"]) == (["1", "2", "3", "ab"], ["b"])
    assert native_stops("openai", ["abc", "1", "2", "3", "b"]) == (["1", "2", "3", "b"], ["abc"])
    assert native_stops("anthropic", ["x\n\ny", "\n\n"]) == ([], ["x\n\ny", "\n\n"])


@given(
    text=st.text("ab\n", max_size=20),
    stop=st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=7),
    api=st.sampled_from(sorted(LIMITS)),
)
def test_the_two_halves_do_what_one_scan_does(text: str, stop: list[str], api: str) -> None:
    """A server that matches by rule 1 cuts at what it was sent, and the rest is scanned for in what it sends."""
    native, left = native_stops(api, stop)
    assert sorted([*native, *left]) == sorted(set(stop))
    limit = LIMITS[api]
    assert limit.most is None or len(native) <= limit.most
    oracle = Reference(stop)
    expected = oracle.feed(text) + oracle.flush()
    assert truncate(truncate(text, native)[0], left)[0] == expected
