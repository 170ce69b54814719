"""``Stops``, and the hooks by which ``generate`` tells a ``Stops`` the EOS ids and the prompts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, wraps
from inspect import signature
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any

import torch
from transformers import EosTokenCriteria, GenerationMixin, StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer
from transformers.generation.utils import _speculative_sampling

from stopscan.finish import EndReason, Finish
from stopscan.segments import Segment, SegmentSet
from stopscan.transformers._options import Options, Stop, ids
from stopscan.transformers._row import TextRow, length_of, row_of
from stopscan.transformers._trim import trimmed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from stopscan.transformers._options import StopsOptions

# Up to transformers 5.17, assisted decoding also calls the criteria with drafts, which may be rejected afterwards.
ASKS_OF_DRAFTS = "is_done_candidate" in signature(_speculative_sampling).parameters

REUSED = "this Stops was already used: make a new one for each generation"
FINISH = attrgetter("finish")
NO_CRITERION = "this Stops is only the streamer: pass it in stopping_criteria too"


class Stops(StoppingCriteria, BaseStreamer):
    """The stops of one ``generate`` call. Pass a ``Stops`` in ``stopping_criteria`` and as ``streamer=``. Each row ends
    in the step that completes a stop. After the generation, ``texts`` and ``finishes`` have the result of each row.

    - The option ``streamer`` of a ``Stops`` gets the answer's text up to the stop. It is a text streamer of
      transformers, a list with a streamer for each row, or any object with ``on_finalized_text(text, stream_end)``.
    - ``generate`` passes the prompts to its own ``streamer``, so pass the ``Stops`` there. For beam search, which
      refuses streamers, pass the ``Stops`` only in ``stopping_criteria``.
    - Assisted decoding needs transformers 5.18.
    - A ``Stops`` serves one generation: make a new one for each.
    - ``eos_token_ids``: the default is the tokenizer's EOS. The EOS ids of the generation count as well.
    - ``protect``: the regions in which no stop fires, as pairs of markers. ``"reasoning"`` and ``"tool_call"`` work if
      the tokenizer's response template or its chat template has their markers.
    - ``start_protected`` says whether the answer begins in the first protected region. By default the end of the prompt
      decides.
    - The other options are the same as in ``TokenScanner``. Wrong values raise at once.

    If the stop is a ``SegmentSet``, streamers get segments (tuples of a region, its text and its part). ``segments``
    has the segments of each row. The set says where its stops fire. The answer begins in ``region``. By default the end
    of the prompt decides.

    >>> streamer = TextIteratorStreamer(tokenizer)
    >>> stops = Stops(tokenizer, ["END"], streamer=streamer)
    >>> Thread(target=model.generate, kwargs={**inputs, "stopping_criteria": [stops], "streamer": stops}).start()
    >>> print(*streamer)
    >>> stops.finishes[0].matched_stop
    'END'
    """

    def __init__(
        self, tokenizer: Any, stop: Stop = (), /, *, streamer: Any = None, **options: Unpack[StopsOptions]
    ) -> None:
        self._begin(Options(tokenizer, stop, **options), streamer)

    @classmethod
    def of(cls, options: Options, streamer: Any = None) -> Stops:
        """Returns a ``Stops`` with ``options`` that were read already."""
        stops = cls.__new__(cls)
        stops._begin(options, streamer)
        return stops

    def _begin(self, options: Options, streamer: Any) -> None:
        hook_generate()
        self._options = options
        self._streamers = list(streamer) if isinstance(streamer, list | tuple) else [streamer]
        self._streaming = any(each is not None for each in self._streamers)
        # The hooks in transformers' `generate` set these three. `_is_criterion`: whether `self` is one of the stopping
        # criteria. `_pad`: the id that fills rows that have ended.
        self._is_criterion = False
        self._eos: list[int] = []
        self._pad: int | None = options.tokenizer.pad_token_id
        # Another thread may call `close` while the model generates.
        self._lock = RLock()
        self._closed: EndReason | None = None
        self._ended = False
        self._rows: list[TextRow] = []
        self._scanners: list[Any] = []
        self._kind: Any = None  # the class of the scanners
        # The results of the scanners, a list for each step. `_collect` gives them to the rows.
        self._steps: list[list[Any]] = []
        # `_sequences` has the sequences after the last step. Before the first step it has the prompts, if `generate`
        # announced them. `_length` is the count of tokens in each sequence.
        self._announced = self._beams = False
        self._sequences: Any = None
        self._prompts: Any = None
        self._length = 0
        # The `Finish` of each row after the last step (`None` if the row goes on), and a tensor that says which rows
        # have ended.
        self._finishes: list[Finish | None] = []
        self._done: Any = None

    def __call__(self, input_ids: Any, scores: Any = None, **kwargs: Any) -> Any:
        """Feeds the new tokens. Returns which rows have ended. transformers calls each criterion after each step."""
        with self._lock:
            if not self._rows:
                # If the prompts are unknown, assume that everything except the newest token is prompt.
                self._start(self._sequences if self._announced else input_ids[:, :-1])
            # Reading with numpy takes half the time of torch. `cpu()` also takes time, so it is called only if needed.
            tokens = (input_ids if input_ids.is_cpu else input_ids.cpu()).numpy().T
            length, rows = tokens.shape
            if rows != len(self._rows) or length <= self._length or self._ended:
                raise ValueError(REUSED)
            if not self._announced and self._sequences is not self._prompts:
                self._follow(input_ids[:, : self._length])
            # The scanners take most of this method's time, so `map` calls them without a loop in Python. The scanner of
            # a row that has ended returns an empty result.
            if length == self._length + 1:  # usually, each row has one new token
                self._steps.append([*map(self._kind.feed, self._scanners, tokens[-1].tolist())])
            else:
                self._steps.append([*map(self._kind.feed_many, self._scanners, tokens[self._length :].T.tolist())])
            if self._streaming:
                self._collect()
            self._sequences, self._length = input_ids, length
            finishes = [*map(FINISH, self._scanners)]
            if finishes != self._finishes or self._done is None:
                over = [finish is not None for finish in finishes]
                self._finishes, self._done = finishes, torch.tensor(over, device=input_ids.device)
            return self._done

    def _collect(self) -> None:
        """Gives the rows what their scanners returned since the last call."""
        steps, self._steps = self._steps, []
        for row, pieces in zip(self._rows, zip(*steps, strict=True), strict=False):
            row.add(*pieces)

    def _tell(self, eos_token_ids: list[int], pad_token_id: int | None) -> None:
        """Stores the EOS ids of the generation, and the id that pads rows after their end."""
        self._is_criterion = True
        self._eos = eos_token_ids
        if pad_token_id is not None:
            self._pad = pad_token_id

    def _tell_done(self, done: Any) -> None:
        """Ends the rows that another criterion has ended (``done``). The reason is "length". Later tokens of these rows
        are padding."""
        with self._lock:
            if self._done is None or not torch.equal(done, self._done):
                self._collect()
                for row, over in zip(self._rows, done.tolist(), strict=True):
                    if over:
                        row.end("length")
                self._done = None

    def put(self, value: Any) -> None:
        """Stores the prompts. transformers first calls ``put`` with the prompts, and then with new tokens. These tokens
        are ignored, because ``__call__`` also gets them.

        If this ``Stops`` is not in ``stopping_criteria``, the second call raises ``RuntimeError``.
        """
        if self._ended:
            raise ValueError(REUSED)
        if self._sequences is None:
            self._announced, self._sequences = True, value
            self._check_streamers(len(value))
        elif not self._rows and not self._is_criterion:
            raise RuntimeError(NO_CRITERION)

    def end(self) -> None:
        """Ends the rows that still run, with "length"."""
        if not self._rows:
            raise RuntimeError(NO_CRITERION)
        self._ended = True
        self.close("length")

    def close(self, reason: EndReason = "abort") -> None:
        """Ends the rows that still run. Their streamers get the held text, and the generation ends with its next step.

        Call it if the reader has left, or if ``generate`` raised. Any thread may call it, and more than once.
        """
        with self._lock:
            if self._closed is None:
                self._closed, self._done = reason, None
                self._collect()
                for row in self._rows:
                    row.end(reason)
                for streamer in [] if self._rows else self._streamers:
                    row_of(self._options, (), streamer).end(reason)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer that was given, or the tokenizer of the processor that was given."""
        return self._options.tokenizer

    @property
    def tells_segments(self) -> bool:
        """Whether the stop is a ``SegmentSet``, so that there are ``segments``."""
        return isinstance(self._options.stops, SegmentSet)

    @property
    def texts(self) -> list[str]:
        """The text of each row, up to its stop. Reading ``texts`` ends the rows that still run, with "length"."""
        return [row.text for row in self._results()]

    @property
    def segments(self) -> list[list[Segment]]:
        """The segments of each row, if the stop is a ``SegmentSet``. Otherwise raises ``RuntimeError``.

        Reading ``segments`` ends the rows that still run, with "length".
        """
        if not self.tells_segments:
            raise RuntimeError("segments needs a SegmentSet as the argument stop")
        return [row.segments for row in self._results()]  # type: ignore[attr-defined]

    @property
    def finishes(self) -> list[Finish]:
        """The ``Finish`` of each row. Reading ``finishes`` ends the rows that still run, with "length"."""
        return [row.finish for row in self._results() if row.finish is not None]

    @property
    def tokens_seen(self) -> list[int]:
        """The number of generated tokens of each row, for a usage report. Includes the EOS and the tokens after the end
        of the text, which ``trim`` cuts off."""
        return [row.tokens_seen for row in self._results()]

    @property
    def lengths(self) -> list[int]:
        """The number of tokens that ``trim`` keeps of each row. If a stop ended the row, these are the tokens up to the
        end of the row's text. Otherwise these are all tokens."""
        return [length_of(row) for row in self._results()]

    def trim(self, output: Any, /) -> Any:
        """Returns ``output`` of ``generate``, a tensor or an object, without the tokens after the text of each row.

        Cuts only the rows that a stop ended. If rows then differ in length, the shorter ones are padded. Scores,
        logits, attentions and hidden states keep as many steps as the longest row keeps generated tokens. The key-value
        cache in ``output`` is not changed. After a beam search, call ``trim`` before you read ``texts`` and
        ``finishes``: they then have the results of the sequences in ``output``.

        >>> output = stops.trim(model.generate(**inputs, stopping_criteria=[stops], streamer=stops))
        """
        sequences = output if isinstance(output, torch.Tensor) else output.sequences
        start = self._prompt_length(sequences)
        if self._beams or len(sequences) != len(self._rows):
            self._set_rows(self._rescanned(row, start) for row in sequences.tolist())
            self._beams = False
        fillers = [*ids(self._pad), *self._eos, *self._options.eos_token_ids, 0]
        return trimmed(output, start, self.lengths, fillers[0])

    def _start(self, prompts: Any) -> None:
        streamers = self._check_streamers(len(prompts))
        self._sequences = self._prompts = prompts
        self._length = prompts.shape[1]
        self._set_rows(
            row_of(self._options, prompt, None if self._closed else streamer, self._eos)
            for prompt, streamer in zip(prompts.tolist(), streamers, strict=True)
        )
        if self._closed:
            for row in self._rows:
                row.end(self._closed)

    def _set_rows(self, rows: Iterable[TextRow]) -> None:
        self._rows, self._steps = [*rows], []
        self._scanners = [row.scanner for row in self._rows]
        self._kind = type(self._scanners[0])

    def _check_streamers(self, rows: int) -> list[Any]:
        if self._streamers == [None]:
            return [None] * rows
        if len(self._streamers) != rows:
            raise ValueError(f"{rows} rows need a list of {rows} streamers, not {len(self._streamers)}")
        return self._streamers

    def _follow(self, known: Any) -> None:
        """Puts the rows into the order of the sequences ``known``, because a beam search reorders and copies sequences
        in each step. If a sequence was copied, its row is copied too."""
        if torch.equal(known, self._sequences):
            return
        self._collect()
        rows = {_key(sequence): row for sequence, row in zip(self._sequences.cpu(), self._rows, strict=True)}
        try:
            self._set_rows(rows[_key(sequence)].copy() for sequence in known.cpu())
        except KeyError:
            raise ValueError(REUSED) from None
        self._beams, self._done = True, None

    def _prompt_length(self, sequences: Any) -> int:
        """Returns the length of the prompt in ``sequences``: 0 for Whisper, which removes the prompt."""
        prompts = [] if self._prompts is None else self._prompts.tolist()
        length = len(prompts[0]) if prompts else 0
        return length if all(row[:length] in prompts for row in sequences.tolist()) else 0

    def _rescanned(self, sequence: list[int], start: int) -> TextRow:
        prompt, *_ = [sequence[:start]] if start else self._prompts.tolist()
        row = row_of(self._options, prompt, eos_token_ids=self._eos)
        tokens = sequence[start:]
        length = len(tokens)
        while length and tokens[length - 1] in (self._pad, -1):  # transformers pads with -1 if there is no EOS
            length -= 1
        row.add(row.feed_many(tokens[: length + (self._pad in (*self._eos, *self._options.eos_token_ids))]))
        # If `start` is 0, the model is Whisper, which removes the prompt and the EOS from its sequences. The EOS is
        # then found by counting: if a sequence has fewer tokens than were generated, it ended with the EOS.
        row.end("length" if start or length >= self._length - len(prompt) else "eos")
        return row

    def _results(self) -> list[TextRow]:
        if self._beams:
            raise RuntimeError("after a beam search, call trim(sequences) first: it finds which beams are results")
        self.close("length")
        self._collect()
        for row in self._rows:
            row.end("length")
        return self._rows


def _key(sequence: Any) -> bytes:
    key: bytes = sequence.numpy().tobytes()
    return key


class _Criteria(StoppingCriteriaList):
    """The stopping criteria of a ``generate`` call. After each step, tells each ``Stops`` in the list which rows have
    ended, because another criterion may have ended them."""

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        done = super().__call__(input_ids, scores, **kwargs)
        for stops in _stops_in(self):
            stops._tell_done(done)
        return done


def _stops_in(criteria: Any) -> list[Stops]:
    return [criterion for criterion in criteria or () if isinstance(criterion, Stops)]


@cache
def hook_generate() -> None:
    """Changes ``generate``, so that it tells each ``Stops`` the EOS ids, the pad id and the prompts. Without a
    ``Stops``, ``generate`` works as before."""
    make, decode = GenerationMixin._get_stopping_criteria, GenerationMixin._assisted_decoding

    @wraps(make)
    def _get_stopping_criteria(self: Any, generation_config: Any, *args: Any, **options: Any) -> Any:
        criteria = make(self, generation_config, *args, **options)
        if not (ours := _stops_in(criteria)):
            return criteria
        eos = [
            token_id
            for criterion in criteria
            if isinstance(criterion, EosTokenCriteria)
            for token_id in criterion.eos_token_id.tolist()
        ]
        pad = generation_config.pad_token_id
        for stops in ours:
            stops._tell(eos, next(iter(eos), None) if pad is None else pad)
        return _Criteria(criteria)

    # The first step of assisted decoding may bring several tokens, so a `Stops` must get the prompts before the step.
    @wraps(decode)
    def _assisted_decoding(self: Any, input_ids: Any, *args: Any, **options: Any) -> Any:
        for stops in _stops_in(options.get("stopping_criteria")):
            if ASKS_OF_DRAFTS:
                raise RuntimeError("assisted decoding with a Stops needs transformers 5.18 or later")
            stops.put(input_ids)
        return decode(self, input_ids, *args, **options)

    GenerationMixin._get_stopping_criteria = _get_stopping_criteria
    GenerationMixin._assisted_decoding = _assisted_decoding
