from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stopscan._engine.circuit import Circuit
from stopscan.vllm._way_back import Ended, Theirs

if TYPE_CHECKING:
    from vllm.outputs import CompletionOutput
    from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer

    from stopscan import StopMatch
    from stopscan.tokens import TokenScanner

# In code points. Text is joined as it comes, because a list of its pieces takes five times the memory; block by block,
# because adding to one string copies all of it for each token.
BLOCK = 1024

# vLLM's own words where its `repetition_detection` ends an answer.
LOOP = ("repetition", "repetition_detected")


class ScanningDetokenizer:
    """A ``TokenScanner`` as vLLM's engine sees a detokenizer, with the token ids of vLLM's own, ``inner``.

    What fails here ends in ``_after``, which answers from then on: vLLM's own detokenizer where ``remake`` makes one
    that can keep the request's stops, or else an error for this request alone.
    """

    def __init__(
        self,
        inner: BaseIncrementalDetokenizer,
        scanner: TokenScanner,
        circuit: Circuit,
        remake: Callable[[int], Any] | None,
        *,
        trims: bool,
    ) -> None:
        self._inner = inner
        self._token_ids = inner.token_ids
        self._scanner = scanner
        self._feed = scanner.feed
        self._circuit = circuit
        self._remake = remake
        self._trims = trims
        self._include_stop = inner.include_stop_str_in_output
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

    def update(self, new_token_ids: Sequence[int], stop_terminated: bool) -> str | None:
        """The text of the stop that fired, or ``None``. The tokens after the one that completes it are dropped."""
        if self._after is not None:
            return self._after.update(new_token_ids, stop_terminated)
        token_ids, scanner, scanned = self._token_ids, self._scanner, new_token_ids
        if stop_terminated:
            self._stop_terminated = True
            if not self._include_stop:
                scanned = new_token_ids[:-1]
        before = len(token_ids)
        try:
            for token_id in scanned:
                token_ids.append(token_id)
                try:
                    self._newest += self._feed(token_id)
                except ValueError:
                    self._count(token_id)
                # A stop alone ends this scanner, and its finish is sooner read than its match.
                if scanner.finish is not None and scanner.match is not None:
                    return self._stopped(scanner.match, new_token_ids[len(token_ids) - before :])
            if scanned is not new_token_ids:
                token_ids.append(new_token_ids[-1])
            if len(self._newest) > BLOCK:
                self._blocks.append(self._newest)
                self._newest = ""
            return None
        except BaseException as error:
            del token_ids[before:]
            after = self._fail(error, stop_terminated=False)
        return after.update(new_token_ids, stop_terminated)

    def _count(self, token_id: int) -> None:
        """Counts an id without a token, which a native vocabulary refuses: models have more ids than tokenizers."""
        if self._inner.tokenizer.id_to_token(token_id) is not None:
            raise
        scanner: Any = self._scanner
        scanner._count()

    def _stopped(self, match: StopMatch, behind: Sequence[int]) -> str:
        """What ``match`` is called, with the token ids ``behind`` it where vLLM keeps them."""
        self._cut = match.end if self._include_stop else match.offset
        # Before 0.32, vLLM keeps the logprobs of the tokens behind a stop, and so their ids.
        if not self._trims:
            self._token_ids.extend(behind)
        return match.sequence

    def get_next_output_text(self, finished: bool, delta: bool) -> str:
        """The safe text since the last call, or all of it; a request keeps to one of the two."""
        if self._after is not None:
            return self._after.get_next_output_text(finished, delta)
        try:
            text = self._newest
            if finished:
                # vLLM drops half a character at the end.
                text += self._scanner.close("length" if self.end_confirms else "abort").rstrip("\ufffd")
            if self._blocks:
                text = "".join([*self._blocks, text])
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
        return after.get_next_output_text(finished, delta)

    def report(self, output: CompletionOutput) -> None:
        """Writes into a finished ``output`` how it ended, where vLLM cannot know: a loop, a pattern at the end."""
        try:
            if self._after is None and (match := self._scanner.match) is not None:
                output.finish_reason, output.stop_reason = LOOP if match.period else ("stop", match.sequence)
        except BaseException as error:
            self._fail(error, stop_terminated=False)
        if self._after is not None:
            self._after.report(output)

    def _fail(self, error: BaseException, *, stop_terminated: bool) -> Theirs | Ended:
        """What answers from now on, after ``error``: as if the step in which it came had not been."""
        if self._remake is None:
            self._circuit.note(error, "ends with an error, because vLLM has not its stops")
            self._after = Ended(self._inner, self._whole)
            return self._after
        self._circuit.note(error, "goes on with vLLM's stops")
        token_ids, count = self._inner.output_token_ids, self._inner.num_output_tokens()
        theirs = self._remake(count)
        self._after = Theirs(theirs, token_ids, stop_terminated, given=self._given, whole=self._whole, cut=self._cut)
        return self._after
