from __future__ import annotations

from collections.abc import Iterator, Mapping


class Format(Mapping[str, Mapping[str, str]]):
    """The markers of one form: the regions, and for each its markers with the region that each leads to.

    It is what ``SegmentSet`` takes; a stream begins in the first region. The text that people read is that of
    ``answer`` and ``reasoning``, the calls are in ``tool_call``; text of any other region is the form's own and for
    nobody. ``source`` says which models write the form and where it is documented.

    >>> segments = SegmentSet(FORMATS["qwen3"], stop=["END"], stop_in=["answer"])
    >>> Segmenter(segments, region=segments.region_after("<think>\\n")).feed("Hm.</think>Yes. END")
    [('reasoning', 'Hm.'), ('answer', 'Yes. ')]
    """

    __slots__ = ("_markers", "source")

    def __init__(self, markers: Mapping[str, Mapping[str, str]], /, *, source: str) -> None:
        self._markers: Mapping[str, Mapping[str, str]] = markers
        self.source: str = source

    def __getitem__(self, region: str) -> Mapping[str, str]:
        return self._markers[region]

    def __iter__(self) -> Iterator[str]:
        return iter(self._markers)

    def __len__(self) -> int:
        return len(self._markers)

    def __repr__(self) -> str:
        return f"Format({self._markers!r}, source={self.source!r})"
