from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopSet
from stopscan.engines import Checkpoint
from stopscan.segments import Segment, SegmentSet


def _of_scanner(name: str) -> Any:
    return property(attrgetter(f"scanner.{name}"))


class _Row:
    """A row of a ``BatchGenerator``: its ``scanner``, and the pieces that mlx-lm's responses have not asked for yet."""

    finish, match, held, region = map(_of_scanner, ("finish", "match", "held", "region"))
    tokens_seen, tokens_kept, tokens_in = map(_of_scanner, ("tokens_seen", "tokens_kept", "tokens_in"))
    feed, feed_many, close, reset = map(_of_scanner, ("feed", "feed_many", "close", "reset"))
    snapshot, restore = map(_of_scanner, ("snapshot", "restore"))

    def __init__(self, scanner: Any) -> None:
        self.scanner = scanner
        self._pieces: deque[Any] = deque()
        self._in_use = False

    def copy(self) -> Any:
        """The same in the same state, for another row."""
        other = type(self).__new__(type(self))
        _Row.__init__(other, self.scanner.copy())
        other._pieces.extend(self._pieces)
        return other

    __copy__ = copy

    def __deepcopy__(self, _memo: Any) -> Any:
        return self.copy()

    def matcher(self) -> Any:
        """Itself. mlx-lm calls it when the row starts; for a second row it raises ``ValueError``."""
        if self._in_use:
            raise ValueError(f"a {type(self).__name__} is for one row: make one for each")
        self._in_use = True
        return self

    def advance(self, token_id: int, /) -> bool:
        """Whether the row ends with ``token_id``. mlx-lm calls it for each token, before it hands out the response."""
        self._pieces.append(self.scanner.feed(token_id))
        finish = self.scanner.finish
        # The end by length is mlx-lm's own to report.
        return finish is not None and finish.reason != "length"

    def _next(self, response: Any) -> Any:
        if not self._pieces:
            raise ValueError("each response of the row is to be asked for once, in order: there is none left")
        piece = self._pieces.popleft()
        return piece + self.scanner.close("length") if response.finish_reason == "length" else piece


class RowScanner(_Row):
    """Scans one row of a ``BatchGenerator``. Pass it in ``stop_sequences``. ``text`` returns the safe text of a
    response. The row ends in the step that completes a stop, and ``finish`` then says why.

    ``prompt``, text or token ids, decides where the answer begins. ``protect`` and ``start_protected`` are those of
    ``stopscan.regions``, the other options those of ``TokenScanner``; special tokens are shown by default, as in
    mlx-lm, and ``eos_token_ids`` are the model's. The ``TokenScanner`` is in ``scanner``.

    >>> rows = [RowScanner(tokenizer, ["END"]), RowScanner(tokenizer, ["6"], stop_token_ids=[42])]
    >>> row_of = dict(zip(generator.insert(prompts, stop_sequences=rows), rows))
    >>> while responses := generator.next_generated():
    ...     for response in responses:
    ...         print(response.uid, row_of[response.uid].text(response))
    """

    def __init__(
        self, tokenizer: Any, stop: StopSet | str | Iterable[str] | None = (), /, *, prompt: Any = (), **options: Any
    ) -> None:
        super().__init__(checkpoint(tokenizer).scanner(StopSet(stop), prompt, **_of_mlx_lm(tokenizer, options)))

    def text(self, response: Any, /) -> str:
        """Returns the safe text that comes with the row's ``response``. Ask once for each response, in order."""
        text: str = self._next(response)
        return text


class RowSegmenter(_Row):
    """Segments one row of a ``BatchGenerator``, as ``RowScanner`` scans a row. ``segments`` returns the safe segments
    of a response. The ``SegmentSet`` has the stops.

    >>> row = RowSegmenter(tokenizer, SegmentSet(FORMATS["qwen3"], stop=["END"], stop_in=["answer"]), prompt=prompt)
    """

    def __init__(
        self,
        tokenizer: Any,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        /,
        *,
        prompt: Any = (),
        **options: Any,
    ) -> None:
        super().__init__(checkpoint(tokenizer).segmenter(segments, prompt, **_of_mlx_lm(tokenizer, options)))

    def segments(self, response: Any, /) -> list[Segment]:
        """Returns the safe segments that come with the row's ``response``. Ask once for each response, in order."""
        runs = groupby(self._next(response), itemgetter(0))
        return [(region, "".join(text for _, text in run)) for region, run in runs]


def wrapped(tokenizer: Any) -> Any:
    return tokenizer if isinstance(tokenizer, TokenizerWrapper) else TokenizerWrapper(tokenizer)


def checkpoint(tokenizer: Any) -> Checkpoint:
    return Checkpoint(wrapped(tokenizer))


def _of_mlx_lm(tokenizer: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    eos = [each for each in wrapped(tokenizer).eos_token_ids if each is not None]
    given = {name: value for name, value in options.items() if name != "eos_token_ids" or value is not None}
    return {"eos_token_ids": eos, "skip_special_tokens": False, **given}
