from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class _Left(str):
    """The name of a state to which a marker leads that is left in the text."""

    __slots__ = ()

    def __new__(cls, region: str, /) -> Self:
        return super().__new__(cls, region)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"


class keep(_Left):  # noqa: N801 - used like a function
    """The name of a region whose opening marker stays in the text, as the beginning of the region's text.

    Write ``keep("tool_call")`` instead of ``"tool_call"`` in a graph of markers. The two are equal as strings. In a
    ``StopSet`` all markers stay in the text anyway.

    >>> markers = {"answer": {"<function=": keep("tool_call")}, "tool_call": {"</function>": "answer"}}
    >>> Segmenter(markers).feed("Hm <function=f></function>")
    [('answer', 'Hm ', 0), ('tool_call', '<function=f>', 1)]
    """

    __slots__ = ()


class stay(_Left):  # noqa: N801 - used like a function
    """The name of a state of the same region, in which the part goes on: the marker stays in its text.

    So a call can have a body in which only the body's own closing marker counts. In a ``StopSet`` it is a plain name.

    Raises ``ValueError``, in a ``SegmentSet``, if the state belongs to another region.

    >>> call = {"</call>": "answer", "<arg>": stay("call/argument")}
    >>> markers = {"answer": {"<call>": "call"}, "call": call, "call/argument": {"</arg>": stay("call")}}
    >>> Segmenter(markers).feed("<call><arg></call></arg></call>Yes")
    [('call', '<arg></call></arg>', 1), ('answer', 'Yes', 2)]
    """

    __slots__ = ()
