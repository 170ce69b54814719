"""`Finish` is a plain value, and an invalid one cannot be made."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, asdict
from typing import Any

import pytest
from finish_harness import FINISHES, STRING

from stopscan import Repeat, StopMatch, StopSet
from stopscan.finish import Finish

UNKNOWN = Finish("unknown", raw="bored")
CASES = {
    **FINISHES,
    "loop": Finish("repetition", offset=26),
    "raw": UNKNOWN,
    "nobody says which": Finish("stop_sequence", raw="stop_sequence"),
}
finishes = pytest.mark.parametrize("finish", CASES.values(), ids=CASES)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("stop",), ValueError, "unknown finish reason 'stop', expected one of stop_sequence, stop_token, eos, .*"),
        ((None,), ValueError, "unknown finish reason None, .*"),
        ((["eos"],), ValueError, r"unknown finish reason \['eos'\], .*"),
        (("stop_sequence", 2), TypeError, "matched_stop of a 'stop_sequence' must be str or None, not int"),
        (("stop_sequence", b"END"), TypeError, "matched_stop of a 'stop_sequence' must be str or None, not bytes"),
        (("stop_sequence", StopMatch("END", 0)), TypeError, ".* must be str or None, not StopMatch"),
        (("stop_sequence", ""), ValueError, "matched_stop is empty"),
        (("stop_token",), ValueError, "finish reason 'stop_token' needs a token id as matched_stop"),
        (("stop_token", "2"), TypeError, "matched_stop of a 'stop_token' must be int, not str"),
        (("stop_token", True), TypeError, "matched_stop of a 'stop_token' must be int, not bool"),
        (("stop_token", -1), ValueError, "matched_stop -1 is not a token id"),
        (("eos", "END"), ValueError, "finish reason 'eos' must not have a matched_stop"),
        (("length", 0), ValueError, "finish reason 'length' must not have a matched_stop"),
        (("unknown", "bored"), ValueError, "finish reason 'unknown' must not have a matched_stop"),
        (("stop_sequence", "END", -1), ValueError, "offset -1 is negative"),
        (("stop_sequence", "END", "26"), TypeError, "offset must be int or None, not str"),
        (("stop_sequence", "END", False), TypeError, "offset must be int or None, not bool"),
        (
            ("stop_sequence", None, 26),
            ValueError,
            'offset needs a stop string in matched_stop, or the reason "repetition"',
        ),
        (("stop_token", 2, 26), ValueError, 'offset needs a stop string in matched_stop, or the reason "repetition"'),
        (("repetition", "END"), ValueError, "finish reason 'repetition' must not have a matched_stop"),
        (("repetition", None, -1), ValueError, "offset -1 is negative"),
        (("eos", None, 26), ValueError, 'offset needs a stop string in matched_stop, or the reason "repetition"'),
        (("eos", None, None, 3), TypeError, "raw must be str or None, not int"),
    ],
)
def test_a_finish_is_validated(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        Finish(*arguments)


@finishes
def test_a_finish_is_a_value(finish: Finish) -> None:
    assert pickle.loads(pickle.dumps(finish)) == copy.deepcopy(finish) == finish
    assert len({finish, copy.copy(finish)}) == 1
    assert not hasattr(finish, "__dict__")
    with pytest.raises(FrozenInstanceError):
        finish.reason = "eos"  # type: ignore[misc]


@finishes
def test_a_finish_goes_through_json(finish: Finish) -> None:
    assert Finish(**json.loads(json.dumps(asdict(finish)))) == finish


@finishes
def test_a_finish_is_a_field_of_a_pydantic_model(finish: Finish) -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    model = pydantic.create_model("Answer", finish=(Finish, ...))
    answer = model(finish=finish)
    assert answer.finish == finish
    assert model.model_validate_json(answer.model_dump_json()) == answer
    assert model.model_validate(answer.model_dump()) == answer
    assert {"reason", "matched_stop", "offset", "raw"} == set(
        model.model_json_schema()["$defs"]["Finish"]["properties"]
    )


def test_pydantic_refuses_what_a_finish_refuses() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    with pytest.raises(pydantic.ValidationError, match="must not have a matched_stop"):
        pydantic.TypeAdapter(Finish).validate_python({"reason": "eos", "matched_stop": "END"})


@pytest.mark.parametrize(
    ("finish", "match"),
    [
        (STRING, StopMatch("END", 26)),
        (Finish("stop_sequence", "END", 0), StopMatch("END", 0)),
        (Finish("stop_sequence", "END"), None),
        (Finish("stop_sequence"), None),
        (Finish("stop_token", 2), None),
        (Finish("repetition", offset=26), None),
        (Finish("eos"), None),
    ],
)
def test_match_needs_both_of_its_parts(finish: Finish, match: StopMatch | None) -> None:
    assert finish.match == match


@pytest.mark.parametrize(
    ("stops", "text", "finish"),
    [
        (StopSet(["END"]), "Hi. END", Finish("stop_sequence", "END", 4)),
        (StopSet(patterns=[r"\n(User|Human) ?\d*:"]), "Hi.\nHuman 2: And", Finish("stop_sequence", "\nHuman 2:", 3)),
        (StopSet(repeat=Repeat()), "Go on. " * 100, Finish("repetition", offset=0)),
        (StopSet(["END"]), "Hi.", Finish("eos")),
    ],
    ids=["string", "pattern", "loop", "none"],
)
def test_a_match_is_one_report(stops: StopSet, text: str, finish: Finish) -> None:
    assert Finish.of(stops.find(text)) == finish
    assert Finish.of(stops.find(text), "length") == (finish if finish.reason != "eos" else Finish("length"))


@pytest.mark.parametrize("match", ["END", ("END", 3), STRING])
def test_wrong_match_is_an_error_naming_its_type(match: Any) -> None:
    with pytest.raises(TypeError, match=f"^match must be StopMatch or None, not {type(match).__name__}$"):
        Finish.of(match)


def test_without_a_match_no_stop_sequence_is_reported() -> None:
    with pytest.raises(ValueError, match="stop_sequence"):
        Finish.of(None, "stop_sequence")  # type: ignore[arg-type]


def test_a_reason_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^unknown finish reason 'limit', expected one of .*, length, "):
        Finish.of(None, "limit")  # type: ignore[arg-type]
