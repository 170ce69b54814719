"""vLLM's own detokenizer, with its stops found by stopscan."""

from __future__ import annotations

import logging
import sys
from functools import cache
from typing import Any

from stopscan import StopScanner
from stopscan.engines import Failures

# vLLM's own handlers print what is logged below its name.
logger = logging.getLogger("vllm.stopscan")
failures = Failures(logger)

# vLLM's own words where its `repetition_detection` ends an answer.
LOOP = ("repetition", "repetition_detected")
# A marker, or a stop, that `skip_special_tokens` hides, by its last token: all its tokens, and its text.
Hidden = dict[int, list[tuple[tuple[int, ...], str]]]


@cache
def scanning(theirs: type) -> type:
    """The class of detokenizers that are as ``theirs``, but for their stops."""
    return type(f"Scanning{theirs.__name__}", (ScanningDetokenizer, theirs), {})


class ScanningDetokenizer:
    """In front of a class of vLLM's: vLLM's token ids, text and offsets, our stops.

    With a vocabulary of bytes, a ``TokenScanner`` makes the text; ``output_text`` is then what is safe. Else vLLM
    decodes, and a ``StopScanner`` reads its text; ``stop_buffer_length`` is then how much of it is held.
    """

    def arm(self: Any, scanner: Any, tokenizer: Any, request: Any, *, beyond: bool, trims: bool, hidden: Hidden) -> None:
        self._scanner, self.beyond, self._trims, self._hidden = scanner, beyond, trims, hidden
        self._again = tokenizer, request
        self._step = self._decoded if isinstance(scanner, StopScanner) else self._read
        self.stop, self.stop_buffer_length = [], 0  # vLLM looks for none of them
        self._match: Any = None
        self._failed = self._terminated = False
        self._shift = 0  # of hidden markers, which the scanner reads and the text has not
        self.end_confirms = True

    def update(self: Any, new_token_ids: list[int], stop_terminated: bool) -> str | None:
        """The stop that fired, or ``None``. The tokens behind it are dropped."""
        if self._scanner is None or self._match is not None:
            return super().update(new_token_ids, stop_terminated)  # type: ignore[misc]
        before = len(self.token_ids)
        if stop_terminated:
            self._terminated = True
        try:
            match = self._step(new_token_ids, stop_terminated)
        except BaseException as error:
            del self.token_ids[before:]
            self._give_back(error, False)
            return "stopscan failed" if self._failed else super().update(new_token_ids, stop_terminated)  # type: ignore[misc]
        if match is None:
            return None
        if not self._trims:  # before 0.32, vLLM keeps the logprobs behind a stop, and so their ids
            self.token_ids.extend(new_token_ids[len(self.token_ids) - before :])
        self._match = match
        return str(match.sequence)

    def _read(self: Any, new_token_ids: list[int], stop_terminated: bool) -> Any:
        skipped = new_token_ids[-1:] if stop_terminated and not self.include_stop_str_in_output else []
        token_ids, scanner, feed = self.token_ids, self._scanner, self._scanner.feed
        for token_id in new_token_ids[: len(new_token_ids) - len(skipped)]:
            token_ids.append(token_id)
            self.output_text += feed(token_id)
            if scanner.finish is not None:
                return scanner.match
        token_ids.extend(skipped)
        return None

    def _decoded(self: Any, new_token_ids: list[int], stop_terminated: bool) -> Any:
        scanner = self._scanner
        for place, token_id in enumerate(new_token_ids, 1):
            seen = len(self.output_text)
            super().update([token_id], stop_terminated and place == len(new_token_ids))  # type: ignore[misc]
            pieces, armed = [(self.output_text[seen:], 0)], self.num_output_tokens() > self.min_tokens
            for ids, marker in self._hidden.get(token_id, ()):
                if tuple(self.token_ids[-len(ids) :]) == ids:
                    pieces.append((marker, len(marker)))
                    break
            for text, unseen in pieces:
                if text:
                    scanner.feed(text, armed=armed)
                    if scanner.match is not None:
                        return self._cut(scanner.match)
                    self._shift += unseen
        self.stop_buffer_length = len(scanner.held)
        return None

    def _cut(self: Any, match: Any) -> Any:
        end = match.end if self.include_stop_str_in_output else match.offset
        self.output_text = self.output_text[: max(end - self._shift, 0)]
        self.stop_buffer_length = 0
        return match

    def get_next_output_text(self: Any, finished: bool, delta: bool) -> str:
        if finished and self._scanner is not None and self._match is None:
            try:
                self._end()
            except BaseException as error:
                self._give_back(error, self._terminated)
        return super().get_next_output_text(finished, delta)  # type: ignore[misc, no-any-return]

    def _end(self: Any) -> None:
        """The end of the text, which may confirm a pattern: every end does but an abort."""
        if isinstance(self._scanner, StopScanner):
            self.stop_buffer_length = 0
            if self.end_confirms:
                self._scanner.flush()
                if self._scanner.match is not None:
                    self._match = self._cut(self._scanner.match)
        else:
            # vLLM drops half a character.
            self.output_text += self._scanner.close("length" if self.end_confirms else "abort").rstrip("\ufffd")
            self._match = self._scanner.match

    def _give_back(self: Any, error: BaseException, stop_terminated: bool) -> None:
        """vLLM's own state, as if stopscan had not been here; or an error, where vLLM has not the request's stops."""
        failures.note(error, "ends with an error" if self.beyond else "goes on with vLLM's stops")
        self._scanner = None
        if self.beyond:
            self._failed = True
            return
        token_ids, given = list(self.output_token_ids), self._last_output_text_offset
        super().__init__(*self._again)
        least, self.min_tokens = self.min_tokens, sys.maxsize  # no stop fires in what was read already
        super().update(token_ids, stop_terminated)  # type: ignore[misc]
        self.min_tokens, self._last_output_text_offset = least, given

    def report(self: Any, output: Any) -> None:
        """Writes into a finished ``output`` how it ended, where vLLM cannot know."""
        if self._failed:
            output.finish_reason, output.stop_reason = "error", None
        elif self._match is not None:
            output.finish_reason, output.stop_reason = LOOP if self._match.period else ("stop", self._match.sequence)
