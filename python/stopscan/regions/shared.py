"""Names that several packages of stopscan use: the adapters, ``stopscan.engines`` and the clients. They may change. To
write an adapter, use only the names of ``stopscan.regions``."""

from stopscan.regions._checkpoint import with_reasoning
from stopscan.regions._names import NAMES, describe, region_name
from stopscan.regions._prompt import start_region
from stopscan.regions._protect import PROTECTED, read_protect, regions_in
from stopscan.regions._without import without_regions

__all__ = [
    "NAMES",
    "PROTECTED",
    "describe",
    "read_protect",
    "region_name",
    "regions_in",
    "start_region",
    "with_reasoning",
    "without_regions",
]
