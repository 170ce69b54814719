from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stopscan import StopScanner
from stopscan.vllm._options import Pairs, protection, stop_set
from stopscan.vllm._regions import first_region, skipped_ids

if TYPE_CHECKING:
    from vllm.tokenizers import TokenizerLike
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer, IncrementalDetokenizer


class ScanningDetokenizer:
    """One of vLLM's detokenizers as the engine sees it: its own decoding and token ids, and our stops."""

    def __init__(
        self, inner: BaseIncrementalDetokenizer, scanner: StopScanner, regions: Mapping[int, int], closing: int | None
    ) -> None:
        self._inner = inner
        self._scanner = scanner
        # Regions that the text does not show: the id that closes each by the id that opens it, and the open one's.
        self._regions = regions
        self._closing = closing
        # A list, because vLLM's way, `text += piece`, copies the whole text for each token.
        self._safe: list[str] = []

    @property
    def output_token_ids(self) -> list[int]:
        token_ids: list[int] = self._inner.output_token_ids
        return token_ids

    def num_output_tokens(self) -> int:
        count: int = self._inner.num_output_tokens()
        return count

    def update(self, new_token_ids: list[int], stop_terminated: bool) -> str | None:
        """The stop that fired, or ``None``. The tokens after the one that completes it are dropped."""
        inner = self._inner
        stop_token = new_token_ids[-1:] if stop_terminated and not inner.include_stop_str_in_output else []
        for token_id in new_token_ids[:-1] if stop_token else new_token_ids:
            inner.token_ids.append(token_id)
            if safe := self._scan(token_id, inner.decode_next(token_id)):
                self._safe.append(safe)
            if (match := self._scanner.match) is not None:
                return match.sequence
        inner.token_ids.extend(stop_token)
        return None

    def _scan(self, token_id: int, delta: str) -> str:
        if self._closing is not None:
            if token_id == self._closing:
                self._closing = None
            return self._scanner.bypass(delta)
        if token_id in self._regions:
            self._closing = self._regions[token_id]
            return self._scanner.bypass(delta)
        armed = not self._inner.min_tokens or self._inner.num_output_tokens() > self._inner.min_tokens
        return self._scanner.feed(delta, armed=armed)

    def get_next_output_text(self, finished: bool, delta: bool) -> str:
        """The safe text since the last call, or all of it; a request keeps to one of the two."""
        if finished:
            self._safe.append(self._scanner.flush())
        text = "".join(self._safe)
        self._safe = [] if delta else [text]
        return text


def scanning(
    detokenizer: IncrementalDetokenizer, tokenizer: TokenizerLike, request: EngineCoreRequest, default: Pairs = ()
) -> IncrementalDetokenizer | ScanningDetokenizer:
    """``detokenizer`` with its stops found by stopscan, or itself if it has none.

    ``default`` are the regions of a request that names none; a stop of the request wins over an equal marker of theirs.
    """
    params = request.sampling_params
    protect, start_protected = protection(params.extra_args, default)
    if isinstance(detokenizer, ScanningDetokenizer) or not params.stop:
        return detokenizer
    if protect is None:
        protect = tuple(pair for pair in default if not set(pair) & set(params.stop))
    opened = first_region(tokenizer, request.prompt_token_ids, protect, start_protected)
    if opened is not None:
        protect = (opened, *(pair for pair in protect if pair != opened))
    skipped = skipped_ids(tokenizer, protect) if params.skip_special_tokens else {}
    scanner = StopScanner(
        stop_set(params.stop, tuple(pair for pair in protect if pair not in skipped)),
        include_stop=params.include_stop_str_in_output,
        start_protected=opened is not None and opened not in skipped,
    )
    closing = skipped[opened][1] if opened in skipped else None
    return ScanningDetokenizer(detokenizer, scanner, dict(skipped.values()), closing)
