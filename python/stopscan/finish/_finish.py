"""`Finish`: the report of why a generation ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from stopscan._stopscan import StopMatch

# The reasons for an end without a stop. Code that feeds a scanner can pass them to `flush`.
EndReason: TypeAlias = Literal[
    "eos", "length", "tool_calls", "content_filter", "refusal", "pause", "abort", "repetition", "unknown"
]  # fmt: skip
Reason: TypeAlias = Literal["stop_sequence", "stop_token", EndReason]


@dataclass(frozen=True, slots=True)
class Finish:
    """Why a generation ended. All values are plain, so `json.dumps(asdict(finish))`, pydantic and pickle work.

    `Finish.of(match)` makes a `Finish` from the match of a scanner.

    - `reason`: one of the words of `Reason`. "unknown" stands for a word that no API documents, or that
      says nothing about an answer, such as Ollama's "load".
    - `matched_stop`: the stop that fired. With "stop_sequence" it is a string, or None if the API says only
      that a stop fired. With "stop_token" it is the token id, which is required.
    - `offset`: where the stop string begins, or with "repetition" where the loop begins, in code points. No API sends
      the offset, so it is None in what `from_*` return.
    - `raw`: the API's own word, as `from_*` read it.

    Raises `ValueError` for values that do not go together, and `TypeError` for a value of a wrong type.

    >>> Finish("stop_sequence", "END", 26).match
    StopMatch('END', 26)
    >>> Finish("stop_token", 2)
    Finish(reason='stop_token', matched_stop=2, offset=None, raw=None)
    """

    reason: Reason
    matched_stop: str | int | None = None
    offset: int | None = None
    raw: str | None = None

    def __post_init__(self) -> None:
        if self.reason not in get_args(Reason):
            raise ValueError(f"unknown finish reason {self.reason!r}, expected one of {', '.join(get_args(Reason))}")
        self._check_stop()
        if self.offset is not None:
            self._check_offset(self.offset)
        if not isinstance(self.raw, str | None):
            raise TypeError(f"raw must be str or None, not {type(self.raw).__name__}")

    @classmethod
    def of(cls, match: StopMatch | None, otherwise: EndReason = "eos") -> Finish:
        """Returns the `Finish` of a scanner's match. If there is no match (None), the reason is the argument
        `otherwise`.

        A match with a `period` is a loop of the model, and is reported as a "repetition". For a pattern, `matched_stop`
        is the text that matched.

        >>> Finish.of(StopMatch("END", 26))
        Finish(reason='stop_sequence', matched_stop='END', offset=26, raw=None)
        >>> Finish.of(None, "length").reason
        'length'
        """
        if match is None:
            if otherwise == "stop_sequence":  # type: ignore[comparison-overlap]
                raise ValueError("without a match the reason cannot be 'stop_sequence'")
            return cls(otherwise)
        if not isinstance(match, StopMatch):
            raise TypeError(f"match must be StopMatch or None, not {type(match).__name__}")
        if match.period is not None:
            return cls("repetition", offset=match.offset)
        return cls("stop_sequence", match.sequence, match.offset)

    @property
    def match(self) -> StopMatch | None:
        """The match of the stop string, or None if the string or its offset is not known."""
        if isinstance(self.matched_stop, str) and self.offset is not None:
            return StopMatch(self.matched_stop, self.offset)
        return None

    def _check_stop(self) -> None:
        stop = self.matched_stop
        if self.reason == "stop_sequence":
            if not isinstance(stop, str | None):
                raise TypeError(f"matched_stop of a 'stop_sequence' must be str or None, not {type(stop).__name__}")
            if stop == "":
                raise ValueError("matched_stop is empty")
        elif self.reason == "stop_token":
            if stop is None:
                raise ValueError("finish reason 'stop_token' needs a token id as matched_stop")
            if not isinstance(stop, int) or isinstance(stop, bool):
                raise TypeError(f"matched_stop of a 'stop_token' must be int, not {type(stop).__name__}")
            if stop < 0:
                raise ValueError(f"matched_stop {stop} is not a token id")
        elif stop is not None:
            raise ValueError(f"finish reason {self.reason!r} must not have a matched_stop")

    def _check_offset(self, offset: object) -> None:
        if not isinstance(offset, int) or isinstance(offset, bool):
            raise TypeError(f"offset must be int or None, not {type(offset).__name__}")
        if offset < 0:
            raise ValueError(f"offset {offset} is negative")
        if not isinstance(self.matched_stop, str) and self.reason != "repetition":
            raise ValueError('offset needs a stop string in matched_stop, or the reason "repetition"')
