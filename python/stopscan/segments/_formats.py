"""How today's models mark the parts of an answer, as data: the markers, and where each form is documented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Format(Mapping[str, Mapping[str, str]]):
    """The markers of one form: the regions, and for each its markers with the region that each leads to.

    It is what ``SegmentSet`` takes. ``source`` says where the form is documented.

    >>> SegmentSet(FORMATS["think"], stop=["END"], stop_in=["answer"])
    """

    __slots__ = ("_markers", "source")

    def __init__(self, markers: Mapping[str, Mapping[str, str]], /, *, source: str) -> None:
        self._markers = markers
        self.source = source

    def __getitem__(self, region: str) -> Mapping[str, str]:
        return self._markers[region]

    def __iter__(self) -> Iterator[str]:
        return iter(self._markers)

    def __len__(self) -> int:
        return len(self._markers)

    def __repr__(self) -> str:
        return f"Format({self._markers!r}, source={self.source!r})"


FORMATS: Mapping[str, Format] = {
    "think": Format(
        {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}},
        source="Qwen3 and DeepSeek-R1 chat templates; vLLM's reasoning parsers qwen3 and deepseek_r1",
    ),
}
