"""The forms in which today's models mark the parts of an answer. docs/formats.md says how to use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stopscan._stopscan import formats
from stopscan.segments._format import Format
from stopscan.segments._keep import keep, stay


def _leads(markers: Iterable[tuple[str, str, bool, bool]]) -> dict[str, str]:
    return {marker: keep(state) if kept else stay(state) if stays else state for marker, state, kept, stays in markers}


# The table itself is in the Rust crate, so that programs in Rust have it too.
FORMATS: Mapping[str, Format] = {
    name: Format({state: _leads(markers) for state, markers in states}, source=source)
    for name, source, states in formats()
}
