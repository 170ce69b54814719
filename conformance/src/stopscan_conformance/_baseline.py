"""An earlier run: what fails in both is known, and does not count."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stopscan_conformance._cases import Case, Result
from stopscan_conformance._promises import Column
from stopscan_conformance._select import limited
from stopscan_conformance._version import __version__

Failure = tuple[str, bool, str, str]  # an API, whether it is a stream, a case and a promise


@dataclass(frozen=True)
class Baseline:
    """The failures that a file of `--json` has, and what chose its cases."""

    failures: frozenset[Failure]
    seed: int | None
    version: str | None

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Raises `ValueError` if the file is none of `--json`."""
        try:
            content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            failures = frozenset(
                (one["api"], one["stream"], one["case"], column)
                for one in content["results"]
                for column, fault in one["columns"].items()
                if fault is not None
            )
            return cls(failures, content.get("seed"), content.get("versions", {}).get("stopscan-conformance"))
        except ValueError as error:
            raise ValueError(f"--baseline {path} is no JSON: {error}") from None
        except (KeyError, TypeError, AttributeError):
            raise ValueError(f"--baseline {path} was not written by --json: it has no results of cases") from None

    def new(self, case: Case, result: Result) -> list[Column]:
        """The promises that the case breaks, and that are not known to be broken."""
        return [column for column in result.wrong if (case.api, case.stream, case.name, column) not in self.failures]

    def without_known(self, case: Case, result: Result) -> Result:
        """The result with nothing but new failures."""
        new = self.new(case, result)
        kept = [column for column, fault in result.columns.items() if fault is None or column in new]
        return limited(result, kept) if result.wrong else result

    def other_than(self, seed: int) -> Iterator[str]:
        """Why the cases of this run are not those of the baseline."""
        if self.seed not in (None, seed):
            yield f"the baseline has the cases of --seed {self.seed}, this run has those of --seed {seed}"
        if self.version not in (None, __version__):
            yield f"the baseline has the cases of stopscan-conformance {self.version}, this is {__version__}"


NOTHING_KNOWN = Baseline(frozenset(), None, None)
