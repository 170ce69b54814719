from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopSet
from stopscan.finish import EndReason, Finish
from stopscan.mlx_lm._reasoning import protected
from stopscan.tokens import TokenScanner


class RowScanner:
    """Scans one row of a ``BatchGenerator``, as its ``stop_sequences``; ``text`` is the safe text of a response.
    The row ends in the very step that completes a stop, and then ``finish`` says why.

    The text is what ``tokenizer.decode`` makes of the tokens, special ones included. ``min_tokens`` holds for stops and
    ``stop_token_ids``; the model's EOS ends the row at any time, as in mlx-lm. With ``protect_reasoning``, no string of
    ``stop`` fires between the tokenizer's thinking markers; ``prompt``, as text or token ids, tells whether they are
    open at the start. ``max_tokens`` is the row's own. The other options are those of ``TokenScanner``.

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
        start_protected: bool = False,
        protect_reasoning: bool = False,
        prompt: Any = (),
    ) -> None:
        tokenizer = wrapped(tokenizer)
        stops = compiled(stop)
        if protect_reasoning:
            stops, opened = protected(stops, tokenizer, prompt)
            start_protected = start_protected or opened
        self._scanner = TokenScanner(
            tokenizer,
            stops,
            stop_token_ids=stop_token_ids,
            eos_token_ids=tokenizer.eos_token_ids,
            min_tokens=min_tokens,
            max_tokens=max_tokens,
            include_stop=include_stop,
            start_protected=start_protected,
            # mlx-lm's text has them, and the thinking markers can be among them.
            skip_special_tokens=False,
        )
        self._eos_token_ids = frozenset(tokenizer.eos_token_ids)
        self._min_tokens = min_tokens
        # How many tokens the scanner had seen at each that it does not know, and at an early EOS.
        self._others: list[int] = []
        self._texts: deque[str] = deque()
        self._in_use = False

    @property
    def finish(self) -> Finish | None:
        """Why the row is over, as soon as it is."""
        return self._scanner.finish

    @property
    def tokens_seen(self) -> int:
        """How many tokens were fed, for usage."""
        return self._scanner.tokens_seen + len(self._others)

    @property
    def tokens_kept(self) -> int:
        """How many tokens there are up to the last that has a part in the emitted text."""
        kept = self._scanner.tokens_kept
        return kept + sum(seen < kept for seen in self._others)

    def feed(self, token_id: int, /) -> str:
        """The text that is safe to emit now that ``token_id`` was read; ``""`` for an id that has no text."""
        scanner = self._scanner
        if token_id in self._eos_token_ids and scanner.finish is None and self.tokens_seen < self._min_tokens:
            safe = scanner.close("eos")
            self._others.append(scanner.tokens_seen)
            return safe
        try:
            return scanner.feed(token_id)
        except ValueError:
            # Models have more ids than their tokenizers; a sampler may draw one, and the other rows go on.
            self._others.append(scanner.tokens_seen)
            return ""

    def close(self, reason: EndReason = "eos") -> str:
        """The rest of the text, when the row ends for another ``reason``."""
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
        # The end by length is mlx-lm's own to report.
        return self.finish is not None and self.finish.reason != "length"

    def text(self, response: Any, /) -> str:
        """The safe text that comes with the row's ``response``; each is to be asked for once, in order."""
        text = self._texts.popleft()
        return text + self.close("length") if response.finish_reason == "length" else text


def compiled(stop: StopSet | str | Iterable[str] | None) -> StopSet:
    return stop if isinstance(stop, StopSet) else StopSet(stop)


def wrapped(tokenizer: Any) -> Any:
    return tokenizer if isinstance(tokenizer, TokenizerWrapper) else TokenizerWrapper(tokenizer)
