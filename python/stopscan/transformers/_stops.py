from __future__ import annotations

from functools import wraps
from inspect import signature
from threading import RLock
from typing import Any

import torch
from transformers import GenerationMixin, StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer
from transformers.generation.utils import _speculative_sampling

from stopscan.finish import EndReason, Finish
from stopscan.segments import Segment, SegmentSet
from stopscan.transformers._options import Options, Stop
from stopscan.transformers._row import Row, row_of
from stopscan.transformers._trim import trimmed


# Up to 5.17 assisted decoding asks the criteria of drafts, too, which may then be rejected.
ASKS_OF_DRAFTS = "is_done_candidate" in signature(_speculative_sampling).parameters

REUSED = "a Stops is for one generation: make one for each"


class Stops(StoppingCriteria, BaseStreamer):
    """The stops of one ``generate`` call. Pass a ``Stops`` as a stopping criterion, and as ``streamer=``. Each row ends
    in the step that completes a stop. After the generation, ``texts`` and ``finishes`` have the result of each row.

    - ``streamer`` gets the safe text, and no text of the prompt. It is a text streamer of transformers, a list with a
      streamer for each row, or any object with ``on_finalized_text(text, stream_end)``.
    - A ``Stops`` that is passed as ``streamer=`` knows the prompt. Beam search takes no streamer, and works without.
    - Assisted decoding needs transformers 5.18.
    - A ``Stops`` serves one generation.
    - ``eos_token_ids``: the default is the tokenizer's EOS. Give ``model.generation_config.eos_token_id`` if the model
      has more.
    - ``protect``: the regions in which no stop fires, as pairs of markers. ``"reasoning"`` and ``"tool_call"`` work if
      the tokenizer's response template has them.
    - ``start_protected`` says whether the answer begins in the first of these regions. ``None`` asks the prompt.
    - The other options are those of ``TokenScanner``. Wrong values raise at once.

    If the stop is a ``SegmentSet``, streamers get segments, tuples of a region and its text, and ``segments`` has the
    segments of each row. The set says where its stops fire. The answer begins in ``region``. ``None`` asks the prompt.

    >>> streamer = TextIteratorStreamer(tokenizer)
    >>> stops = Stops(tokenizer, ["END"], streamer=streamer)
    >>> Thread(target=model.generate, kwargs={**inputs, "stopping_criteria": [stops], "streamer": stops}).start()
    >>> print(*streamer)
    >>> stops.finishes[0].matched_stop
    'END'
    """

    def __init__(
        self,
        tokenizer: Any,
        stop: Stop = (),
        /,
        *,
        streamer: Any = None,
        **options: Any,
    ) -> None:
        self._begin(Options(tokenizer, stop, **options), streamer)

    @classmethod
    def of(cls, options: Options) -> Stops:
        """One with ``options`` that were read already."""
        stops = cls.__new__(cls)
        stops._begin(options, None)
        return stops

    def _begin(self, options: Options, streamer: Any) -> None:
        self._options = options
        self._streamers = list(streamer) if isinstance(streamer, list | tuple) else [streamer]
        # A reader may close the stream while the model generates.
        self._lock = RLock()
        self._closed: EndReason | None = None
        self._ended = False
        self._rows: list[Row] = []
        # The prompts, if generate announced them, then the sequences of the last step; how long the prompts are.
        self._announced = self._beams = False
        self._sequences: Any = None
        self._prompt_length = self._length = 0
        self._done: Any = None

    def __call__(self, input_ids: Any, scores: Any = None, **kwargs: Any) -> Any:
        """Which rows are over: transformers asks it of a criterion after each step."""
        with self._lock:
            if not self._rows:
                # Where nobody told the prompts, they are all but one token.
                self._start(self._sequences if self._announced else input_ids[:, :-1])
            length = self._follow(input_ids)
            changed = self._done is None
            # numpy takes half the time of torch for it, and `cpu` half of that.
            ids = (input_ids if input_ids.is_cpu else input_ids.cpu()).numpy()
            if length == self._length + 1:  # as nearly always
                for row, token_id in zip(self._rows, ids[:, -1].tolist(), strict=True):
                    changed |= row.step(token_id)
            else:
                for row, token_ids in zip(self._rows, ids[:, self._length :].tolist(), strict=True):
                    changed |= row.feed(token_ids)
            self._sequences, self._length = input_ids, length
            if changed:
                done = [row.over for row in self._rows]
                self._done = torch.tensor(done, dtype=torch.bool, device=input_ids.device)
            return self._done

    def tell_done(self, done: Any) -> None:
        """Ends the rows that another criterion ended: what follows in them is padding."""
        with self._lock:
            if self._done is None or not torch.equal(done, self._done):
                for row, over in zip(self._rows, done.tolist(), strict=True):
                    if over:
                        row.close("length")

    def tell_eos(self, token_ids: Any) -> None:
        self._options.tell_eos(token_ids)

    def put(self, value: Any) -> None:
        """Takes the prompts. The tokens that follow come with the calls of the criterion."""
        if self._ended:
            raise ValueError(REUSED)
        if self._sequences is None:
            self._announced, self._sequences = True, value
            self._check_streamers(len(value))

    def end(self) -> None:
        """Ends the rows that still run, with "length"."""
        if not self._rows:
            raise RuntimeError("a Stops is more than a streamer: pass it in stopping_criteria too")
        self._ended = True
        self.close("length")

    def close(self, reason: EndReason = "abort") -> None:
        """Ends the rows that still run, and their streams, which get the held text. The generation ends with its next
        step.

        Any thread may call ``close``, as often as it likes: when the reader has gone, or when ``generate`` raised.
        """
        with self._lock:
            if self._closed is None:
                self._closed, self._done = reason, None
                for row in self._rows:
                    row.close(reason)
                for streamer in [] if self._rows else self._streamers:
                    row_of(self._options, (), streamer).close(reason)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer that the object reads."""
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
        return [row.segments for row in self._results()]

    @property
    def finishes(self) -> list[Finish]:
        """The ``Finish`` of each row. Reading ``finishes`` ends the rows that still run, with "length"."""
        return [row.finish for row in self._results() if row.finish is not None]

    @property
    def tokens_seen(self) -> list[int]:
        """How many tokens each row took, for usage. The tokens behind the text, and the EOS, count."""
        return [row.seen for row in self._results()]

    @property
    def kept_ids(self) -> list[list[int]]:
        """The tokens of each row, to the last that has a part in its text."""
        rows = self._results()
        with self._lock:
            generated = [] if self._sequences is None else self._sequences[:, self._prompt_length :].tolist()
        return [ids[: row.scanner.tokens_kept] for ids, row in zip(generated, rows, strict=True)]

    def trim(self, output: Any, /) -> Any:
        """``output`` of ``generate``, tensor or object, without what follows the last token of each row's text.

        Only rows that a stop ended are cut, and padded where others are longer; scores, logits, attentions and hidden
        states get as many steps as the longest row has. The cache stays as it is. After a beam search it also says
        which sequences ``texts`` and ``finishes`` are of.

        >>> output = stops.trim(model.generate(**inputs, stopping_criteria=[stops], streamer=stops))
        """
        sequences = output if isinstance(output, torch.Tensor) else output.sequences
        if self._beams or len(sequences) != len(self._rows):
            self._rows = [self._rescanned(row) for row in sequences.tolist()]
            self._beams = False
        lengths = [row.length() for row in self._results()]
        # Whisper takes the decoder's prompt away again.
        missing = 0 if self._beams else max(self._length - sequences.shape[1], 0)
        return trimmed(output, max(self._prompt_length - missing, 0), lengths, self._options.pad_token_id)

    def _start(self, prompts: Any) -> None:
        streamers = self._check_streamers(len(prompts))
        self._sequences, self._prompt_length = prompts, prompts.shape[1]
        self._length = self._prompt_length
        self._rows = [
            row_of(self._options, prompt, None if self._closed else streamer)
            for prompt, streamer in zip(prompts.tolist(), streamers, strict=True)
        ]
        if self._closed:
            for row in self._rows:
                row.close(self._closed)

    def _check_streamers(self, rows: int) -> list[Any]:
        if self._streamers == [None]:
            return [None] * rows
        if len(self._streamers) != rows:
            raise ValueError(f"{rows} rows need a list of {rows} streamers, not {len(self._streamers)}")
        return self._streamers

    def _follow(self, input_ids: Any) -> int:
        """The length of the sequences, after the rows were put where theirs went: beams change places, and split."""
        length: int
        rows, length = input_ids.shape
        if rows != len(self._rows) or length <= self._length or self._ended:
            raise ValueError(REUSED)
        same = self._announced or self._length == self._prompt_length
        if not same and not torch.equal(input_ids[:, : self._length], self._sequences):
            self._move(input_ids[:, : self._length])
        return length

    def _move(self, known: Any) -> None:
        rows = {_key(sequence): row for sequence, row in zip(self._sequences.cpu(), self._rows, strict=True)}
        try:
            self._rows = [rows[_key(sequence)].copy() for sequence in known.cpu()]
        except KeyError:
            raise ValueError(REUSED) from None
        self._beams, self._done = True, None

    def _rescanned(self, sequence: list[int]) -> Row:
        row = row_of(self._options, sequence[: self._prompt_length])
        row.feed(sequence[self._prompt_length :])
        return row

    def _results(self) -> list[Row]:
        if self._beams:
            raise RuntimeError("after a beam search, trim(sequences) says which of the beams are the results")
        self.close("length")
        for row in self._rows:
            row.close("length")
        return self._rows


def _key(sequence: Any) -> bytes:
    key: bytes = sequence.numpy().tobytes()
    return key


class _Criteria(StoppingCriteriaList):
    """Criteria among which is a ``Stops``, which learns what the others decide."""

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        done = super().__call__(input_ids, scores, **kwargs)
        for criterion in self:
            if isinstance(criterion, Stops):
                criterion.tell_done(done)
        return done


def _tell_stops() -> None:
    """Lets each ``Stops`` of a generation know the model's EOS and what the other criteria decide."""
    make = GenerationMixin._get_stopping_criteria

    @wraps(make)
    def _get_stopping_criteria(self: Any, *args: Any, **options: Any) -> Any:
        criteria = make(self, *args, **options)
        ours = [criterion for criterion in criteria if isinstance(criterion, Stops)]
        for criterion in criteria if ours else ():
            if (eos := getattr(criterion, "eos_token_id", None)) is not None:
                for each in ours:
                    each.tell_eos(eos.tolist())
        return _Criteria(criteria) if ours else criteria

    GenerationMixin._get_stopping_criteria = _get_stopping_criteria


def _tell_prompts() -> None:
    """Lets assisted decoding, whose first step may bring several tokens, tell each ``Stops`` where its prompts end. It
    changes nothing for other criteria."""
    decode = GenerationMixin._assisted_decoding

    @wraps(decode)
    def _assisted_decoding(self: Any, input_ids: Any, *args: Any, **options: Any) -> Any:
        for criterion in options.get("stopping_criteria", ()):
            if isinstance(criterion, Stops):
                if ASKS_OF_DRAFTS:
                    raise RuntimeError("assisted decoding with a Stops needs transformers 5.18 or later")
                criterion.put(input_ids)
        return decode(self, input_ids, *args, **options)

    GenerationMixin._assisted_decoding = _assisted_decoding


_tell_prompts()
_tell_stops()
