"""Exact stops in transformers' continuous batching: ``RowScanner`` and ``RowSegmenter`` for its manager, and
``generate_batch``.

transformers checks for each token whether it is in the request's set of EOS ids. A ``RowScanner`` takes the place of
that set, so that a request ends in the step that completes a stop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import transformers
from transformers.generation.continuous_batching.requests import RequestState

from stopscan import StopSet
from stopscan.engines import Row, RowOptions, TokenOptions
from stopscan.finish import EndReason, Finish
from stopscan.segments import Segment, SegmentSet, joined
from stopscan.transformers._options import Options
from stopscan.transformers._row import length_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["Result", "RowScanner", "RowSegmenter", "generate_batch"]

# With transformers 5.0 to 5.3, all stops would be ignored, because requests have no set of EOS ids. transformers 5.4
# and 5.5 lose answers.
if tuple(map(int, transformers.__version__.split(".")[:2])) < (5, 6):
    message = "stopscan.transformers.continuous needs transformers 5.6.0 or later; this is transformers "
    raise ImportError(message + transformers.__version__)


class _Request(Row[Any]):
    """The stops of a request, passed to transformers as its ``eos_token_id``. Keeps the output that the caller has not
    read yet."""

    def __init__(self, options: Options, prompt_token_ids: Sequence[int]) -> None:
        hook_requests()
        super().__init__(options.scanner(prompt_token_ids))
        self._eos_token_ids = options.eos_token_ids
        self._pieces: deque[Any] = deque()
        # The manager's thread feeds tokens, and the caller's thread takes the text.
        self._lock = Lock()
        self._in_use = False

    def copy(self) -> Self:
        """Returns an independent copy in the same state, for another request."""
        with self._lock:
            other = super().copy()
            other._pieces, other._lock, other._in_use = self._pieces.copy(), Lock(), False
        return other

    def snapshot(self) -> bytes:
        """Returns the state as bytes, for ``restore`` of a row with the same tokenizer, stops and options in any
        process.

        Raises ``ValueError`` if the last output was not read yet: its text would be lost.
        """
        with self._lock:
            if any(self._pieces):
                raise ValueError(
                    "a snapshot would lose the text of the last output, which was not read yet: read it first"
                )
            return super().snapshot()

    def restore(self, snapshot: bytes, /) -> None:
        """Puts the state of a ``snapshot`` into the row.

        Raises ``ValueError``, and changes nothing, if the snapshot was made with other stops or options, or is damaged.
        """
        with self._lock:
            super().restore(snapshot)
            self._pieces.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    def reset(self) -> None:
        """Puts the row back into its state before the first token, for another request."""
        with self._lock:
            super().reset()
            self._pieces.clear()
            self._in_use = False

    def length(self) -> int:
        """Returns how many token ids and logprobs to keep. If a stop ended the row, these are the ones up to the end of
        the row's text. Otherwise these are all of them."""
        return length_of(self)

    def flush(self, reason: EndReason = "abort") -> Any:
        """Ends the row with ``reason``, for a request that was cancelled. Returns the text (or the segments) that the
        caller has not read yet, and the held text."""
        return self._take(reason)

    def __contains__(self, token_id: int) -> bool:
        """Feeds ``token_id``. Returns whether the request ends with it. transformers checks each token once."""
        with self._lock:
            self._pieces.append(self.scanner.feed(token_id))
            return self.scanner.finish is not None

    def __iter__(self) -> Iterator[int]:
        """Iterates over the EOS ids, as the set that this object replaces would."""
        return iter(self._eos_token_ids)

    def _since(self, output: Any) -> Any:
        """Returns the safe text (or the segments) since the last call. The last ``output`` ends the row. Then the
        result also has the held text."""
        over = output.is_finished()
        return self._take(("length" if output.error is None else "abort") if over else None)

    def _take(self, reason: EndReason | None) -> Any:
        with self._lock:
            pieces, self._pieces = self._pieces, deque()
            if reason is not None:
                pieces.append(self.scanner.flush(reason))
        return self._joined(pieces)

    def _joined(self, pieces: Iterable[Any]) -> Any:
        raise NotImplementedError

    def _use(self, request: Any) -> None:
        # transformers may pause a request and add it again, with the answer so far in its prompt. That is not a second
        # request.
        if request.num_children or (self._in_use and not request._true_initial_tokens):
            raise ValueError(f"a {type(self).__name__} serves one answer of one request: make a new one for each")
        self._in_use = True


class RowScanner(_Request):
    """Scans one request of continuous batching. Pass the object as ``eos_token_id``. ``text`` returns the text that is
    safe to send with each output.

    - ``prompt_token_ids`` are the ids of the request's prompt.
    - ``eos_token_ids`` are the EOS ids of the request. The default is the tokenizer's EOS.
    - The other options are the same as in ``Stops``.
    - A ``RowScanner`` serves one request with one answer: ``add_request`` raises ``ValueError`` for a second request
      and for ``num_return_sequences``.

    >>> row = RowScanner(tokenizer, ["END"], prompt_token_ids=ids)
    >>> request_id = manager.add_request(ids, eos_token_id=row, max_new_tokens=500, streaming=True)
    >>> for output in manager.request_id_iter(request_id):
    ...     print(row.text(output), end="")
    >>> row.finish.matched_stop
    'END'
    """

    def __init__(
        self,
        tokenizer: Any,
        stop: StopSet | str | Iterable[str] | None = (),
        /,
        *,
        prompt_token_ids: Sequence[int] = (),
        **options: Unpack[RowOptions],
    ) -> None:
        super().__init__(Options(tokenizer, StopSet(stop), **options), prompt_token_ids)

    def text(self, output: Any, /) -> str:
        """Returns the safe text since the last call. Call ``text`` with each ``output`` of the request. With the last
        output it also returns the held text.

        If outputs are streamed, the text may be one token ahead of ``output``.
        """
        text: str = self._since(output)
        return text

    def _joined(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)


class RowSegmenter(_Request):
    """Segments one request of continuous batching, as ``RowScanner`` scans a request. ``segments`` returns the segments
    that are safe to send.

    The ``SegmentSet`` has the stops and says where they fire, so there is no ``protect``. The answer begins in
    ``region``. By default the end of the prompt decides. The other options are the same as in ``RowScanner``.

    >>> row = RowSegmenter(tokenizer, SegmentSet(FORMATS["think"], stop="END"), prompt_token_ids=ids)
    >>> manager.add_request(ids, eos_token_id=row, max_new_tokens=500, streaming=True)
    >>> row.segments(output)
    [('reasoning', 'Is it 5?', 1), ('answer', 'It is 5.', 2)]
    """

    def __init__(
        self,
        tokenizer: Any,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        /,
        *,
        region: str | None = None,
        prompt_token_ids: Sequence[int] = (),
        **options: Unpack[TokenOptions],
    ) -> None:
        super().__init__(Options(tokenizer, SegmentSet(segments), region=region, **options), prompt_token_ids)

    def segments(self, output: Any, /) -> list[Segment]:
        """Returns the safe segments since the last call. Call ``segments`` with each ``output`` of the request. With
        the last output it also returns the held segments.

        If outputs are streamed, the segments may be one token ahead of ``output``.
        """
        segments: list[Segment] = self._since(output)
        return segments

    def _joined(self, pieces: Iterable[list[Segment]]) -> list[Segment]:
        return joined(segment for piece in pieces for segment in piece)


@dataclass(frozen=True)
class Result:
    """The result of one request of ``generate_batch``: its text up to the stop, why the request ended, and
    transformers' output.
    """

    text: str
    finish: Finish
    output: Any


def generate_batch(
    model: Any,
    tokenizer: Any,
    inputs: Sequence[Sequence[int]],
    stop: StopSet | str | Iterable[str] | None = (),
    *,
    max_new_tokens: int | None = None,
    eos_token_ids: int | Iterable[int] | None = None,
    generation_config: Any = None,
    continuous_batching_config: Any = None,
    **options: Any,
) -> list[Result]:
    """Returns the results of ``model.generate_batch`` with exact stops, in the order of ``inputs``.

    ``stop`` and ``options`` are the same as in ``RowScanner``, and count for all requests. By default,
    ``eos_token_ids`` are the EOS ids of the generation config. All other options of the generation, such as
    ``temperature``, are in ``generation_config``.

    Raises ``RuntimeError`` with transformers' reason if a request fails.

    >>> [result.text for result in generate_batch(model, tokenizer, tokenizer(prompts).input_ids, ["END"])]
    """
    if unknown := ", ".join(sorted(options.keys() - RowOptions.__annotations__.keys())):
        known = ", ".join(RowOptions.__annotations__)
        raise TypeError(f"generate_batch has no option {unknown}: pass a generation_config; its own are {known}")
    config = model.generation_config if generation_config is None else generation_config
    if eos_token_ids is None:
        eos_token_ids = config.eos_token_id
    rows = [RowScanner(tokenizer, stop, eos_token_ids=eos_token_ids, prompt_token_ids=ids, **options) for ids in inputs]
    with model.continuous_batching_context_manager(
        generation_config=generation_config,
        continuous_batching_config=continuous_batching_config,
        block=True,
        timeout=5,
    ) as manager:
        requests = {
            manager.add_request(list(ids), eos_token_id=row, max_new_tokens=max_new_tokens): row
            for ids, row in zip(inputs, rows, strict=True)
        }
        results: dict[RowScanner, Result] = {}
        while len(results) < len(rows):
            output = manager.get_result(timeout=1)
            if output is None:
                if not manager.is_running():
                    raise RuntimeError("the generation ended before all requests had ended")
            elif output.is_finished():
                if output.error is not None:
                    raise RuntimeError(f"{output.request_id}: {output.error}")
                row = requests[output.request_id]
                text = row.text(output)
                assert row.finish is not None
                results[row] = Result(text, row.finish, output)
    return [results[row] for row in rows]


@cache
def hook_requests() -> None:
    """Lets requests use a ``RowScanner`` in place of their set of EOS ids. Changes nothing for other requests."""
    set_up = RequestState.__post_init__

    def __post_init__(self: Any) -> None:  # noqa: N807
        set_up(self)
        if isinstance(self.eos_token_id, _Request):
            self.eos_token_id._use(self)
            self._eos_token_ids = self.eos_token_id

    RequestState.__post_init__ = __post_init__
