"""The sentences of `sentences.json`, which are quoted from the references of APIs. Each sentence makes a rule
"documented" for some APIs.

Each quote is word for word in its document, apart from line breaks. The documents are the types of official clients,
RFCs, and standards of WHATWG, all in a named version. `tests/test_sentences.py` checks the quotes. The field `of` of a
sentence is a pattern, and `cases` is a list of names of cases. If they are given, the sentence counts only for
complaints that match the pattern, and only for these cases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from stopscan_conformance.scripts import FOLDER, written

REFUSES = "refuses-a-documented-form"  # the name of a rule; its sentences list the cases whose requests they document
_WRITTEN: Mapping[str, Any] = written(FOLDER / "sentences.json")
VERSIONS: Mapping[str, str] = _WRITTEN["versions"]
DOCUMENTS: Mapping[str, str] = _WRITTEN["documents"]


@dataclass(frozen=True)
class Sentence:
    """A sentence from the reference of an API. `file` says where the sentence is: it is a key of `DOCUMENTS`, or the
    path of a file in a package. `VERSIONS` has these packages."""

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
    """Returns the first sentence that documents the rule for the API, or None. A sentence may be only for some
    complaints or some cases. So it must also fit the complaint `fault` and the case named `case`."""
    every = (one for one in SENTENCES if one.rule == rule and api in one.apis.split())
    fits = (one for one in every if re.search(one.of, fault) and case in (*one.cases, *([] if one.cases else [case])))
    return next(fits, None)


def promises(api: str, case: str) -> bool:
    """Returns whether the API's reference documents the form of the request of the case named `case`, so that a server
    must accept it."""
    return sentence(REFUSES, api, case=case) is not None
