"""Each documented rule quotes a sentence, and each sentence stands in the document that it names."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from stopscan_conformance import APIS, RULES, cases
from stopscan_conformance.judge import Rule
from stopscan_conformance.sentences import DOCUMENTS, REFUSES, SENTENCES, VERSIONS, Sentence, sentence

REFERENCES = Path(__file__).parent / "references"


def words(text: str) -> str:
    return " ".join(text.split())


def document(one: Sentence) -> Path:
    package, _, path = one.file.partition("/")
    if not path:
        return REFERENCES / one.file
    found = find_spec(package)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / path


@pytest.mark.parametrize("one", SENTENCES, ids=lambda one: f"{one.apis.split()[0]}-{one.rule}-{one.quote[:40]}")
def test_each_quote_stands_word_for_word_in_its_document(one: Sentence) -> None:
    assert words(one.quote) in words(document(one).read_text(encoding="utf-8"))


def test_each_document_has_a_version() -> None:
    assert {one.file.partition("/")[0] for one in SENTENCES} == {*VERSIONS, *DOCUMENTS}
    assert {name: version(name) for name in VERSIONS} == VERSIONS


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_a_documented_rule_has_a_sentence(rule: Rule, api: str) -> None:
    mine = [one for one in SENTENCES if one.rule == rule.name and api in one.apis.split()]
    assert (rule.level_of(APIS[api]) == "documented") == bool(mine)
    assert rule.level != "documented"


def test_each_rule_and_api_of_a_sentence_is_known() -> None:
    assert {one.rule for one in SENTENCES} <= {*RULES}
    assert {api for one in SENTENCES for api in one.apis.split()} <= {*APIS}


def test_each_promised_form_of_request_is_a_case() -> None:
    known = {(case.api, case.name) for case in cases(*APIS)}
    promised = {(api, name) for one in SENTENCES for api in one.apis.split() for name in one.cases}
    assert promised - known == set()
    assert all(one.cases for one in SENTENCES if one.rule == REFUSES)


@pytest.mark.parametrize(("fault", "documented"), [
    ("a chunk lacks the key id", True), ("the stream changes its created from '1' to '2'", True),
    ("the stream does not end with [DONE]", True), ("a delta has 'user' as role", True),
    ("the first delta has None as role", False), ("the status is 201, not 200", False),
    ("a second finish reason", False), ("the stream changes its model from 'a' to 'b'", False),
])  # fmt: skip
def test_only_a_complaint_with_a_sentence_is_documented(fault: str, documented: bool) -> None:
    assert (sentence("form", "openai-chat", fault) is not None) == documented
