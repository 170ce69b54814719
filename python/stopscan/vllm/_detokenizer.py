from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stopscan import StopScanner
from stopscan.vllm._pieces import Decoder
from stopscan.vllm._regions import HiddenRegions

if TYPE_CHECKING:
    from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer

# In code points. Text is joined as it comes, because a list of its pieces takes five times the memory; block by block,
# because adding to one string copies all of it for each token.
BLOCK = 1024


class ScanningDetokenizer:
    """One of vLLM's detokenizers as the engine sees it: its token ids, its own text or the same one, and our stops."""

    def __init__(
        self,
        inner: BaseIncrementalDetokenizer,
        decoder: Decoder,
        scanner: StopScanner,
        hidden: HiddenRegions | None,
        *,
        trims: bool,
    ) -> None:
        self._inner = inner
        self._token_ids = inner.token_ids
        self._decoder = decoder
        self._scanner = scanner
        self._hidden = hidden
        self._trims = trims
        self._scan = scanner.feed if hidden is None and not inner.min_tokens else self._scan_with_care
        self._blocks: list[str] = []
        self._newest = ""

    @property
    def output_token_ids(self) -> list[int]:
        token_ids: list[int] = self._inner.output_token_ids
        return token_ids

    def num_output_tokens(self) -> int:
        count: int = self._inner.num_output_tokens()
        return count

    def update(self, new_token_ids: Sequence[int], stop_terminated: bool) -> str | None:
        """The text of the stop that fired, or ``None``. The tokens after the one that completes it are dropped."""
        stop_token: Sequence[int] = ()
        if stop_terminated and not self._inner.include_stop_str_in_output:
            new_token_ids, stop_token = new_token_ids[:-1], new_token_ids[-1:]
        token_ids, decoder, newest = self._token_ids, self._decoder, self._newest
        tokens = iter(new_token_ids)
        for token_id in tokens:
            token_ids.append(token_id)
            delta = decoder.at_once(token_id)
            newest += self._scan(decoder.decode(token_id) if delta is None else delta)
            if (match := self._scanner.match) is not None:
                self._newest = newest
                # Before 0.32, vLLM keeps the logprobs of the tokens behind a stop, and so their ids.
                token_ids.extend(() if self._trims else [*tokens, *stop_token])
                return match.sequence
        token_ids.extend(stop_token)
        if len(newest) > BLOCK:
            self._blocks.append(newest)
            newest = ""
        self._newest = newest
        return None

    def _scan_with_care(self, delta: str) -> str:
        inner = self._inner
        if self._hidden is not None and self._hidden.cover(inner.token_ids):
            return self._scanner.bypass(delta)
        return self._scanner.feed(delta, armed=inner.num_output_tokens() > inner.min_tokens)

    def get_next_output_text(self, finished: bool, delta: bool) -> str:
        """The safe text since the last call, or all of it; a request keeps to one of the two."""
        if finished:
            self._newest += self._scanner.flush()
        text = "".join([*self._blocks, self._newest]) if self._blocks else self._newest
        if delta:
            self._newest = ""
            if self._blocks:
                self._blocks.clear()
        return text
