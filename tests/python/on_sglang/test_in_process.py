"""Runs sglang's own scheduler and detokenizer in one process, with stopscan's hooks. The streams are random, and in
some tests stopscan fails."""

from __future__ import annotations

import asyncio
import logging
from traceback import extract_tb
from typing import Any

import pytest

pytest.importorskip("sglang", reason="sglang is not installed; ci/sglang-env makes its environment")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sglang_harness import first_stop
from wrong_values import OPTIONS, pairs, singles

from stopscan import Repeat
from stopscan.engines import Checkpoint, Defaults, Failures
from stopscan.sglang._guard import Guard, Refused
from stopscan.sglang._plugin import hooks
from stopscan.sglang._requests import SET_APART, STOP, Requests
from stopscan.sglang._selftest import Host, installed
from stopscan.tokens import TokenScanner

pytestmark = pytest.mark.sglang

PIECES = ["a", "b", "ab", " ", "END", "E", b"\xe4", b"\xbd", b"\xa0", "ND", " x"]


@pytest.fixture(scope="module")
def host() -> Host:
    return Host()


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each failure of stopscan raise. Otherwise sglang's own search for stops would take over and hide it."""
    monkeypatch.setattr(Failures, "strict", True)


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
        # A stop completes only in text that cannot change any more. Half a character at the end can change, so it is
        # left out.
        stable = max((part for part in whole if text.startswith(part) and part[-1:] != "\ufffd"), key=len, default="")
        stop = first_stop(
            stable if not limit and len(stable) == len(text) else text, stops, [pattern] if pattern else []
        )
        if stop:
            begin, end, matched = stop
            wanted[str(number)] = (text[: end if keep else begin], matched)
        elif limit and len(ids) >= limit:
            wanted[str(number)] = (text, None)
        else:
            wanted[str(number)] = (text, host.tokenizer.eos_token_id)
    with installed(hooks(Defaults())):
        came = host.run(plans, step)
    for rid, (texts, reason, _) in came.items():
        assert ("".join(texts), reason.get("matched")) == wanted[rid]


def test_safe_text_comes_at_once_without_empty_messages(host: Host) -> None:
    pieces = ["a", " x", "E", "ND", "b", "E", "a"]
    with installed(hooks(Defaults())):
        texts, _, _ = host.run({"r": (host.ids(pieces), {"stop": ["ENDING"]})})["r"]
    assert texts == ["a", " x", "ENDb", "Ea", ""]


def test_a_pattern_that_no_scanner_takes_is_a_400(host: Host) -> None:
    with installed(hooks(Defaults())), pytest.raises(ValueError, match="stop_regex is malformed"):
        host.run({"bad": (host.ids(["a"]), {"stop_regex": ["a*"]})})


def test_tokenizer_workers_without_plugins_abort_one_request(host: Host) -> None:
    plans = {
        "bad": (host.ids(["a", "b"]), {"stop_regex": ["a*"]}),
        "good": (host.ids(["a", "END"]), {"stop": ["END"]}),
    }
    all_but_the_door = hooks(Defaults())
    del all_but_the_door["sglang.srt.sampling.sampling_params.SamplingParams.normalize"]
    with installed(all_but_the_door):
        came = host.run(plans)
    assert came["bad"][1]["type"] == "abort"
    assert (came["bad"][1]["status_code"], "stop_regex" in came["bad"][1]["message"]) == (400, True)
    assert ("".join(came["good"][0]), came["good"][1]["matched"]) == ("a", "END")


BOTH = ["reasoning", "tool_call"]
CHAT = {"custom_params": {SET_APART: BOTH}}
QWEN = "<think>\n</think>\n<tool_call>\n</tool_call>"


@pytest.mark.parametrize("step", [1, 3, 50])
@pytest.mark.parametrize(
    ("pieces", "params", "text", "matched"),
    [
        (["<think>", "END", "</think>", "b", "END"], CHAT, "<think>END</think>b", "END"),
        (["a", "<tool_call>", "END", "</tool_call>", "b", "END"], CHAT, "a<tool_call>END</tool_call>b", "END"),
        (["<think>", "a", "<tool_call>", "END", "</tool_call>", "b", "END"], CHAT, None, "END"),
        (["<think>", "a", "END", "</think>"], {}, "<think>a", "END"),
        (
            ["<think>", "a", "END", "</think>"],
            {"custom_params": {SET_APART: BOTH, "stopscan_protect": []}},
            "<think>a",
            "END",
        ),
    ],
)
def test_chat_stops_fire_in_neither_reasoning_nor_calls(
    host: Host,
    pieces: list[str],
    params: dict[str, Any],
    text: str | None,
    matched: str,
    step: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host.tokenizer, "chat_template", QWEN)
    with installed(hooks(Defaults())):
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
    params = {"stop": ["END", "STOP"], "custom_params": {SET_APART: BOTH, STOP: ["END"]}}
    with installed(hooks(Defaults())):
        texts, reason, _ = host.run({"r": (host.ids(pieces), params)}, step)["r"]
    assert ("".join(texts), reason["matched"]) == (text, host.tokenizer.eos_token_id if matched == -1 else matched)


@pytest.mark.parametrize("request_fields", [{"stopscan_repeat": [3, 8, 32]}, None])
def test_a_loop_ends_with_the_token_that_proves_it(host: Host, request_fields: dict[str, Any] | None) -> None:
    defaults = Defaults() if request_fields else Defaults(repeat=Repeat(3, max_period=8, min_length=32))
    plans = {"r": (host.ids(["x", *["a", "b"] * 40]), {"custom_params": request_fields})}
    with installed(hooks(defaults)):
        texts, reason, tokens = host.run(plans)["r"]
    assert ("".join(texts), reason, tokens) == ("x" + "ab" * 16, {"type": "stop", "matched": None}, 33)


def test_a_request_may_turn_the_servers_repeat_off(host: Host) -> None:
    defaults = Defaults(repeat=Repeat(3, max_period=8, min_length=32))
    plans = {"r": (host.ids(["a", "b"] * 40), {"custom_params": {"stopscan_repeat": False}})}
    with installed(hooks(defaults)):
        assert "".join(host.run(plans)["r"][0]) == "ab" * 40


SENTENCE = r"[.!?]\s*$"


@pytest.mark.parametrize(
    ("params", "without", "matched", "with_it"),
    [
        ({"stop": "\n"}, "One and two! ", "\n", "One and two! "),
        ({"stop_regex": "and|or"}, "One and", "and|or", "One "),
        # Without stopscan, sglang searches the text after each step. So `$` matches at the end of the text so far, and
        # the pattern fires too early.
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
    with installed(hooks(Defaults())):
        texts, reason, _ = host.run(plans)["r"]
    if with_it is None:
        assert ("".join(texts), reason["matched"]) == ("One and two! \nThree", host.tokenizer.eos_token_id)
    else:
        assert ("".join(texts), reason.get("matched")) == (with_it, matched)


class Faulty:
    """A scanner that fails at its ``at``-th use. Reading an attribute is a use. A call of a method is two uses, because
    it first reads the method."""

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


def break_scanners(monkeypatch: pytest.MonkeyPatch, at: int, *, kept: bool | None = None) -> None:
    """Makes scanners fail at their ``at``-th use. If ``kept`` is not None, only the scanners of requests whose
    ``no_stop_trim`` equals ``kept`` fail."""
    make = Checkpoint.scanner

    def scanner(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        return Faulty(made, at) if kept in (None, args[1].include_stop) else made

    monkeypatch.setattr(Checkpoint, "scanner", scanner)


@pytest.mark.parametrize("step", [1, 2, 50])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("at", range(1, 14))
def test_failing_stream_keeps_its_text(
    host: Host, forgiving: Failures, at: int, keep: bool, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_scanners(monkeypatch, at)
    plans = {"r": (host.ids(["a", "b", "\u4f60", "E", "ND", "a"]), {"stop": ["END"], "no_stop_trim": keep})}
    with installed(hooks(Defaults(), forgiving)):
        texts, reason, _ = host.run(plans, step)["r"]
    assert ("".join(texts), reason["matched"]) == ("ab\u4f60END" if keep else "ab\u4f60", "END")
    assert forgiving.count == 1


@pytest.mark.parametrize("at", range(1, 14))
def test_fault_in_last_step_keeps_its_stop(
    host: Host, forgiving: Failures, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token that completes the stop also reaches the token limit. Even if stopscan fails there, the stop must be
    reported, not the limit."""
    break_scanners(monkeypatch, at)
    plans = {"r": (host.ids(["a", "b", "E", "ND"]), {"stop": ["END"], "max_new_tokens": 4})}
    with installed(hooks(Defaults(), forgiving)):
        texts, reason, _ = host.run(plans)["r"]
    assert ("".join(texts), reason.get("matched")) == ("ab", "END")


@pytest.mark.parametrize(
    "request_fields", [{"stop_regex": ["E[A-Z]D"]}, {"custom_params": {"stopscan_protect": ["<", ">"]}}]
)
@pytest.mark.parametrize("at", range(1, 24))
def test_failed_stream_sglang_lacks_ends_with_error(
    host: Host, forgiving: Failures, at: int, request_fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_scanners(monkeypatch, at)
    with installed(hooks(Defaults(), forgiving)):
        texts, reason, _ = host.run({"r": (host.ids(["a", "b", "E", "ND", "a"]), {"stop": ["END"], **request_fields})})[
            "r"
        ]
    assert "ab".startswith("".join(texts))
    assert (reason["type"], reason.get("status_code")) == ("abort", 500) if forgiving.count else ("stop", None)


@pytest.mark.parametrize("params", [{"stop_regex": ["(a+)+b"]}, {"custom_params": {"stopscan_patterns": ["E"]}}])
def test_pattern_of_a_failing_request_stays_ours(
    host: Host, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise LookupError("injected")

    monkeypatch.setattr(Failures, "strict", False)
    monkeypatch.setattr(logging.getLogger("sglang.stopscan"), "disabled", True)
    monkeypatch.setattr(Requests, "scanner", broken)
    with installed(hooks(Defaults())):
        _, reason, _ = host.run({"r": (host.ids(["a", "b", "E", "a"]), params)})["r"]
    assert (reason["type"], reason["status_code"]) == ("abort", 500)


@pytest.fixture
def forgiving(monkeypatch: pytest.MonkeyPatch) -> Failures:
    """Returns an object that counts the failures of stopscan's hooks. After a failure, a hook logs nothing and leaves
    the request to sglang."""
    monkeypatch.setattr(Failures, "strict", False)
    silent = logging.Logger("silent")
    silent.disabled = True
    return Failures(silent)


ODD = [[1], 5, True, [["a"]], "x", {"stopscan_patterns": 5}, {"stopscan_protect": [["a"]]}, {5: [None]}, {SET_APART: 5}]
ODD += [
    {SET_APART: [["a"], 5, None]},
    {STOP: 7},
    {STOP: [5]},
    {STOP: [None]},
    {STOP: [["a"]]},
    {SET_APART: "reasoning"},
]
ODD += [
    {"stopscan_protect": {"a": 1}},
    {"stopscan_repeat": [1]},
    {"": {}},
    {"__stopscan_added": [5], "__stopscan_told": 5},
]


@pytest.mark.parametrize("door", [True, False])
@pytest.mark.parametrize("stop", [["END"], None, 5, [["a"]], [5]])
@pytest.mark.parametrize("custom", ODD, ids=str)
def test_custom_params_neither_crash_nor_count_as_failure(
    host: Host, forgiving: Failures, custom: Any, stop: Any, door: bool
) -> None:
    """Malformed parameters must neither crash sglang nor count as a failure of stopscan.

    The hook ``DOOR`` checks the parameters when a request arrives. sglang's tokenizer workers load no plugins, so they
    do not have this hook. With these workers, the parameters reach the scheduler unchecked.
    """
    placed = hooks(Defaults(), forgiving)
    if not door:
        del placed[DOOR]
        stop = None if stop in (5, [5], [["a"]]) else stop  # sglang itself refuses these
    with installed(placed):
        for _ in range(Failures.LIMIT):
            try:
                came = host.run({"odd": (host.ids(["a", "b"]), {"stop": stop, "custom_params": custom})})
                assert came["odd"][1]["type"] in ("stop", "abort")
            except ValueError:
                assert door
        assert forgiving.count == 0
        texts, reason, _ = host.run({"r": (host.ids(["a", "END", "b"]), {"stop": ["END"]})})["r"]
    assert ("".join(texts), reason["matched"]) == ("a", "END")


DOOR = "sglang.srt.sampling.sampling_params.SamplingParams.normalize"


@pytest.mark.parametrize(
    "params",
    [
        {"stop_regex": ["E[A-Z]D"]},
        {"custom_params": {"stopscan_patterns": ["E[A-Z]D"]}},
        {"custom_params": {"stopscan_repeat": True}},
        {"stop": ["END"], "custom_params": {"stopscan_protect": ["<", ">"]}},
        {"stop": ["END"], "custom_params": {SET_APART: ["reasoning"]}},
    ],
)
def test_switched_off_refuses_what_sglang_lacks(host: Host, forgiving: Failures, params: dict[str, Any]) -> None:
    forgiving.off = True
    plans = {"r": (host.ids(["a", "END", "b"]), params)}
    placed = hooks(Defaults(), forgiving)
    with installed(placed), pytest.raises(ValueError, match="switched off"):
        host.run(plans)
    del placed[DOOR]
    with installed(placed):
        _, reason, _ = host.run(plans)["r"]
    assert (reason["type"], reason["status_code"]) == ("abort", 503)


def test_switched_off_leaves_stops_to_sglang(host: Host, forgiving: Failures) -> None:
    forgiving.off = True
    with installed(hooks(Defaults(), forgiving)):
        texts, reason, _ = host.run({"r": (host.ids(["a", "END", "b"]), {"stop": ["END"]})})["r"]
    assert ("".join(texts), reason["matched"]) == ("a", "END")


@pytest.mark.parametrize("pattern", ["(?<n>E)[A-Z]D", r"E\x{4E}D", r"(?:E)[A-Z]D"])
def test_patterns_that_pythons_re_refuses_and_stopscan_takes(host: Host, pattern: str) -> None:
    with installed(hooks(Defaults())):
        texts, reason, _ = host.run({"r": (host.ids(["a", "END", "b"]), {"stop_regex": [pattern]})})["r"]
    assert ("".join(texts), reason["matched"]) == ("a", pattern)


def test_more_stops_than_sglang_takes(host: Host) -> None:
    stops = [*(f"stop {number}" for number in range(1000)), "END"]
    plans = {"r": (host.ids(["a", "END", "b"]), {"stop": stops})}
    with installed(hooks(Defaults())):
        assert "".join(host.run(plans)["r"][0]) == "a"
        with pytest.raises(ValueError, match="stop has 1025 entries; the limit is 1024"):
            host.run({"r": (host.ids(["a"]), {"stop": ["x"] * 1025})})


def test_fault_concerns_its_own_request_only(host: Host, forgiving: Failures, monkeypatch: pytest.MonkeyPatch) -> None:
    """sglang sends the new tokens of several requests in one message. If the scanner of request 1 fails, the stops of
    the other requests must still fire."""
    break_scanners(monkeypatch, 3, kept=True)
    ids = host.ids(["a", "E", "ND", "b"])
    plans = {str(number): (ids, {"stop": ["END", "b"], "no_stop_trim": number == 1}) for number in range(3)}
    with installed(hooks(Defaults(), forgiving)):
        came = {rid: ("".join(texts), reason["matched"]) for rid, (texts, reason, _) in host.run(plans).items()}
    assert came == {"0": ("a", "END"), "1": ("aEND", "END"), "2": ("a", "END")}
    assert forgiving.count == 1


def test_message_without_new_token_is_sglangs(host: Host) -> None:
    """If a request was paused, the first message about it may have no new token. sglang begins to decode a request at
    its first message, so stopscan must leave this message to sglang."""
    with installed(hooks(Defaults())):
        ours, by_sglang = host._request("ours", {"stop": ["END"]}), host._request("by_sglang", {})
        by_sglang.stream = False
        came = {"ours": "", "by_sglang": ""}
        for new in (["a"], ["b"], []):
            for req, pieces in ((ours, new), (by_sglang, [] if new == ["a"] else ["x", *new])):
                ids = host.ids(pieces) if new else [host.tokenizer.eos_token_id]
                req.output_ids.extend(ids)
                req.update_finish_state(len(ids))
            message = host._message([ours, by_sglang])
            for rid, text in zip(message.rids, host.detokenizer._decode_batch_token_id_output(message), strict=True):
                came[rid] += text
    assert came == {"ours": "ab", "by_sglang": "xb"}


def test_requests_without_stops_stay_sglangs(host: Host) -> None:
    from sglang.srt.managers.schedule_batch import Req

    with installed(hooks(Defaults())):
        for custom in (None, {}, {"thinking_budget": 5}, {SET_APART: ["reasoning"], STOP: []}):
            assert type(host._request("r", {"custom_params": custom})) is Req


def before() -> Any:
    raise LookupError("injected")
    yield


def after() -> Any:
    yield
    raise LookupError("injected")


def never() -> Any:
    return
    yield


def other_arguments() -> Any:
    raise AssertionError("not with these")


@pytest.mark.parametrize("hook", [before, after, never, lambda: other_arguments(), lambda wrong: None])
def test_hook_raises_nothing_and_runs_sglang_once(forgiving: Failures, hook: Any) -> None:
    calls: list[int] = []
    guarded = Guard(forgiving).around(hook)
    assert guarded(lambda: calls.append(1) or "sglang's") == "sglang's"
    assert (calls, forgiving.count) == ([1], 1)


def test_sglangs_own_exceptions_and_refusals_leave_a_hook(forgiving: Failures) -> None:
    def fine() -> Any:
        yield

    def refusing() -> Any:
        raise Refused("stop is wrong")
        yield

    def by_sglang() -> None:
        raise KeyError("sglang's")

    with pytest.raises(KeyError):
        Guard(forgiving).around(fine)(by_sglang)
    with pytest.raises(ValueError, match="stop is wrong"):
        Guard(forgiving).around(refusing)(by_sglang)
    assert forgiving.count == 0


def test_fault_within_a_stream_loses_no_text(forgiving: Failures) -> None:
    async def made() -> Any:
        for item in "abc":
            yield item

    def each(item: str) -> str:
        return item.upper() if item != "b" else str(1 / 0)

    async def run() -> list[str]:
        return [item async for item in Guard(forgiving).stream(made(), each, lambda count: f"{count}")]

    assert asyncio.run(run()) == ["A", "b", "C", "3"]
    assert forgiving.count == 1


@pytest.mark.parametrize("set_apart", [[], ["reasoning"]])
def test_unparsed_text_of_a_chat_is_content(host: Host, set_apart: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.tokenizer, "chat_template", QWEN)
    pieces = ["<think>", "a", "</think>", "<tool_call>", "END", "</tool_call>"]
    with installed(hooks(Defaults())):
        plans = {"r": (host.ids(pieces), {"stop": ["END"], "custom_params": {SET_APART: set_apart}})}
        texts, reason, _ = host.run(plans)["r"]
    assert ("".join(texts), reason["matched"]) == ("<think>a</think><tool_call>", "END")


# Wrong requests: each field with each wrong JSON value, alone and in pairs, with and without the hook ``DOOR``.
CUSTOM = [*(f"stopscan_{name}" for name in (*OPTIONS, "stop")), "__stopscan_added", "__stopscan_told"]
OWN_FIELDS = [
    "stop",
    "stop_regex",
    "stop_token_ids",
    "no_stop_trim",
    "skip_special_tokens",
    "custom_params",
    "ignore_eos",
]
OWN_FIELDS += ["min_new_tokens", "spaces_between_special_tokens"]


def request_of(values: dict[str, Any], stops: dict[str, Any]) -> dict[str, Any]:
    custom = {name: value for name, value in values.items() if name in CUSTOM}
    fields = {name: value for name, value in values.items() if name not in CUSTOM}
    return {**stops, **({"custom_params": custom} if custom else {}), **fields}


def test_wrong_values_change_no_other_request(host: Host, forgiving: Failures) -> None:
    """A request with wrong values must not change other requests. Before a fix, `custom_params: {"__stopscan_added":
    [5]}` ended the server, and three requests with `stop_token_ids: [-1]` switched stopscan off for all requests."""
    good = {"good": (host.ids(["a", "END", "b"]), {"stop": ["END"]})}
    placed, counted, escaped = hooks(Defaults(), forgiving), [], []
    with installed(placed):
        for number, values in enumerate((*singles((*CUSTOM, *OWN_FIELDS)), *pairs((*CUSTOM, *OWN_FIELDS[:4])))):
            before = forgiving.count
            params = request_of(values, ({}, {"stop": ["END"]}, {"stop_regex": "a+b"})[number % 3])
            try:
                came = host.run({"odd": (host.ids(["a", "b"]), params), **good})
            except (ValueError, TypeError, AssertionError, AttributeError, OverflowError) as error:
                # sglang refuses the value, or stopscan does.
                escaped.extend([(values, error)] * (is_ours(error) and not isinstance(error, Refused)))
            else:
                assert came["odd"][1]["type"] in ("stop", "abort", "length")
                assert ("".join(came["good"][0]), came["good"][1]["matched"]) == ("a", "END")
            if forgiving.count > before:
                counted.append(values)
    assert (counted, escaped, forgiving.off) == ([], [], False)


def is_ours(error: BaseException) -> bool:
    return "python/stopscan" in extract_tb(error.__traceback__)[-1].filename


@pytest.mark.parametrize("ids", [[-1], [2**32], [10**12]])
def test_impossible_token_ids_are_a_400_naming_field(host: Host, forgiving: Failures, ids: list[int]) -> None:
    with installed(hooks(Defaults(), forgiving)):
        for _ in range(Failures.LIMIT):
            with pytest.raises(ValueError, match=r"^stop_token_ids must be a list of token ids"):
                host.run({"r": (host.ids(["a"]), {"stop": ["END"], "stop_token_ids": ids})})
        texts, reason, _ = host.run({"r": (host.ids(["a", "END"]), {"stop_regex": ["E[A-Z]D"]})})["r"]
    assert ("".join(texts), reason["matched"], forgiving.count) == ("a", "E[A-Z]D", 0)


def test_a_hook_that_adds_a_nicety_goes_alone(forgiving: Failures) -> None:
    """A hook with `alone=True` adds something that stops do not need. After `LIMIT` faults of this hook, only this
    hook is switched off. Before a fix, three faulty chunks of one stream switched `stop_regex` off for all requests."""
    calls = []

    def hook() -> Any:
        calls.append(1)
        raise LookupError("injected")
        yield

    nicety = Guard(forgiving, "chunks", alone=True).around(hook)
    for _ in range(5):
        assert nicety(lambda: "sglang's") == "sglang's"
    assert (len(calls), forgiving.off) == (Failures.LIMIT, False)
    carrier = Guard(forgiving, "normalize").around(hook)
    for _ in range(3):
        carrier(lambda: None)
    assert forgiving.off
