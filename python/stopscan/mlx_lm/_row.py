from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopSet
from stopscan.engines import Checkpoint, Row, RowOptions, StopOptions, TokenOptions
from stopscan.engines.rows import split
from stopscan.regions import graph_of
from stopscan.segments import Segment, SegmentSet, joined

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Stops = StopSet | str | Iterable[str] | None
Segments = SegmentSet | Mapping[str, Mapping[str, str]]


class BatchRow(Row[Any]):
    """One stream of a ``BatchGenerator``. Keeps the text or the segments that the caller has not read yet."""

    def __init__(self, scanner: Any) -> None:
        super().__init__(scanner)
        self._pieces: deque[Any] = deque()
        self._in_use = False

    def copy(self) -> Self:
        """Returns an independent copy in the same state. The copy may serve another row of mlx-lm."""
        other = super().copy()
        other._pieces, other._in_use = self._pieces.copy(), False
        return other

    def reset(self) -> None:
        """Puts this object back into its state before the first token. It may then serve another row of mlx-lm."""
        super().reset()
        self._pieces.clear()
        self._in_use = False

    def snapshot(self) -> bytes:
        """Returns the state as bytes, for ``restore`` of a row with the same tokenizer, stops and options in any
        process.

        Raises ``ValueError`` if a response was not passed to ``text`` or ``segments`` yet: its text would be lost.
        """
        if self._pieces:
            raise ValueError(f"{len(self._pieces)} responses of this row were not passed to text() or segments() yet")
        return super().snapshot()

    def restore(self, snapshot: bytes, /) -> None:
        """Puts the state of a ``snapshot`` into the row.

        Raises ``ValueError``, and changes nothing, if the snapshot was made with other stops or options, or is damaged.
        """
        super().restore(snapshot)
        self._pieces.clear()

    def matcher(self) -> Self:
        """Returns the row itself. mlx-lm calls ``matcher`` when it starts a row. Raises ``ValueError`` if this object
        already serves a row."""
        if self._in_use:
            raise ValueError(f"this {type(self).__name__} already serves a row: make a new one for each row")
        self._in_use = True
        return self

    def advance(self, token_id: int, /) -> bool:
        """Feeds ``token_id``, and returns whether the row ends with it. mlx-lm calls ``advance`` for each token, before
        it returns the response."""
        scanner = self.scanner
        self._pieces.append(scanner.feed(token_id))
        finish = scanner.finish
        # mlx-lm itself ends the row at its limit of tokens. So `advance` returns `False` if the row has ended with
        # "length".
        return finish is not None and finish.reason != "length"

    def _since(self, response: Any) -> list[Any]:
        if not self._pieces:
            raise ValueError("text() or segments() was called without a new response: call it once for each response")
        piece = self._pieces.popleft()
        return [piece, self.scanner.flush("length")] if response.finish_reason == "length" else [piece]


class RowScanner(BatchRow):
    """Scans one row of a ``BatchGenerator``. Pass the scanner to ``insert`` in ``stop_sequences``. For each response,
    ``text`` returns the text that is safe to send.

    The generator ends the row in the step that completes a stop, and ``finish`` then says why. With mlx-lm before 0.32
    or in a loop without ``BatchGenerator``, ``feed`` each token, end the row when there is a ``finish``, and call
    ``flush("length")`` at the loop's own limit of tokens.

    - ``prompt`` is the text or the token ids of the prompt. Its end decides whether the answer begins in the reasoning,
      unless ``start_protected`` is given.
    - No stop fires in the regions of ``protect``: ``"reasoning"``, ``"tool_call"``, a pair of markers, or a list of
      these.
    - ``max_tokens`` is not passed to mlx-lm: give ``insert`` the same limit, or remove the row when it has a
      ``finish``.
    - The other options are the same as in ``TokenScanner``. The default of ``eos_token_ids`` is the model's EOS, which
      ends the row even among the first ``min_tokens`` tokens. The default of ``skip_special_tokens`` is false, as in
      mlx-lm.

    Raises ``ValueError`` for a region whose markers are not known, and ``TypeError`` for a tokenizer that
    ``TokenScanner`` does not take.

    >>> rows = [RowScanner(tokenizer, ["END"]), RowScanner(tokenizer, ["6"], stop_token_ids=[42])]
    >>> row_of = dict(zip(generator.insert(prompts, stop_sequences=rows), rows))
    >>> while responses := generator.next_generated():
    ...     for response in responses:
    ...         print(response.uid, row_of[response.uid].text(response))
    """

    def __init__(
        self, tokenizer: Any, /, stop: Stops | StopOptions = (), *, prompt: Any = (), **options: Unpack[RowOptions]
    ) -> None:
        stops, engine = split(stop, options)
        super().__init__(checkpoint_of(tokenizer).scanner(stops, prompt, **of_model(tokenizer, engine)))

    @property
    def stops(self) -> StopSet:
        """The ``StopSet`` of the row."""
        stops: StopSet = self.scanner.stops
        return stops

    def text(self, response: Any, /) -> str:
        """Returns the text that is safe to send with ``response``. Call it once for each response, in order."""
        return "".join(self._since(response))


class RowSegmenter(BatchRow):
    """Segments one row of a ``BatchGenerator``, as ``RowScanner`` scans a row. ``segments`` returns the segments of a
    response that are safe to send.

    The ``SegmentSet`` has the stops and says where they fire, so there is no ``protect``. ``region`` is the region in
    which the answer begins. By default the end of ``prompt`` decides. The other options are the same as in
    ``RowScanner``.

    >>> row = RowSegmenter(tokenizer, SegmentSet(FORMATS["qwen3"], stop=["END"], stop_in=["answer"]), prompt=prompt)
    >>> generator.insert([prompt], stop_sequences=[row])
    >>> [response] = generator.next_generated()
    >>> row.segments(response)
    [('reasoning', 'Hm', 0)]
    """

    def __init__(
        self, tokenizer: Any, segments: Segments | StopOptions, /, *, region: str | None = None, prompt: Any = (),
        **options: Unpack[TokenOptions],
    ) -> None:  # fmt: skip
        stops, engine = split(segments, options)
        engine = of_model(tokenizer, engine)
        super().__init__(checkpoint_of(tokenizer).segmenter(stops, prompt, region=region, **engine))

    def segments(self, response: Any, /) -> list[Segment]:
        """Returns the segments that are safe to send with ``response``. Call it once for each response, in order."""
        return joined(segment for piece in self._since(response) for segment in piece)


def wrapped(tokenizer: Any) -> Any:
    return tokenizer if isinstance(tokenizer, TokenizerWrapper) else TokenizerWrapper(tokenizer)


def checkpoint_of(tokenizer: Any) -> Checkpoint:
    wrapper = wrapped(tokenizer)
    # Pass the inner tokenizer, not mlx-lm's wrapper: then errors name the class of the inner tokenizer, and all
    # wrappers of one tokenizer share a vocabulary.
    return Checkpoint(getattr(wrapper, "_tokenizer", wrapper), graph=graph_of(wrapper) or {})


def of_model(tokenizer: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``options`` with two defaults added: the model's EOS ids, and special tokens in the text, as in mlx-lm.
    Leaves out ``None``, which some models have among their EOS ids."""
    eos = [each for each in wrapped(tokenizer).eos_token_ids if each is not None]
    given = {name: value for name, value in options.items() if value is not None}
    return {"skip_special_tokens": False, "eos_token_ids": eos, **given}
