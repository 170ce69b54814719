"""Cuts a stream into segments: reasoning, answer and tool calls, separated at their markers."""

from stopscan._stopscan import Segmenter, SegmentSet, SegmentStream, split
from stopscan.segments._asplit import AsyncSegmentStream, Segment, asplit, joined
from stopscan.segments._markers import FORMATS, Format, keep, stay
from stopscan.segments._response_template import from_response_template

__all__ = [
    "FORMATS",
    "AsyncSegmentStream",
    "Format",
    "Segment",
    "SegmentSet",
    "SegmentStream",
    "Segmenter",
    "asplit",
    "from_response_template",
    "joined",
    "keep",
    "split",
    "stay",
]
