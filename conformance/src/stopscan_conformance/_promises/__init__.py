"""What a server promises, one file each, and what of an answer breaks it."""

from stopscan_conformance._promises._expected import COLUMNS, Column, Expected, Findings
from stopscan_conformance._promises._judge import judge

__all__ = ["COLUMNS", "Column", "Expected", "Findings", "judge"]
