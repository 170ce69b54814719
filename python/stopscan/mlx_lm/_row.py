from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopSet
from stopscan._protect import Protect
from stopscan.finish import EndReason, Finish
from stopscan.mlx_lm._regions import outside
from stopscan.tokens import TokenScanner


class RowScanner:
    """Scans one row of a ``BatchGenerator``, as its ``stop_sequences``; ``text`` is the safe text of a response.
    The row ends in the very step that completes a stop, and then ``finish`` says why.

    In any other loop, and with mlx-lm before 0.32: ``feed`` each token, end the row when there is a ``finish``, and
    ``close("length")`` at the loop's own limit.

    The text is what ``tokenizer.decode`` makes of the tokens, special ones included. ``min_tokens`` holds for stops and
    ``stop_token_ids``; the model's EOS ends the row at any time, as in mlx-lm. ``max_tokens`` is the row's own. An id
    that the tokenizer does not have gives no text; only ``min_tokens`` does not count it.

    No stop fires in the regions of ``protect``: ``"reasoning"``, ``"tool_calls"``, pairs of markers, or a list of them.
    ``start_protected`` says whether the answer begins inside one; by default the end of ``prompt``, text or token ids,
    tells. The other options are those of ``TokenScanner``.

    Raises ``ValueError`` for a region that mlx-lm knows no markers of, and ``TypeError`` for a tokenizer that
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
        stop_token_ids: Iterable[int] = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        include_stop: bool = False,
        protect: Protect = (),
        start_protected: bool | None = None,
        prompt: Any = (),
    ) -> None:
        tokenizer = wrapped(tokenizer)
        stops, inside = outside(compiled(stop), tokenizer, protect, prompt, start_protected)
        eos_token_ids = frozenset(tokenizer.eos_token_ids) - {None}  # before 0.32 that may be in it
        self._scanner = TokenScanner(
            tokenizer._tokenizer,
            stops,
            stop_token_ids=stop_token_ids,
            eos_token_ids=eos_token_ids,
            min_tokens=min_tokens,
            max_tokens=max_tokens,
            include_stop=include_stop,
            start_protected=inside,
            # mlx-lm's text has them, and markers can be among them.
            skip_special_tokens=False,
        )
        self._feed = self._scanner.feed
        self._min_tokens = min_tokens
        self._max_tokens = max_tokens
        self._early_eos = eos_token_ids if min_tokens else frozenset()
        # For each id that the scanner was not given: how many it had been given before.
        self._passed: list[int] = []
        self._texts: deque[str] = deque()
        self._in_use = False

    @property
    def finish(self) -> Finish | None:
        """Why the row ended, and at which stop; None while it goes on."""
        return self._scanner.finish

    @property
    def tokens_seen(self) -> int:
        """How many tokens were fed, EOS included."""
        return self._scanner.tokens_seen + len(self._passed)

    @property
    def tokens_kept(self) -> int:
        """How many tokens there are up to the last that contributed to the emitted text."""
        kept = self._scanner.tokens_kept
        return kept + bisect_left(self._passed, kept)

    def feed(self, token_id: int, /) -> str:
        """The text that is safe to emit now that ``token_id`` was read; ``""`` once the row is over."""
        if token_id in self._early_eos and self._scanner.tokens_seen < self._min_tokens:
            return self._pass() + self._scanner.close("eos")
        try:
            text = self._feed(token_id)
        except ValueError:
            # Models have more ids than their tokenizers; a sampler may draw one, and the other rows go on.
            text = self._pass()
        if self._passed and self.tokens_seen == self._max_tokens:
            text += self._scanner.close("length")  # the scanner does not know of all of them
        return text

    def close(self, reason: EndReason = "eos") -> str:
        """The rest of the text, when the row ends for another ``reason``; ``""`` if it is over."""
        return self._scanner.close(reason)

    def matcher(self) -> RowScanner:
        """Itself. mlx-lm calls it when the row starts; for a second row it raises ``ValueError``."""
        if self._in_use:
            raise ValueError("a RowScanner is for one row: make one for each")
        self._in_use = True
        return self

    def advance(self, token_id: int, /) -> bool:
        """Whether the row ends with ``token_id``. mlx-lm calls it for each token, before it hands out the response."""
        self._texts.append(self.feed(token_id))
        finish = self._scanner.finish
        # The end by length is mlx-lm's own to report.
        return finish is not None and finish.reason != "length"

    def text(self, response: Any, /) -> str:
        """The safe text that comes with the row's ``response``; each is to be asked for once, in order."""
        text = self._texts.popleft()
        return text + self.close("length") if response.finish_reason == "length" else text

    def _pass(self) -> str:
        if self._scanner.finish is None:
            self._passed.append(self._scanner.tokens_seen)
        return ""


def compiled(stop: StopSet | str | Iterable[str] | None) -> StopSet:
    return stop if isinstance(stop, StopSet) else StopSet(stop)


def wrapped(tokenizer: Any) -> Any:
    return tokenizer if isinstance(tokenizer, TokenizerWrapper) else TokenizerWrapper(tokenizer)
