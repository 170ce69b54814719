"""``FORMATS`` has the markers of today's models. ``keep`` and ``stay`` are for markers that a graph leaves in the text.

The markers of the models are not in this file: to change them, edit ``rust/stopscan/formats/parts.rs`` and
``headers.rs``. docs/formats.md says how to use ``FORMATS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from stopscan._stopscan import formats

if TYPE_CHECKING:
    from typing_extensions import Self


class _Left(str):
    """The base class of ``keep`` and ``stay``. It is a string: the name of the state to which a marker leads. The
    marker stays in the text."""

    __slots__ = ()

    def __new__(cls, region: str, /) -> Self:
        return super().__new__(cls, region)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"


class keep(_Left):  # noqa: N801 - used like a function
    """The name of a region whose opening marker stays in the text. The region's text begins with this marker.

    In a graph of markers, write ``keep("tool_call")`` instead of ``"tool_call"``. The two are equal as strings. In a
    ``StopSet`` all markers stay in the text anyway.

    >>> markers = {"answer": {"<function=": keep("tool_call")}, "tool_call": {"</function>": "answer"}}
    >>> Segmenter(markers).feed("Hm <function=f></function>")
    [('answer', 'Hm ', 0), ('tool_call', '<function=f>', 1)]
    """

    __slots__ = ()


class stay(_Left):  # noqa: N801 - used like a function
    """The name of another state of the same region. The marker that leads to this state stays in the text, and no new
    part begins.

    For example, an argument of a call may quote the closing marker of the call. With a second state for the argument,
    only the closing marker of the argument counts there. In a ``StopSet``, ``stay(name)`` means the same as ``name``. A
    ``SegmentSet`` raises ``ValueError`` if the state belongs to another region.

    >>> call = {"</call>": "answer", "<arg>": stay("call/argument")}
    >>> markers = {"answer": {"<call>": "call"}, "call": call, "call/argument": {"</arg>": stay("call")}}
    >>> Segmenter(markers).feed("<call><arg></call></arg></call>Yes")
    [('call', '<arg></call></arg>', 1), ('answer', 'Yes', 2)]
    """

    __slots__ = ()


class Format(Mapping[str, Mapping[str, str]]):
    """A form: the markers with which a model separates the regions of its answers. Has for each region its markers, and
    for each marker the region to which it leads.

    Pass a form to ``SegmentSet``. A stream begins in the first region. The text of ``answer`` and ``reasoning`` is for
    readers, and ``tool_call`` has the tool calls. Any other region has only markup, which should not be shown.
    ``source`` names the models that write the form, and says where the form is documented.

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


def _leads(markers: Iterable[tuple[str, str, bool, bool]]) -> dict[str, str]:
    return {marker: keep(state) if kept else stay(state) if stays else state for marker, state, kept, stays in markers}


class _Formats(dict[str, Format]):
    def __missing__(self, name: str) -> NoReturn:
        raise KeyError(f"there is no form {name!r}; there are {', '.join(self)}")


# `formats()` returns the forms that the Rust crate defines in rust/stopscan/formats. Programs in Rust use them too.
FORMATS: Mapping[str, Format] = _Formats(
    (name, Format({state: _leads(markers) for state, markers in states}, source=source))
    for name, source, states in formats()
)
