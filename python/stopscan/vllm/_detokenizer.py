from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stopscan import StopScanner
from stopscan._engine.circuit import Circuit
from stopscan.vllm._decoder import Decoder
from stopscan.vllm._hidden import HiddenRegions
from stopscan.vllm._way_back import Ended, Theirs

if TYPE_CHECKING:
    from vllm.outputs import CompletionOutput
    from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer

# In code points. Text is joined as it comes, because a list of its pieces takes five times the memory; block by block,
# because adding to one string copies all of it for each token.
BLOCK = 1024


class ScanningDetokenizer:
    """One of vLLM's detokenizers as the engine sees it: its token ids, its own text or the same one, and our stops.

    What fails here ends in ``_after``, which answers from then on: vLLM's own detokenizer where ``remake`` makes one
    that can keep the request's stops, or else an error for this request alone.
    """

    def __init__(
        self,
        inner: BaseIncrementalDetokenizer,
        decoder: Decoder,
        scanner: StopScanner,
        hidden: HiddenRegions | None,
        circuit: Circuit,
        remake: Callable[[int], Any] | None,
        *,
        trims: bool,
    ) -> None:
        self._inner = inner
        self._token_ids = inner.token_ids
        self._decoder = decoder
        self._scanner = scanner
        self._hidden = hidden
        self._circuit = circuit
        self._remake = remake
        self._trims = trims
        self._scan = scanner.feed if hidden is None and not inner.min_tokens else self._scan_with_care
        self._blocks: list[str] = []
        self._newest = ""
        self._given = 0
        self._whole = ""
        self._stop_terminated = False
        # Where the answer ends, once a stop was reported.
        self._cut: int | None = None
        self._after: Theirs | Ended | None = None
        # Whether the end of the text confirms a pattern: every end does but an abort.
        self.end_confirms = True

    @property
    def output_token_ids(self) -> list[int]:
        token_ids: list[int] = (self._after or self._inner).output_token_ids
        return token_ids

    def num_output_tokens(self) -> int:
        count: int = (self._after or self._inner).num_output_tokens()
        return count

    def update(self, new_token_ids: Sequence[int], stop_terminated: bool, *rest: Any, **more: Any) -> str | None:
        """The text of the stop that fired, or ``None``. The tokens after the one that completes it are dropped."""
        if self._after is not None:
            return self._after.update(new_token_ids, stop_terminated, *rest, **more)
        before = len(self._token_ids)
        try:
            if rest or more:
                raise TypeError(f"vLLM calls update with {rest} and {more}")
            self._stop_terminated = stop_terminated
            stop_token: Sequence[int] = ()
            kept = new_token_ids
            if stop_terminated and not self._inner.include_stop_str_in_output:
                kept, stop_token = new_token_ids[:-1], new_token_ids[-1:]
            token_ids, decoder, newest = self._token_ids, self._decoder, self._newest
            tokens = iter(kept)
            for token_id in tokens:
                token_ids.append(token_id)
                delta = decoder.at_once(token_id)
                newest += self._scan(decoder.decode(token_id) if delta is None else delta)
                if (match := self._scanner.match) is not None:
                    cut = match.end if self._inner.include_stop_str_in_output else match.offset
                    self._newest, self._cut = newest, cut
                    # Before 0.32, vLLM keeps the logprobs of the tokens behind a stop, and so their ids.
                    token_ids.extend(() if self._trims else [*tokens, *stop_token])
                    return match.sequence
            token_ids.extend(stop_token)
            if len(newest) > BLOCK:
                self._blocks.append(newest)
                newest = ""
            self._newest = newest
            return None
        except BaseException as error:
            del self._token_ids[before:]
            after = self._fail(error, stop_terminated=False)
        return after.update(new_token_ids, stop_terminated, *rest, **more)

    def _scan_with_care(self, delta: str) -> str:
        inner = self._inner
        if self._hidden is not None and self._hidden.cover(inner.token_ids):
            return self._scanner.bypass(delta)
        return self._scanner.feed(delta, armed=inner.num_output_tokens() > inner.min_tokens)

    def get_next_output_text(self, finished: bool, delta: bool, *rest: Any, **more: Any) -> str:
        """The safe text since the last call, or all of it; a request keeps to one of the two."""
        if self._after is not None:
            return self._after.get_next_output_text(finished, delta, *rest, **more)
        try:
            if rest or more:
                raise TypeError(f"vLLM calls get_next_output_text with {rest} and {more}")
            newest = self._newest
            if finished:
                newest += self._scanner.flush() if self.end_confirms else self._scanner.held
            text = "".join([*self._blocks, newest]) if self._blocks else newest
            if delta:
                self._newest = ""
                self._given += len(text)
                if self._blocks:
                    self._blocks.clear()
            else:
                self._whole = text
            return text
        except BaseException as error:
            after = self._fail(error, stop_terminated=self._stop_terminated and self._cut is None)
        return after.get_next_output_text(finished, delta, *rest, **more)

    def report(self, output: CompletionOutput) -> None:
        """Writes into a finished ``output`` how it ended, where vLLM cannot know: a pattern that the end confirmed."""
        try:
            if self._after is None and (match := self._scanner.match) is not None:
                output.finish_reason, output.stop_reason = "stop", match.sequence
        except BaseException as error:
            self._fail(error, stop_terminated=False)
        if self._after is not None:
            self._after.report(output)

    def _fail(self, error: BaseException, *, stop_terminated: bool) -> Theirs | Ended:
        """What answers from now on, after ``error``: as if the step in which it came had not been."""
        outcome = (
            "ends with an error, because vLLM has not its stops"
            if self._remake is None
            else "goes on with vLLM's stops"
        )
        self._circuit.note(error, outcome)
        token_ids, count = self._inner.output_token_ids, self._inner.num_output_tokens()
        if self._remake is not None:
            theirs = self._remake(count)
            self._after = Theirs(
                theirs, token_ids, stop_terminated, given=self._given, whole=self._whole, cut=self._cut
            )
        else:
            self._after = Ended(self._inner, self._whole)
        return self._after

    def __getattr__(self, name: str) -> Any:
        """What vLLM reads of its detokenizers and ours has not: vLLM's own answer, from now on to everything."""
        if name.startswith("_"):
            raise AttributeError(name)
        after = self._after or self._fail(AttributeError(name), stop_terminated=self._stop_terminated)
        return getattr(after, name)
