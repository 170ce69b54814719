"""What answers for a stream in which stopscan failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm.outputs import CompletionOutput


class Theirs:
    """vLLM's own detokenizer, brought to where the stream stands; nothing is given twice, and nothing is lost.

    ``theirs`` is a fresh one whose stops sleep until it has all ``token_ids``, so that one `update` brings it there.
    ``given`` characters were handed out in deltas, or the text ``whole``. The answer ends at ``cut`` if that is known.
    """

    def __init__(
        self, theirs: Any, token_ids: Sequence[int], stop_terminated: bool, *, given: int, whole: str, cut: int | None
    ) -> None:
        self._theirs = theirs
        self._given = given
        self._whole = whole
        self._cut = cut
        theirs.update(list(token_ids), stop_terminated)
        # What vLLM takes for safe may be more than was given, or less.
        safe = theirs.get_next_output_text(False, True)
        self._due = safe[given:]
        self._skip = max(given - len(safe), 0)

    def update(self, *args: Any, **options: Any) -> str | None:
        stop: str | None = self._theirs.update(*args, **options)
        return stop

    def get_next_output_text(self, finished: bool, delta: bool, *rest: Any, **more: Any) -> str:
        if self._cut is not None:
            # A stop was reported already.
            text: str = self._theirs.get_next_output_text(True, False)[: self._cut]
            return text[self._given :] if delta else max(text, self._whole, key=len)
        text = self._theirs.get_next_output_text(finished, delta, *rest, **more)
        if not delta:
            # vLLM holds back by length, so that it may have less for safe than was shown.
            self._whole = max(self._whole, text, key=len)
            return self._whole
        skipped = min(self._skip, len(text))
        text, self._due, self._skip = self._due + text[skipped:], "", self._skip - skipped
        return text

    def report(self, output: CompletionOutput) -> None:
        """Nothing: vLLM knows how the answer ended."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)


class Ended:
    """An answer that ends with an error at its next step; its text is what was given already."""

    def __init__(self, inner: Any, whole: str) -> None:
        self._inner = inner
        self._whole = whole

    def update(self, new_token_ids: Sequence[int], *args: Any, **options: Any) -> str:
        """What vLLM takes for a stop, which ends the request here and in the engine core."""
        self._inner.token_ids.extend(new_token_ids)
        return "stopscan failed"

    def get_next_output_text(self, finished: bool, delta: bool, *rest: Any, **more: Any) -> str:
        return "" if delta else self._whole

    def report(self, output: CompletionOutput) -> None:
        """Makes a finished ``output`` an error, of which vLLM's routes make a 500 or an event."""
        output.finish_reason, output.stop_reason = "error", None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
