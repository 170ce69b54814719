"""The table says what a `TokenScanner` says, and its cases ask for it in each API's own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer

import stopscan.testing
from stopscan import StopSet
from stopscan.conformance import APIS, cases
from stopscan.conformance._scenarios import SCENARIOS, Scenario, load_vectors
from stopscan.conformance.vectors import reciter
from stopscan.testing.reciter import SCRIPTS, THINKING
from stopscan.tokens import TokenScanner

VECTORS = Path(stopscan.testing.__file__).parent / "vectors"
CHECKPOINT = reciter(VECTORS)
ALL = [*SCENARIOS, *load_vectors(VECTORS)[1]]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer.from_file(str(CHECKPOINT.write(tmp_path_factory.mktemp("vectors")) / "tokenizer.json"))


@pytest.mark.parametrize("scenario", ALL, ids=[scenario.name for scenario in ALL])
def test_scenario(tokenizer: Tokenizer, scenario: Scenario) -> None:
    ids = CHECKPOINT.token_ids(scenario.script)
    scanner = TokenScanner(
        tokenizer,
        StopSet(scenario.stop, protect=[THINKING]),
        stop_token_ids=[ids[piece] for piece in scenario.stop_pieces],
        eos_token_ids=[CHECKPOINT.eos_token_id],
        max_tokens=scenario.max_tokens,
        skip_special_tokens=False,
    )
    text = "".join(map(scanner.feed, [*ids, CHECKPOINT.eos_token_id]))
    assert scanner.finish is not None
    fires = ids[scenario.fires] if isinstance(scenario.fires, int) else scenario.fires
    said = (text, scanner.tokens_seen, scanner.finish.reason, scanner.finish.matched_stop)
    assert said == (scenario.text, scenario.tokens, scenario.reason, fires)


def test_names_are_unique() -> None:
    assert len({scenario.name for scenario in ALL}) == len(ALL)
    names = [str(case) for case in cases(vectors=VECTORS)]
    assert len(set(names)) == len(names)


def test_every_script_of_the_default_checkpoint_but_the_harmony_ones_is_used() -> None:
    used = {scenario.script for scenario in SCENARIOS}
    assert {name for name in SCRIPTS if not name.startswith("harmony")} == used


def test_cases_of_some_apis() -> None:
    assert {case.api for case in cases()} == set(APIS)
    assert {(case.api, case.stream) for case in cases("anthropic")} == {("anthropic", False), ("anthropic", True)}
    assert len(cases("anthropic")) == 2 * len(SCENARIOS)


def test_unknown_api() -> None:
    with pytest.raises(ValueError, match=re.escape("unknown API 'openai'; there are openai-chat, ")):
        cases("openai")


def test_folder_without_vectors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"no vectors in {tmp_path}"):
        cases("anthropic", vectors=tmp_path)


def test_vectors_that_a_request_cannot_state_are_left_out() -> None:
    names = {scenario.name for scenario in load_vectors(VECTORS)[1]}
    assert "mlx_lm_stop_spelled_by_other_tokens" in names
    assert "vllm_51641_splits_the_closing_marker" not in names  # it begins in the region


def test_harmony_case() -> None:
    (case, _) = (case for case in cases("harmony-chat") if case.name == "ids")
    skipped = len(["<|channel|>", "analysis", "<|message|>", *SCRIPTS["count"], "<|end|>",
                   "<|start|>", "assistant", "<|channel|>", "final", "<|message|>"])  # fmt: skip
    ids = reciter().token_ids("harmony-count")
    assert case.request.stop_token_ids == (ids[skipped + 8], ids[skipped + 10])
    assert case.answers == (("1, 2, 3 hello world 4, ", "1, 2, 3 hello world 4, 5, 6, 7, 8"),)
    assert case.tokens == (skipped + 9, skipped + 8)
