from __future__ import annotations


class keep(str):  # noqa: N801 - it reads as the verb that it is
    """The name of a region whose marker is kept: the marker is the beginning of the region's text.

    It equals the name, and has its place in a graph of markers. In a ``StopSet`` all markers stay anyway.

    >>> markers = {"answer": {"<function=": keep("tool_call")}, "tool_call": {"</function>": "answer"}}
    >>> Segmenter(markers).feed("Hm <function=f></function>")
    [('answer', 'Hm '), ('tool_call', '<function=f>')]
    """

    __slots__ = ()

    def __new__(cls, region: str, /) -> keep:
        return super().__new__(cls, region)

    def __reduce__(self) -> tuple[type[keep], tuple[str]]:
        return keep, (str(self),)

    def __repr__(self) -> str:
        return f"keep({super().__repr__()})"
