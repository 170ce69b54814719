"""Makes vLLM's own detokenizer find its stops with stopscan."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from vllm.v1.engine.output_processor import OutputProcessor

from stopscan import StopScanner

# The finish reason and the stop reason of vLLM's own `repetition_detection`. stopscan reports the same for a loop.
LOOP = ("repetition", "repetition_detected")


def arm(detokenizer: Any, scanner: Any, **state: Any) -> None:
    """Makes vLLM's ``detokenizer`` find its stops with ``scanner``.

    - ``made_of``: if stopscan fails, vLLM's own detokenizer is made again with these arguments.
    - ``failures`` counts the failures of stopscan.
    - ``hidden``: the markers that vLLM's text leaves out.
    - ``beyond``: whether the request asks for something that vLLM cannot do.
    """
    # Take the stops away from vLLM, so that vLLM holds back no text for them.
    native = not isinstance(scanner, StopScanner)
    vars(detokenizer).update(state, scanner=scanner, native=native, stop=[], stop_buffer_length=0)
    cls: Any = type(detokenizer)
    detokenizer.__class__ = _scanning(cls)


@cache
def _scanning(cls: Any) -> type:
    """Returns a subclass of ``cls``, a detokenizer class of vLLM. The subclass finds its stops with stopscan."""
    # `vllm_next_text` is vLLM's `get_next_output_text`. vLLM calls it for each token, and a call through `super()`
    # would take longer.
    names = {"vllm_next_text": cls.get_next_output_text}
    return type(f"Scanning{cls.__name__}", (ScanningDetokenizer, cls), names)


class ScanningDetokenizer:
    """A mixin for a detokenizer class of vLLM. stopscan finds the stops. vLLM still keeps the token ids, and the length
    of the text that was returned.

    If ``scanner`` is a ``TokenScanner``, it also makes the text. ``output_text`` then has no held text. If ``scanner``
    is a ``StopScanner``, vLLM makes the text. ``output_text`` then also has the held text, and ``stop_buffer_length``
    is the length of the held text.
    """

    match: Any = None
    # Whether a stop token or an EOS ended the last update.
    terminated = False
    # The count of characters in markers that the scanner has read, but that vLLM leaves out of the text.
    unseen = 0
    # Whether the end of the text may complete a match of a pattern such as `END$`. False after an abort or an error.
    end_confirms = True
    # The length of the text that was returned before stopscan failed. A later output that has the whole text, not a
    # delta, is at least this long.
    least = 0

    def update(self: Any, new_token_ids: list[int], stop_terminated: bool) -> str | None:
        """Reads new tokens. Returns the stop that fired, or ``None``. Drops the tokens after the stop. If stopscan
        fails and vLLM cannot take over, returns the text "stopscan failed" in place of a stop, so that vLLM ends the
        request."""
        scanner, token_ids = self.scanner, self.token_ids
        if scanner is None or self.match is not None:
            return super().update(new_token_ids, stop_terminated)  # type: ignore[misc, no-any-return]
        before, match = len(token_ids), None
        skips = stop_terminated and not self.include_stop_str_in_output
        try:
            if not self.native:
                match = self._decoded(new_token_ids, stop_terminated)
            else:  # inline, for speed
                for token_id in new_token_ids:
                    token_ids.append(token_id)
                    # The token that ended the stream has no text in vLLM's answers.
                    if skips and len(token_ids) - before == len(new_token_ids):
                        break
                    self.output_text += scanner.feed(token_id)
                    if scanner.finish is not None:
                        match = scanner.match
                        break
        except BaseException as error:
            del self.token_ids[before:]
            self._give_back(error, False)
            return "stopscan failed" if self.beyond else super().update(new_token_ids, stop_terminated)  # type: ignore[misc]
        self.terminated = stop_terminated
        if match is None:
            return None
        if not hasattr(OutputProcessor, "_trim_surplus_tokens"):  # vLLM before 0.32 keeps tokens after a stop
            self.token_ids.extend(new_token_ids[len(self.token_ids) - before :])
        self.match = match
        return str(match.sequence)

    def _decoded(self: Any, new_token_ids: list[int], stop_terminated: bool) -> Any:
        scanner = self.scanner
        for place, token_id in enumerate(new_token_ids, 1):
            seen = len(self.output_text)
            super().update([token_id], stop_terminated and place == len(new_token_ids))  # type: ignore[misc]
            text, armed = self.output_text[seen:], self.num_output_tokens() > self.min_tokens
            pieces = [(text, 0)]
            for ids, marker in self.hidden.get(token_id, ()):
                if tuple(self.token_ids[-len(ids) :]) == ids:
                    # If the marker begins with a special token, vLLM leaves the token out, and `text` has only the rest
                    # of the marker.
                    shown = len(text) if marker.endswith(text) else 0
                    pieces = [*pieces[shown > 0 :], (marker, len(marker) - shown)]
                    break
            for text, unseen in pieces:
                if text:
                    scanner.feed(text, armed=armed)
                    if scanner.match is not None:
                        return self._cut(scanner.match)
                    self.unseen += unseen
        self.stop_buffer_length = len(scanner.held)
        return None

    def _cut(self: Any, match: Any) -> Any:
        end = match.end if self.include_stop_str_in_output else match.offset
        self.output_text = self.output_text[: max(end - self.unseen, 0)]
        self.stop_buffer_length = 0
        return match

    def get_next_output_text(self: Any, finished: bool, delta: bool) -> str:
        if finished and self.scanner is not None and self.match is None:
            try:
                self._end()
            except BaseException as error:
                self._give_back(error, self.terminated)
        text: str = self.vllm_next_text(finished, delta)
        return text if delta or len(text) >= self.least else self.output_text[: self.least]

    def _end(self: Any) -> None:
        """Tells the scanner that the text has ended, which may complete the match of a pattern such as ``END$``."""
        if self.native:  # vLLM drops an incomplete character at the end
            self.output_text += self.scanner.flush("length" if self.end_confirms else "abort").rstrip("\ufffd")
        elif self.end_confirms:
            self.scanner.flush()
            if self.scanner.match is not None:
                self._cut(self.scanner.match)
        self.match, self.stop_buffer_length = self.scanner.match, 0

    def _give_back(self: Any, error: BaseException, stop_terminated: bool) -> None:
        """Turns this object back into vLLM's own detokenizer, in the state after the same tokens. If the request asks
        for something that vLLM cannot do, ends the request with an error instead."""
        self.failures.note(error, "ends with an error" if self.beyond else "goes on with vLLM's stops", "stream")
        self.scanner = None
        if self.beyond:
            return
        token_ids, given = list(self.output_token_ids), self._last_output_text_offset
        self.least = len(self.output_text) - self.stop_buffer_length
        super().__init__(*self.made_of)
        # stopscan has already read these tokens. Set `min_tokens` to the largest value, so that vLLM finds no stop in
        # them.
        least, self.min_tokens = self.min_tokens, sys.maxsize
        super().update(token_ids, stop_terminated)  # type: ignore[misc]
        self.min_tokens, self._last_output_text_offset = least, given

    def report(self: Any, output: Any) -> None:
        """Writes into a finished ``output`` how the request ended, because vLLM did not look for the stops itself."""
        if self.scanner is None:
            output.finish_reason, output.stop_reason = "error", None
        elif self.match is not None:
            output.finish_reason, output.stop_reason = LOOP if self.match.period else ("stop", self.match.sequence)
