"""``read_options`` reads the options of a request. Whatever a client sends, the only error is a ``ValueError`` that
names the option."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopscan import Repeat, StopSet
from stopscan.engines import Defaults, Limits, StopOptions, read_options


def nested(depth: int) -> Any:
    value: Any = "END"
    for _ in range(depth):
        value = [value]
    return value


def test_all_options_of_a_request() -> None:
    body = {
        "model": "m", "stop": ["END", "\n\n"], "patterns": r"\d{4}", "max_held": 80, "stop_token_ids": [7, 8],
        "min_tokens": 3, "include_stop": True, "protect": ["reasoning", "<a>", "</a>"], "start_protected": False,
        "repeat": [4, 1024, 256], "visible_patterns": [r"[.!?]\s"],
    }  # fmt: skip
    patterns = {"patterns": [r"\d{4}"], "visible_patterns": [r"[.!?]\s"]}
    stops = StopSet(["END", "\n\n"], **patterns, max_held=80, repeat=Repeat())
    options = read_options(body)
    assert options == StopOptions(stops, ("reasoning", ("<a>", "</a>")), False, (7, 8), 3, True, True)
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(options) == hash(read_options(body))


def test_the_same_in_a_flat_mapping_that_others_share() -> None:
    given = {"mine": 1, "stopscan_patterns": ["a+b"], "stopscan_repeat": 1, "stopscan_start_protected": 0, 5: 6}
    options = read_options(given, prefix="stopscan_", own={"stop": ["END"], "min_tokens": None})
    assert options == StopOptions(StopSet("END", patterns=["a+b"], repeat=Repeat()), start_protected=False, asks=True)


def test_a_field_may_have_the_name_of_an_api() -> None:
    """`read_options` also accepts `stop_sequences`, which is Anthropic's name for `stop`. If its value is wrong, the
    error must name `stop_sequences`. Before a fix, the error named a field that the request did not have."""
    assert read_options({"stop_sequences": ["END"]}) == read_options({"stop": ["END"]})
    for body in ({"stop_sequences": ["END", 5]}, {"stop_sequences": ["END", ""]}):
        with pytest.raises(ValueError, match=r"^stop_sequences "):
            read_options(body)
    own = {"stop_regex": ["b+c"], "no_stop_trim": True}
    options = read_options({"stopscan_patterns": "a+b"}, prefix="stopscan_", own=own)
    assert (options.stops.patterns, options.include_stop) == (("a+b", "b+c"), True)
    with pytest.raises(ValueError, match=r"^stop_regex is malformed: "):
        read_options({}, prefix="stopscan_", own={"stop_regex": "("})
    with pytest.raises(ValueError, match=r"^stopscan_patterns"):
        read_options({"stopscan_patterns": "("}, prefix="stopscan_", own={"stop_regex": []})
    with pytest.raises(ValueError, match=r"^no_stop_trim must be true or false, not 5$"):
        read_options({}, own={"no_stop_trim": 5})


@pytest.mark.parametrize("route", [(), ("reasoning", "tool_call")])
def test_the_operators_regions_replace_the_routes(route: tuple[str, ...]) -> None:
    body = {"stop": "END"}
    assert read_options(body, default=route).default == route
    for own in ((), ("reasoning",), (("<a>", "</a>"),)):
        assert read_options(body, Defaults(protect=own), default=route) == replace(
            read_options(body, default=route), default=own
        )
    assert read_options({"start_protected": True}, Defaults(protect=("reasoning",)), default=route).start_protected
    with pytest.raises(ValueError, match=r"^x_start_protected needs a region in x_protect$"):
        read_options({"x_start_protected": 1}, Defaults(protect=()), default=route, prefix="x_")


def test_what_the_route_sets_apart_may_be_an_option() -> None:
    """`default` lists the regions in which no stop fires by default. An engine may send it as an option to another of
    its processes. A client can send the same option, so `read_options` must check its value."""
    fields = ("patterns", "default")
    options = read_options({"x_default": ["answer", "tool_call"]}, default=["reasoning"], prefix="x_", fields=fields)
    assert options.default == ("answer", "tool_call")
    for value in ("thoughts", 5, [None], [["a"]], {"reasoning": 1}, ["<a>"]):
        with pytest.raises(ValueError, match=r"^x_default "):
            read_options({"x_default": value}, prefix="x_", fields=fields)
    assert read_options({"default": 5}).default == ()  # without `fields`, `default` is not an option


@pytest.mark.parametrize("nothing", [None, {}, {"stop": None, "repeat": None}, {"stop": []}, {"temperature": 0}])
def test_a_request_that_asks_nothing(nothing: Any) -> None:
    assert read_options(nothing) == StopOptions()
    default = Defaults(repeat=Repeat(5))
    assert read_options(nothing, default) == StopOptions(StopSet(repeat=Repeat(5)))  # only the request sets `asks`
    assert read_options({"repeat": False}, default) == StopOptions()


@pytest.mark.parametrize(
    "request_fields",
    [{"stop": "a"}, {"patterns": ["a"]}, {"visible_patterns": "a"}, {"stop_token_ids": [1]}, {"repeat": True}],
    ids=str,
)
def test_a_request_that_asks_for_a_stop(request_fields: Any) -> None:
    assert read_options(request_fields).asks


HOSTILE: list[tuple[str, Any]] = [
    ("stop", ""),
    ("stop", [""]),
    ("stop", ["a", None]),
    ("stop", [["a"]]),
    ("stop", {"a": 1}),
    ("stop", 5),
    ("stop", True),
    ("stop", "\ud800"),
    ("stop", ["a\udfff"]),
    ("stop", nested(900)),
    ("stop", 10**5000),
    ("stop", ["a"] * 1025),
    ("stop", "a" * 8193),
    ("stop", {"a": {"b": nested(900)}}),
    ("patterns", "("),
    ("patterns", ["a.*b"]),
    ("patterns", ["\ud800"]),
    ("patterns", [r"\p{L}"]),
    ("patterns", [""]),
    ("patterns", ["a*"]),
    ("patterns", ["(" * 3000]),
    ("patterns", ["a"] * 65),
    ("visible_patterns", "("),
    ("visible_patterns", ["a"] * 65),
    ("visible_patterns", ["a" * 8193]),
    ("visible_patterns", 1),
    ("patterns", ["a" * 8193]),
    ("patterns", {"a"}),
    ("patterns", [r"\w{30}!" * 40]),
    ("max_held", -1),
    ("max_held", 1.5),
    ("max_held", "5"),
    ("max_held", True),
    ("max_held", 10**30),
    ("stop_token_ids", 5),
    ("stop_token_ids", [1.0]),
    ("stop_token_ids", [True]),
    ("stop_token_ids", [-1]),
    ("stop_token_ids", [2**31]),
    ("stop_token_ids", ["7"]),
    ("stop_token_ids", [1] * 1025),
    ("min_tokens", -1),
    ("min_tokens", "3"),
    ("min_tokens", 10**5000),
    ("min_tokens", float("nan")),
    ("include_stop", "yes"),
    ("include_stop", 2),
    ("include_stop", []),
    ("start_protected", "reasoning"),
    ("protect", 5),
    ("protect", True),
    ("protect", {"<a>": "</a>"}),
    ("protect", "tool_calls"),
    ("protect", ["reasoning", None]),
    ("protect", [["<a>"]]),
    ("protect", [["<a>", ""]]),
    ("protect", ["<a>"]),
    ("protect", [["<a>", 5]]),
    ("protect", ["\ud800", "</a>"]),
    ("protect", [["<a>", "</a>"], ["<a>", "</b>"]]),
    ("protect", nested(900)),
    ("protect", [["<a>", "</a>"]] * 65),
    ("protect", ["<" * 8192, ">"]),
    ("repeat", "yes"),
    ("repeat", [4, 1024]),
    ("repeat", [2, 1024, 256]),
    ("repeat", [4, 10**30, 256]),
    ("repeat", [4.0, 1024, 256]),
    ("repeat", {}),
]


def short(value: Any) -> str:
    try:
        return repr(value)[:40].encode("ascii", "backslashreplace").decode()
    except ValueError:
        return "a large number"


@pytest.mark.parametrize(("option", "value"), HOSTILE, ids=[f"{name}={short(value)}" for name, value in HOSTILE])
@pytest.mark.parametrize("prefix", ["", "stopscan_"])
def test_hostile_values_are_errors_naming_the_option(option: str, value: Any, prefix: str) -> None:
    with pytest.raises(ValueError, match=f"^{prefix}{option} ") as caught:
        read_options({prefix + option: value}, prefix=prefix)
    message = str(caught.value)
    json.dumps(message, ensure_ascii=False).encode()  # a server can send it
    assert len(message) < 600


@pytest.mark.parametrize("given", [5, "stop", ["stop"], True, b"", 0.5, nested(900)], ids=short)
def test_what_is_no_mapping_is_a_value_error_too(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^the options about stops must be an object"):
        read_options(given, prefix="stopscan_")


@pytest.mark.parametrize("name", ["stopscan_", "stopscan_stops", "stopscan_visible", "stopscan_\ud800"])
def test_unknown_option_with_the_prefix_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not an option of stopscan; the options are stopscan_stop, ") as caught:
        read_options({name: 1}, prefix="stopscan_")
    str(caught.value).encode()
    fields = ("patterns", "protect")
    with pytest.raises(
        ValueError, match=r"^stopscan_stop is not .* the options are stopscan_patterns, stopscan_protect$"
    ):
        read_options({"stopscan_stop": "END"}, prefix="stopscan_", fields=fields, own={"stop": "END"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=3), values, max_size=3),
    max_leaves=12,
)
NAMES = (
    "stop",
    "patterns",
    "visible_patterns",
    "max_held",
    "stop_token_ids",
    "min_tokens",
    "include_stop",
    "protect",
    "repeat",
)


@given(st.dictionaries(st.sampled_from([*NAMES, "start_protected", "model"]), JSON) | JSON)
def test_nothing_but_a_value_error_comes_out(body: Any) -> None:
    joined = ""
    try:
        hash(read_options(body))
    except ValueError as error:
        joined = str(error)
    assert not joined or joined.split()[0] in (*NAMES, "start_protected", "the")
    joined.encode()


def test_limits_can_be_changed() -> None:
    small = Defaults(limits=Limits(stops=1, patterns=1, bytes=10, regions=1))
    assert len(read_options({"stop": "0123456789"}, small).stops) == 1
    for body, message in {
        '{"stop": ["a", "b"]}': "stop has 2 entries; the limit is 1",
        '{"stop": "0123456789a"}': "stop has 11 bytes of text; the limit is 10",
        '{"stop": "0123456", "patterns": "abcd"}': "patterns has 11 bytes of text; the limit is 10",
        '{"patterns": ["a", "b"]}': "patterns has 2 entries; the limit is 1",
        '{"visible_patterns": ["a", "b"]}': "visible_patterns has 2 entries; the limit is 1",
        '{"patterns": ["a"], "visible_patterns": "b"}': (
            "visible_patterns has 2 entries together with patterns; the limit is 1"
        ),
        '{"stop": "0123456", "visible_patterns": "abcd"}': "visible_patterns has 11 bytes of text; the limit is 10",
        '{"protect": ["reasoning", "tool_call"]}': "protect has 2 regions; the limit is 1",
    }.items():
        with pytest.raises(ValueError, match=f"^{message}$"):
            read_options(json.loads(body), small)


def test_patterns_of_two_requests_are_compiled_once() -> None:
    """vLLM calls `read_options` more than once for the same request. Calls with equal options must return the same
    `StopSet`, so that it is compiled only once."""
    body = {"stop": ["END"], "patterns": [r"\nUser \d+:"]}
    assert read_options(body).stops is read_options(json.loads(json.dumps(body))).stops


def test_the_message_for_an_unknown_option_is_short() -> None:
    with pytest.raises(ValueError, match="is not an option of stopscan") as caught:
        read_options({"stopscan_" + "x" * 10**6: 1}, prefix="stopscan_")
    assert len(str(caught.value)) < 1000
