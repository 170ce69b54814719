from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stopscan import StopScanner
from stopscan.vllm._regions import HiddenRegions

if TYPE_CHECKING:
    from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer

# In code points. Text is joined as it comes, because a list of its pieces takes five times the memory; block by block,
# because adding to one string copies all of it for each token.
BLOCK = 1024


class ScanningDetokenizer:
    """One of vLLM's detokenizers as the engine sees it: its own decoding and token ids, and our stops."""

    def __init__(
        self,
        inner: BaseIncrementalDetokenizer,
        scanner: StopScanner,
        hidden: HiddenRegions | None = None,
        *,
        trims: bool = True,
    ) -> None:
        self._inner = inner
        self._scanner = scanner
        self._hidden = hidden
        self._trims = trims
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
        inner = self._inner
        stop_token = new_token_ids[-1:] if stop_terminated and not inner.include_stop_str_in_output else []
        for place, token_id in enumerate(new_token_ids[:-1] if stop_token else new_token_ids, 1):
            inner.token_ids.append(token_id)
            self._add(self._scan(inner.decode_next(token_id)))
            if (match := self._scanner.match) is not None:
                # Before 0.32, vLLM keeps the logprobs of the tokens behind a stop, and so their ids.
                inner.token_ids.extend(() if self._trims else new_token_ids[place:])
                return match.sequence
        inner.token_ids.extend(stop_token)
        return None

    def _scan(self, delta: str) -> str:
        inner = self._inner
        if self._hidden is not None and self._hidden.cover(inner.token_ids):
            return self._scanner.bypass(delta)
        armed = not inner.min_tokens or inner.num_output_tokens() > inner.min_tokens
        return self._scanner.feed(delta, armed=armed)

    def _add(self, safe: str) -> None:
        self._newest += safe
        if len(self._newest) > BLOCK:
            self._blocks.append(self._newest)
            self._newest = ""

    def get_next_output_text(self, finished: bool, delta: bool) -> str:
        """The safe text since the last call, or all of it; a request keeps to one of the two."""
        if finished:
            self._add(self._scanner.flush())
        text = "".join([*self._blocks, self._newest])
        if delta:
            self._blocks.clear()
            self._newest = ""
        return text
