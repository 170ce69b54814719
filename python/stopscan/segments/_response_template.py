from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stopscan.segments._markers import Format

# The keys of a response template in transformers 5.23. Any other key is refused, because it could change the meaning of
# the known keys.
TEMPLATE_KEYS = {"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"}
FIELD_KEYS = {"open", "close", "content", "content_args", "repeats", "join", "optional", "transform", "transform_each"}
PATTERN_KEYS = {"open_pattern": "open", "close_pattern": "close"}

REGIONS = {
    "content": "answer",
    "reasoning_content": "reasoning",
    "thinking": "reasoning",
    "tool_calls": "tool_call",
}
OUTSIDE = "outside"


def from_response_template(template: Mapping[str, Any], /) -> Format:
    """Returns the markers of a transformers ``response_template``, for ``SegmentSet``.

    - Each field is a region. ``content`` is ``answer``. ``thinking``, ``reasoning`` and ``reasoning_content`` are
      ``reasoning``. ``tool_calls`` is ``tool_call``. Other fields keep their names.
    - A stream begins in the field without ``open``. If there is no such field, it begins in ``outside``, whose text
      transformers drops.
    - The keys ``content``, ``transform`` and ``join`` of a field are ignored, and white space is not stripped: the
      caller has to do that.
    - ``start_anchor`` and ``start_anchor_pattern`` say where the assistant's own part of a prompt begins. They are also
      ignored: give ``region_after`` the text after the last anchor.

    Raises ``ValueError`` for a marker that is a regular expression, and for a marker inside which a shorter marker
    ends: transformers waits for the longer marker, but a segmenter finds the marker that ends first. The error names
    the field and the key.

    >>> template = {
    ...     "start_anchor": "<|im_start|>assistant\\n",
    ...     "fields": {"thinking": {"open": "<think>", "close": "</think>"}, "content": {"close": "<|im_end|>"}},
    ... }
    >>> segments = SegmentSet(from_response_template(template))
    >>> segments.region_after(prompt.rpartition(template["start_anchor"])[2])
    'reasoning'
    """
    fields = _fields(template)
    implicit = [field for field in fields if not field.opening]
    if len(implicit) > 1:
        raise ValueError(f"fields {implicit[0].name!r} and {implicit[1].name!r}: only one field may lack 'open'")
    outer = implicit[0].region if implicit else OUTSIDE
    names = [outer, *(field.region for field in fields if field.opening)]
    for field in fields:
        if names.count(field.region) > 1:
            raise ValueError(f"field {field.name!r}: two fields map to the region {field.region!r}")
    # Of equal markers the first counts. As in transformers, opening markers come first, in the order of field names.
    anchors = [anchor for field in fields for anchor in field.opening]
    anchors += [anchor for field in implicit for anchor in field.closing]
    regions = {outer: _markers(anchors, outer)}
    regions.update({field.region: _markers(field.closing, outer) for field in fields if field.opening})
    return Format(regions, source="a response template")


class _Anchor(NamedTuple):
    marker: str
    where: str  # the field, the key and the marker, for error messages
    leads_to: str | None  # the region to which the marker leads. `None`: the region in which a stream begins


class _Field(NamedTuple):
    name: str
    region: str
    opening: list[_Anchor]
    closing: list[_Anchor]


def _fields(template: Mapping[str, Any]) -> list[_Field]:
    """Returns the fields, sorted by name."""
    if not isinstance(template, Mapping):
        raise TypeError(f"a response template is a mapping, not {type(template).__name__}")
    _check_keys(template, TEMPLATE_KEYS, "response template")
    if template.get("version", 1) != 1:
        raise ValueError(f"response template: 'version' must be 1, not {template['version']!r}")
    fields = template.get("fields")
    if not isinstance(fields, Mapping) or not fields:
        raise ValueError("response template: 'fields' must be a mapping with at least one field")
    return [_field(name, fields[name]) for name in sorted(fields)]


def _field(name: str, field: Any) -> _Field:
    where = f"field {name!r}"
    if not isinstance(field, Mapping):
        raise ValueError(f"{where}: must be a mapping, not {type(field).__name__}")
    for pattern, literal in PATTERN_KEYS.items():
        if pattern in field:
            raise ValueError(
                f"{where}: {pattern!r} is a regular expression; give the marker itself as {literal!r} instead. What "
                "else the expression matches, such as white space or a name, becomes text of a region"
            )
    _check_keys(field, FIELD_KEYS, where)
    region = REGIONS.get(name, name)
    opening = [_Anchor(marker, f"{where}: 'open' {marker!r}", region) for marker in _literals(field, "open", where)]
    closing = [_Anchor(marker, f"{where}: 'close' {marker!r}", None) for marker in _literals(field, "close", where)]
    return _Field(name, region, opening, closing)


def _check_keys(mapping: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in mapping:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key!r}")


def _literals(field: Mapping[str, Any], key: str, where: str) -> list[str]:
    if key not in field:
        return []
    value = field[key]
    literals = [value] if isinstance(value, str) else value
    if not isinstance(literals, list) or not literals or not all(isinstance(text, str) and text for text in literals):
        raise ValueError(f"{where}: {key!r} must be a non-empty string or a non-empty list of non-empty strings")
    return literals


def _markers(anchors: list[_Anchor], outer: str) -> dict[str, str]:
    """Returns the markers of one region, and the region to which each leads. If markers are equal, the first counts."""
    markers: dict[str, str] = {}
    for anchor in anchors:
        for other in anchors:
            if other.marker in anchor.marker[:-1]:
                raise ValueError(f"{anchor.where} is never found: {other.where} completes inside it")
        markers.setdefault(anchor.marker, anchor.leads_to or outer)
    return markers
