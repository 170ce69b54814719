"""The sentences of `sentences.json`, which are quoted from the references of APIs. Each sentence makes a rule
"documented" for some APIs.

Apart from line breaks, each quote is word for word in a document of a named version: the types of an official client,
an RFC, or a standard of WHATWG. `tests/test_sentences.py` looks them up. If a sentence has `of`, it covers only
complaints that match this pattern. If it has `cases`, it covers only the cases with these names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from stopscan_conformance.scripts import FOLDER, written

REFUSES = "refuses-a-documented-form"  # the rule about requests; the sentences name the cases
_WRITTEN: Mapping[str, Any] = written(FOLDER / "sentences.json")
VERSIONS: Mapping[str, str] = _WRITTEN["versions"]
DOCUMENTS: Mapping[str, str] = _WRITTEN["documents"]


@dataclass(frozen=True)
class Sentence:
    """A sentence from the reference of an API. `file` is the path of a file in one of the packages in `VERSIONS`, or a
    key of `DOCUMENTS`."""

    rule: str
    apis: str
    quote: str
    file: str
    of: str = ""
    cases: Sequence[str] = ()

    @property
    def source(self) -> str:
        """The name and version of the document."""
        package, _, path = self.file.partition("/")
        return f"{package} {VERSIONS[package]}, {path}" if path else DOCUMENTS[self.file]


SENTENCES = tuple(Sentence(**one) for one in _WRITTEN["sentences"])


@cache
def sentence(rule: str, api: str, fault: str = "", case: str = "") -> Sentence | None:
    """Returns the first sentence that documents the rule for the API and that covers the complaint `fault` and the
    case, or None."""
    every = (one for one in SENTENCES if one.rule == rule and api in one.apis.split())
    fits = (one for one in every if re.search(one.of, fault) and case in (*one.cases, *([] if one.cases else [case])))
    return next(fits, None)


def promises(api: str, case: str) -> bool:
    """Whether the API's reference promises that the form of request of the case is accepted. `case` is a name."""
    return sentence(REFUSES, api, case=case) is not None
