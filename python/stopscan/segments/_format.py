from __future__ import annotations

from collections.abc import Iterator, Mapping


class Format(Mapping[str, Mapping[str, str]]):
    """A form, which is how a model marks regions: for each region its markers, for each marker the region it leads to.

    Pass a form to ``SegmentSet``. A stream begins in the first region. The text of ``answer`` and ``reasoning`` is for
    readers, and ``tool_call`` has the tool calls. The text of any other region is markup: do not show it. ``source``
    names the models that write the form, and where the form is documented.

    >>> segments = SegmentSet(FORMATS["qwen3"], stop=["END"], stop_in=["answer"])
    >>> Segmenter(segments, region=segments.region_after("<think>\\n")).feed("Hm.</think>Yes. END")
    [('reasoning', 'Hm.', 0), ('answer', 'Yes. ', 1)]
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
