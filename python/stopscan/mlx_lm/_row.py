from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopSet
from stopscan._engine.tokens import EngineTokens, InRegions, Piece, RowOptions, TokenOptions
from stopscan.mlx_lm._regions import prompt_end
from stopscan.regions import graph_of, protected, region_after
from stopscan.regions._prompt import begins
from stopscan.segments import Segment, SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class _Row(EngineTokens[Piece]):
    """A row as mlx-lm and loops see it; what it emits is text or segments."""

    def __init__(self, make: Callable[..., Any], tokenizer: Any, max_tokens: int | None, options: TokenOptions) -> None:
        # mlx-lm's text has the special tokens, and markers can be among them.
        super().__init__(make, max_tokens, {"skip_special_tokens": False, **options}, tokenizer.eos_token_ids)
        self._in_use = False

    def copy(self) -> Self:
        """The same in the same state, which goes on independently; mlx-lm may take the copy for another row."""
        other = super().copy()
        other._in_use = False
        return other

    def reset(self) -> None:
        """Goes back to the start of the stream; mlx-lm may take it for another row."""
        super().reset()
        self._in_use = False

    def matcher(self) -> Self:
        """Itself. mlx-lm calls it when the row starts; for a second row it raises ``ValueError``."""
        if self._in_use:
            raise ValueError(f"a {type(self).__name__} is for one row: make one for each")
        self._in_use = True
        return self

    def advance(self, token_id: int, /) -> bool:
        """Whether the row ends with ``token_id``. mlx-lm calls it for each token, before it hands out the response."""
        self._pieces.append(self.feed(token_id))
        finish = self._scanner.finish
        # The end by length is mlx-lm's own to report.
        return finish is not None and finish.reason != "length"

    def _of(self, response: Any) -> Piece:
        if not self._pieces:
            raise ValueError("each response of the row is to be asked for once, in order: there is none left")
        piece: Piece = self._pieces.popleft()
        return self._joined([piece, self.close("length")]) if response.finish_reason == "length" else piece


class RowScanner(_Row[str]):
    """Scans one row of a ``BatchGenerator``. Pass it in ``stop_sequences``. ``text`` returns the safe text of a
    response.

    The row ends in the step that completes a stop, and ``finish`` then says why. In any other loop, and with mlx-lm
    before 0.32, ``feed`` each token, end the row when there is a ``finish``, and call ``close("length")`` at the loop's
    own limit.

    - The text is the text of ``tokenizer.decode``. Special tokens are included unless ``skip_special_tokens`` is true.
    - ``min_tokens`` holds for stops and ``stop_token_ids``.
    - An EOS of ``eos_token_ids`` ends the row at any time, as in mlx-lm. The default is the model's EOS.
    - ``max_tokens`` is the limit at which ``finish`` says ``length``. mlx-lm knows nothing of this limit: give
      ``insert`` the same limit, or take the row out at its ``finish``.
    - An id that the tokenizer does not have counts, and has no text.
    - No stop fires in the regions of ``protect``: ``"reasoning"``, ``"tool_call"``, a pair of markers, or a list of
      these.
    - ``start_protected`` says whether the answer begins inside such a region. By default the end of ``prompt``, text or
      token ids, decides.
    - The other options are those of ``TokenScanner``.

    Raises ``ValueError`` for a region whose markers are not known, and ``TypeError`` for a tokenizer that
    ``TokenScanner`` does not take.

    >>> rows = [RowScanner(tokenizer, ["END"]), RowScanner(tokenizer, ["6"], stop_token_ids=[42])]
    >>> row_of = dict(zip(generator.insert(prompts, stop_sequences=rows), rows))
    >>> while responses := generator.next_generated():
    ...     for response in responses:
    ...         print(response.uid, row_of[response.uid].text(response))
    """

    def __init__(
        self,
        tokenizer: Any,
        stop: StopSet | str | Iterable[str] | None = (),
        /,
        *,
        max_tokens: int | None = None,
        prompt: Any = (),
        **options: Unpack[RowOptions],
    ) -> None:
        tokenizer = wrapped(tokenizer)
        stops = StopSet(stop)
        if protect := options.pop("protect", ()):
            stops = protected(stops, graph_of(tokenizer), protect)
        begin = begins(stops, prompt_end(tokenizer, prompt), options.pop("start_protected", None))
        make = partial(TokenScanner, tokenizer._tokenizer, stops, **begin)
        super().__init__(make, tokenizer, max_tokens, options)

    def text(self, response: Any, /) -> str:
        """Returns the safe text that comes with the row's ``response``. Ask once for each response, in order."""
        return self._of(response)


class RowSegmenter(InRegions, _Row[list[Segment]]):
    """Segments one row of a ``BatchGenerator``, as ``RowScanner`` scans a row. ``segments`` returns the safe segments
    of a response.

    The ``SegmentSet`` has the stops, so nothing is to be protected. ``region`` is the region in which the answer
    begins. By default the end of ``prompt`` decides. The other options are those of ``RowScanner``.

    >>> row = RowSegmenter(tokenizer, SegmentSet(FORMATS["qwen3"], stop=["END"], stop_in=["answer"]), prompt=prompt)
    >>> generator.insert([prompt], stop_sequences=[row])
    >>> [response] = generator.next_generated()
    >>> row.segments(response)
    [('reasoning', 'Hm')]
    """

    def __init__(
        self,
        tokenizer: Any,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        /,
        *,
        region: str | None = None,
        max_tokens: int | None = None,
        prompt: Any = (),
        **options: Unpack[TokenOptions],
    ) -> None:
        tokenizer, segments = wrapped(tokenizer), SegmentSet(segments)
        if region is None:
            region = region_after(segments.markers, prompt_end(tokenizer, prompt))
        make = partial(TokenSegmenter, tokenizer._tokenizer, segments, region=region)
        super().__init__(make, tokenizer, max_tokens, options)

    def segments(self, response: Any, /) -> list[Segment]:
        """Returns the safe segments that come with the row's ``response``. Ask once for each response, in order."""
        return self._of(response)


def wrapped(tokenizer: Any) -> Any:
    return tokenizer if isinstance(tokenizer, TokenizerWrapper) else TokenizerWrapper(tokenizer)
