from __future__ import annotations


class keep(str):  # noqa: N801 - used like a function
    """The name of a region whose opening marker stays in the text, as the beginning of the region's text.

    Write ``keep("tool_call")`` instead of ``"tool_call"`` in a graph of markers. The two are equal as strings. In a
    ``StopSet`` all markers stay in the text anyway.

    >>> markers = {"answer": {"<function=": keep("tool_call")}, "tool_call": {"</function>": "answer"}}
    >>> Segmenter(markers).feed("Hm <function=f></function>")
    [('answer', 'Hm ', 0), ('tool_call', '<function=f>', 1)]
    """

    __slots__ = ()

    def __new__(cls, region: str, /) -> keep:
        return super().__new__(cls, region)

    def __reduce__(self) -> tuple[type[keep], tuple[str]]:
        return keep, (str(self),)

    def __repr__(self) -> str:
        return f"keep({super().__repr__()})"
