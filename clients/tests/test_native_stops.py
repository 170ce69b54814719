"""`native_stops` divides stops: some are sent to the API, and a scan looks for the others. Together, the two must give
the result of one scan for all stops."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise, permutations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopscan import StopSet, truncate
from stopscan_clients import native_stops
from stopscan_clients.native import LIMITS, Limit

FIVE = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("api", "stop", "native", "remaining"),
    [
        ("openai", FIVE, FIVE[:4], FIVE[4:]),
        ("azure", FIVE, FIVE[:4], FIVE[4:]),
        ("mistral", FIVE, FIVE[:4], FIVE[4:]),
        ("openai-reasoning", FIVE, [], FIVE),
        ("responses", FIVE, [], FIVE),
        ("grok", FIVE, [], FIVE),
        ("none", FIVE, [], FIVE),
        ("cohere", [*FIVE, "f"], FIVE, ["f"]),
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
def test_limits(api: str, stop: list[str] | str | None, native: list[str], remaining: list[str]) -> None:
    assert native_stops(api, stop) == (native, StopSet(remaining))


@pytest.mark.parametrize("api", ["openai", "azure", "gemini", "mistral", "deepseek", "bedrock", "ollama", "vllm"])
def test_white_space_may_be_a_stop(api: str) -> None:
    assert native_stops(api, "\n") == (["\n"], StopSet())


def test_an_api_that_is_not_known() -> None:
    with pytest.raises(ValueError, match=r"'claude'.*anthropic"):
        native_stops("claude", "END")


def test_a_bad_stop_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        native_stops("openai", ["a", ""])
    with pytest.raises(TypeError):
        native_stops("openai", b"END")  # type: ignore[arg-type]


def test_a_stop_that_hides_another_is_scanned_here() -> None:
    assert native_stops("openai", ["b", "1", "2", "3", "ab"]) == (["1", "2", "3", "ab"], StopSet(["b"]))
    assert native_stops("openai", ["1", "2", "3", "4", "ab", "b"]) == (["1", "2", "3", "4"], StopSet(["ab", "b"]))
    assert native_stops("anthropic", ["x\n\ny", "\n\n"]) == ([], StopSet(["x\n\ny", "\n\n"]))


def test_a_stop_that_overlaps_a_scanned_stop_is_scanned() -> None:
    """In the text ``4 ba``, the stop ``4 b`` fires before the stop ``ba``, so no text may come out. If the API got only
    the stop ``ba``, it would send the text ``4 ``."""
    native, remaining = native_stops("anthropic", ["ba", " "])
    assert (native, remaining) == (["ba"], StopSet(" "))
    assert native_stops("openai-reasoning", ["ba"]) == ([], StopSet("ba"))
    assert native_stops("openai", ["1", "2", "3", "ba", "4 b"]) == (["1", "2", "3", "4 b"], StopSet("ba"))


def test_patterns_and_visible_stops_are_in_the_second() -> None:
    """The second value of ``native_stops`` must have all stops that the API cannot take. It once lacked patterns and
    visible stops."""
    stops = StopSet(["END"], patterns=[r"\d\."])
    assert native_stops("openai", stops) == ([], stops), "nobody can say where a pattern ends"
    stops = StopSet(["END"], visible=["."])
    assert native_stops("openai", stops) == (["END"], StopSet(visible=["."]))
    stops = StopSet(["END"], visible=["N"])
    assert native_stops("openai", stops) == ([], stops)
    stops = StopSet(["END"], protect=[("<think>", "</think>")])
    assert native_stops("openai", stops) == ([], stops), "the API stops in the reasoning, too"


def test_a_chain_of_stops_is_compared_once() -> None:
    """Each stop overlaps the next one: its end is the beginning of the next. So only one of these stops can be sent.
    The comparison of 1,024 stops must not take quadratic time, as it once did."""
    letters = [chr(0x4E00 + at) for at in range(1023)]
    chain = ["#", "#!" + letters[0], *(a + "-" * 57 + b for a, b in pairwise(letters))]
    native, remaining = native_stops("ollama", chain)
    assert (native, len(remaining.stop)) == (["#"], 1023)


WORDS = ["".join(word) for length in (1, 2, 3) for word in product("ab", repeat=length)]
TEXTS = ["".join(text) for length in range(9) for text in product("ab", repeat=length)]


@pytest.mark.parametrize("taken", [1, 2])
def test_every_set_of_three_stops_over_every_text(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API cuts the text at its stops, and then a scan cuts the rest at the other stops. The result must be the same
    as that of one scan for all stops. For 58 of 6,559 random sets it once differed: the API cut inside another stop,
    which the scan could then not find."""
    monkeypatch.setitem(LIMITS, "few", Limit(taken))
    for stop in permutations(WORDS, 3):
        if sum(map(len, stop)) % 3 != taken % 3:
            continue  # test only a third of the sets
        whole = StopSet(stop)
        native, remaining = native_stops("few", stop)
        server = StopSet(native)
        for text in TEXTS[:: 3 if len(stop[0]) > 1 else 1]:
            assert remaining.truncate(server.truncate(text)[0])[0] == whole.truncate(text)[0], (stop, native, text)


@given(
    text=st.text("ab\n", max_size=20),
    stop=st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=7),
    visible=st.lists(st.text("ab\n", min_size=1, max_size=3), max_size=2),
    api=st.sampled_from(sorted(LIMITS)),
)
def test_sent_and_scanned_stops_do_what_a_scan_does(text: str, stop: list[str], visible: list[str], api: str) -> None:
    """The server gets the first value of `native_stops`, and cuts the text at the first of these stops that completes.
    Then the remaining stops cut the server's text. The result must be the text of one scan for all stops."""
    visible = [other for other in visible if other not in stop]
    native, remaining = native_stops(api, StopSet(stop, visible=visible))
    assert sorted([*native, *remaining.stop]) == sorted(set(stop))
    assert remaining.visible == StopSet(visible=visible).visible
    limit = LIMITS[api]
    assert limit.most is None or len(native) <= limit.most
    assert remaining.truncate(truncate(text, native)[0])[0] == StopSet(stop, visible=visible).truncate(text)[0]


def test_the_pages_table_has_the_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| `") and " | " in row]
    answers = {}
    for names, most, *blank in rows:
        if re.match(r"none|any number|\d+$", most):
            for name in re.findall("`([a-z-]+)`", names):
                answers[name] = (most, blank)
    numbers = {0: "none", None: "any number"}
    assert answers == {
        name: (numbers.get(limit.most, str(limit.most)), [] if limit.most == 0 else ["yes" if limit.blank else "no"])
        for name, limit in LIMITS.items()
    }


def of_the_list(stops: list[str], text: str) -> str:
    """Cuts as vLLM does, at the stop that ends first. If several stops end together, the first of them in the list
    counts."""
    ends = [(text.find(stop) + len(stop), place) for place, stop in enumerate(stops) if stop in text]
    return text[: min(ends)[0] - len(stops[min(ends)[1]])] if ends else text


def of_the_beginnings(stops: list[str], text: str) -> str:
    """Cuts as llama.cpp does: at the stop that begins first."""
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]


@pytest.mark.parametrize("server", [of_the_list, of_the_beginnings])
def test_servers_with_other_rules_give_the_same_text(server: Callable[[list[str], str], str]) -> None:
    """Some servers have other rules for two stops that overlap. `native_stops` must divide the stops so that the text
    is the same with these rules. For example, with the stops ``b`` and ``ab``, the text ``xab`` must give ``x``. A
    server that got the stop ``b`` once cut a whole answer to ``xa``."""
    for stop in permutations(WORDS, 2):
        native, remaining = native_stops("vllm", stop)
        for text in TEXTS:
            assert remaining.truncate(server(native, text))[0] == StopSet(stop).truncate(text)[0], (stop, native, text)
