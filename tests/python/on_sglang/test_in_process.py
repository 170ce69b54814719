"""sglang's own scheduler and detokenizer in one process, with stopscan's hooks: random streams, and faults."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytest.importorskip("sglang", reason="sglang is not installed; ci/sglang-env makes its environment")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sglang_harness import first_stop

from stopscan import Repeat
from stopscan._engine.circuit import Circuit
from stopscan._engine.environment import Settings
from stopscan.sglang._hooks import hooks
from stopscan.sglang._requests import KEY, Requests
from stopscan.sglang._selftest import Host, installed
from stopscan.sglang._spec import Spec
from stopscan.tokens import TokenScanner

pytestmark = pytest.mark.sglang

PIECES = ["a", "b", "ab", " ", "END", "E", b"\xe4", b"\xbd", b"\xa0", "ND", " x"]


@pytest.fixture(scope="module")
def host() -> Host:
    return Host()


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switches the way back off, because it hides the faults that it helps over."""
    monkeypatch.setattr(Circuit, "strict", True)


streams = st.lists(st.sampled_from(PIECES), min_size=1, max_size=10)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            streams,
            st.lists(st.text("abEND 你x", min_size=1, max_size=4), max_size=4),
            st.sampled_from([None, None, "[ab]{2} ", "E[A-Z]D"]),
            st.booleans(),
            st.sampled_from([None, 3]),
        ),
        min_size=1,
        max_size=4,
    ),
    step=st.integers(1, 4),
)
def test_streams_equal_brute_force_over_their_ids(
    host: Host, rows: list[tuple[list[str | bytes], list[str], str | None, bool, int | None]], step: int
) -> None:
    plans, wanted = {}, {}
    for number, (pieces, stops, pattern, keep, limit) in enumerate(rows):
        ids = host.ids(pieces)
        params: dict[str, Any] = {"stop": stops, "stop_regex": [pattern] if pattern else [], "no_stop_trim": keep}
        if limit:
            params["max_new_tokens"] = limit
        plans[str(number)] = (ids, params)
        seen = ids[:limit] if limit else ids
        text = host.tokenizer.decode(seen, skip_special_tokens=True)
        whole = [host.tokenizer.decode(seen[:length], skip_special_tokens=True) for length in range(len(seen) + 1)]
        # A stop completes with a token whose text stays: half characters come later.
        stable = max((one for one in whole if text.startswith(one) and not one.endswith("\ufffd")), key=len, default="")
        found = first_stop(
            stable if not limit and len(stable) == len(text) else text, stops, [pattern] if pattern else []
        )
        if found:
            begin, end, matched = found
            wanted[str(number)] = (text[: end if keep else begin], matched)
        elif limit and len(ids) >= limit:
            wanted[str(number)] = (text, None)
        else:
            wanted[str(number)] = (text, host.tokenizer.eos_token_id)
    with installed(hooks(Settings())):
        came = host.run(plans, step)
    for rid, (texts, reason, _) in came.items():
        assert ("".join(texts), reason.get("matched")) == wanted[rid]


def test_text_comes_as_soon_as_it_is_safe_and_no_message_is_empty(host: Host) -> None:
    pieces = ["a", " x", "E", "ND", "b", "E", "a"]
    with installed(hooks(Settings())):
        texts, _, _ = host.run({"r": (host.ids(pieces), {"stop": ["ENDING"]})})["r"]
    assert texts == ["a", " x", "ENDb", "Ea", ""]


def test_a_pattern_that_no_scanner_takes_is_an_abort_of_its_request_alone(host: Host) -> None:
    plans = {
        "bad": (host.ids(["a", "b"]), {"stop_regex": ["a*"]}),
        "good": (host.ids(["a", "END"]), {"stop": ["END"]}),
    }
    with installed(hooks(Settings())):
        came = host.run(plans)
    assert came["bad"][1]["type"] == "abort"
    assert (came["bad"][1]["status_code"], "stop_regex" in came["bad"][1]["message"]) == (400, True)
    assert ("".join(came["good"][0]), came["good"][1]["matched"]) == ("a", "END")


CHAT = {"custom_params": {KEY: []}}
QWEN = "<think>\n</think>\n<tool_call>\n</tool_call>"


@pytest.mark.parametrize("step", [1, 3, 50])
@pytest.mark.parametrize(
    ("pieces", "params", "text", "matched"),
    [
        (["<think>", "END", "</think>", "b", "END"], CHAT, "<think>END</think>b", "END"),
        (["a", "<tool_call>", "END", "</tool_call>", "b", "END"], CHAT, "a<tool_call>END</tool_call>b", "END"),
        (["<think>", "a", "<tool_call>", "END", "</tool_call>", "b", "END"], CHAT, None, "END"),
        (["<think>", "a", "END", "</think>"], {}, "<think>a", "END"),
        (["<think>", "a", "END", "</think>"], {"custom_params": {KEY: [], "stopscan_protect": []}}, "<think>a", "END"),
    ],
)
def test_on_chat_routes_no_stop_fires_in_reasoning_or_calls(
    host: Host,
    pieces: list[str],
    params: dict[str, Any],
    text: str | None,
    matched: str,
    step: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host.tokenizer, "chat_template", QWEN)
    with installed(hooks(Settings())):
        texts, reason, _ = host.run({"r": (host.ids(pieces), {"stop": ["END"], **params})}, step)["r"]
    assert ("".join(texts), reason["matched"]) == ("".join(pieces[:-1]) if text is None else text, matched)


@pytest.mark.parametrize("step", [1, 3, 50])
@pytest.mark.parametrize(
    ("pieces", "text", "matched"),
    [
        (["<think>", "END", "a", "ST", "OP", "b"], "<think>ENDa", "STOP"),
        (["<think>", "S", "</think>", "a", "END", "b"], "<think>S</think>a", "END"),
        (["<think>", "S", "T", "</think>", "a", "ENDST", "OP"], "<think>ST</think>a", "END"),
        (["<think>", "S", "T"], "<think>ST", -1),
    ],
)
def test_stops_that_sglang_adds_fire_in_the_reasoning_too(
    host: Host, pieces: list[str], text: str, matched: str | int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host.tokenizer, "chat_template", QWEN)
    params = {"stop": ["END", "STOP"], "custom_params": {KEY: ["STOP"]}}
    with installed(hooks(Settings())):
        texts, reason, _ = host.run({"r": (host.ids(pieces), params)}, step)["r"]
    assert ("".join(texts), reason["matched"]) == (text, host.tokenizer.eos_token_id if matched == -1 else matched)


@pytest.mark.parametrize("asked", [{"stopscan_repeat": [3, 8, 32]}, None])
def test_a_loop_ends_with_the_token_that_proves_it(host: Host, asked: dict[str, Any] | None) -> None:
    settings = Settings() if asked else Settings(repeat=Repeat(3, max_period=8, min_length=32))
    plans = {"r": (host.ids(["x", *["a", "b"] * 40]), {"custom_params": asked})}
    with installed(hooks(settings)):
        texts, reason, tokens = host.run(plans)["r"]
    assert ("".join(texts), reason, tokens) == ("x" + "ab" * 16, {"type": "stop", "matched": None}, 33)


def test_a_request_may_turn_the_servers_repeat_off(host: Host) -> None:
    settings = Settings(repeat=Repeat(3, max_period=8, min_length=32))
    plans = {"r": (host.ids(["a", "b"] * 40), {"custom_params": {"stopscan_repeat": False}})}
    with installed(hooks(settings)):
        assert "".join(host.run(plans)["r"][0]) == "ab" * 40


SENTENCE = r"[.!?]\s*$"


@pytest.mark.parametrize(
    ("params", "without", "matched", "with_it"),
    [
        ({"stop": "\n"}, "One and two! ", "\n", "One and two! "),
        ({"stop_regex": "and|or"}, "One and", "and|or", "One "),
        # `$` is the end of any step there.
        ({"stop_regex": SENTENCE}, "One and two!", SENTENCE, None),
        ({"max_new_tokens": 5}, "One a", None, "One a"),
    ],
)
def test_sglangs_matched_stop_kit_without_and_with_it(
    host: Host, params: dict[str, Any], without: str, matched: str | None, with_it: str | None
) -> None:
    plans = {"r": (host.ids([*"One and two! ", "\n", *"Three"]), params)}
    texts, reason, _ = host.run(plans)["r"]
    assert ("".join(texts), reason.get("matched")) == (without, matched)
    with installed(hooks(Settings())):
        texts, reason, _ = host.run(plans)["r"]
    if with_it is None:
        assert ("".join(texts), reason["matched"]) == ("One and two! \nThree", host.tokenizer.eos_token_id)
    else:
        assert ("".join(texts), reason.get("matched")) == (with_it, matched)


class Faulty:
    """A scanner of which one use fails: the look at an attribute, or the call of a method."""

    def __init__(self, scanner: TokenScanner, at: int) -> None:
        self._scanner = scanner
        self._left = at

    def _use(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise LookupError("injected")

    def __getattr__(self, name: str) -> Any:
        self._use()
        value = getattr(self._scanner, name)
        return (lambda *args: self._use() or value(*args)) if callable(value) else value


OWN = {"stop": ["END"]}
BEYOND = {"stop_regex": ["E[A-Z]D"], "custom_params": {"stopscan_protect": ["<", ">"]}}


@pytest.mark.parametrize(
    ("failing", "params", "matched"),
    [("scheduler", OWN, "END"), ("detokenizer", OWN, "END"), ("detokenizer", BEYOND, "E[A-Z]D")],
)
@pytest.mark.parametrize("at", range(1, 9))
def test_a_stream_that_fails_has_its_text_all_the_same(
    host: Host, failing: str, params: dict[str, Any], matched: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Circuit, "strict", False)
    monkeypatch.setattr(logging.getLogger("sglang.stopscan"), "disabled", True)
    make, makers = Spec.scanner, iter(["scheduler", "detokenizer"])

    def scanner(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        return Faulty(made, at) if next(makers) == failing else made

    monkeypatch.setattr(Spec, "scanner", scanner)
    pieces = ["<", "END", ">"] if params is BEYOND else []
    with installed(hooks(Settings())):
        texts, reason, _ = host.run({"r": (host.ids([*pieces, "a", "b", "E", "ND", "a"]), params)})["r"]
    assert ("".join(texts), reason["matched"]) == ("".join(pieces) + "ab", matched)


@pytest.mark.parametrize("params", [{"stop_regex": ["(a+)+b"]}, {"custom_params": {"stopscan_patterns": ["E"]}}])
def test_a_pattern_whose_request_fails_at_once_is_not_left_to_sglang(
    host: Host, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise LookupError("injected")

    monkeypatch.setattr(Circuit, "strict", False)
    monkeypatch.setattr(logging.getLogger("sglang.stopscan"), "disabled", True)
    monkeypatch.setattr(Requests, "spec", broken)
    with installed(hooks(Settings())):
        _, reason, _ = host.run({"r": (host.ids(["a", "b", "E", "a"]), params)})["r"]
    assert (reason["type"], reason["status_code"]) == ("abort", 500)
