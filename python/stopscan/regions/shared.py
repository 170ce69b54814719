"""What the adapters, the engines' layer and the clients share. Not stable: an author of an engine needs the names of
``stopscan.regions`` alone."""

from stopscan.regions._checkpoint import with_reasoning
from stopscan.regions._names import NAMES, described, region_name
from stopscan.regions._prompt import begins
from stopscan.regions._protect import PROTECTED, known, read_protect
from stopscan.regions._restricted import restricted

__all__ = [
    "NAMES",
    "PROTECTED",
    "begins",
    "described",
    "known",
    "read_protect",
    "region_name",
    "restricted",
    "with_reasoning",
]
