"""In the scheduler: which token ends a request, and what the detokenizer is told of it."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from functools import cache, partial
from http import HTTPStatus
from logging import getLogger
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_MATCHED_STR, FINISHED_MATCHED_REGEX

from stopscan.engines import Failures
from stopscan.sglang._guard import Refused
from stopscan.sglang._requests import Requests, beyond
from stopscan.sglang._spec import Spec
from stopscan.tokens import Vocabulary

logger = getLogger("sglang.stopscan")

# In a request's `customized_info`, which sglang sends along with its tokens, and its routers split by row.
KEY = "__stopscan"


class Scheduler:
    """The hook of the scheduler, which gives requests with stops a class of their own. The others stay sglang's."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        # Sets are compiled beside the scheduler's loop, during the prefill.
        self._maker = ThreadPoolExecutor(1, "stopscan")
        self._said = False

    def queued(self, scheduler: Any, req: Any, *args: Any, **options: Any) -> Generator[None, Any, None]:
        """Around the queue of new requests. One that is retracted comes again."""
        if req.tokenizer is not None and not isinstance(req, Stopping):
            if not self._said:
                self._said = True
                regions = self._requests.model(req.tokenizer).regions()
                logger.info("stopscan finds the stops; the regions that it knows, and what begins them: %s", regions)
            params = req.sampling_params
            if self._requests.concerns(params.stop_strs, params.stop_regex_strs, params.custom_params):
                req.stopscan = Stops(self._maker.submit(self._made, req), self._requests.failures)
                theirs: Any = type(req)
                req.__class__ = _stopping(theirs)
        yield

    def _made(self, req: Any) -> tuple[Spec, Any, Any] | None:
        prompt, thinks = list(req.origin_input_ids), bool(req.require_reasoning)
        spec = self._requests.spec(req.sampling_params, req.tokenizer, prompt, thinks=thinks)
        if spec is None:
            return None
        make = partial(spec.scanner, Vocabulary(req.tokenizer))
        return spec, make, make()


class Stops:
    """The stops of one request in the scheduler."""

    def __init__(self, made: Future[Any], failures: Failures) -> None:
        self._made: Future[Any] | None = made
        self._failures = failures
        self._theirs: Any = None
        self.spec: Spec | None = None
        # `None` before the first token, for a request without stops, and after a fault of ours.
        self.scanner: Any = None
        # Whether text came since the last message.
        self.fresh = False

    def end(self, req: Any) -> bool:
        """Whether the text is over with the ids that are new. This is all that a step costs, so it is kept short."""
        if self.scanner is None and not self._begin(req):
            return False
        ids = req.output_ids
        size = min(req.sampling_params.max_new_tokens, len(ids))
        if self.seen > size:  # retraction of a request of embeddings begins anew
            self._restart(self._make())
        while self.seen < size:
            if self._feed(ids[self.seen]):
                self.fresh = True
            self.seen += 1
            if self.scanner.finish is not None:
                return True
        return False

    def _begin(self, req: Any) -> bool:
        made, self._made = self._made.result() if self._made else None, None
        if made is None:
            return False
        self.spec, self._make, scanner = made
        self._restart(scanner)
        # sglang is to look for none of them, and sends the spec along with the first tokens.
        self._theirs, req.sampling_params = req.sampling_params, copy(req.sampling_params)
        req.sampling_params.stop_strs, req.sampling_params.stop_regex_strs = [], []
        req.customized_info = {**(req.customized_info or {}), KEY: [tuple(self.spec)]}
        return True

    def _restart(self, scanner: Any) -> None:
        self.scanner, self._feed, self.seen = scanner, scanner.feed, 0

    def settle(self, req: Any) -> None:
        """Behind sglang's own look at a request: says which stop ended it, if no other end came before."""
        scanner, reason = self.scanner, req.finished_reason
        if scanner is None or (reason is not None and reason.to_json()["type"] not in ("stop", "length")):
            return
        last = len(req.output_ids) if req.finished_len is None else req.finished_len
        if scanner.finish is None:
            scanner.flush("length")  # the end of the text may confirm a pattern
            self.seen = last
        match = scanner.match
        if match is not None and self.seen <= last:
            # sglang's APIs have no word for a loop, which has no stop of the user's.
            literal = FINISH_MATCHED_STR(matched=None if match.period else match.sequence)
            pattern = match.pattern
            req.finished_reason = literal if pattern is None else FINISHED_MATCHED_REGEX(matched=pattern)
            req.finished_len = self.seen

    def failed(self, req: Any, error: BaseException) -> bool:
        """Gives a request back to sglang, or ends it where sglang cannot keep what it asks for."""
        self.scanner = self._made = None
        req.sampling_params, self._theirs = self._theirs or req.sampling_params, None
        if isinstance(error, Refused):
            req.finished_reason = FINISH_ABORT(str(error), error.status, "BadRequestError")
            return False
        params = req.sampling_params
        ends = beyond(params.stop_regex_strs, params.custom_params) or (self.spec is not None and self.spec.beyond)
        if ends:
            words = "stopscan failed in this request"
            req.finished_reason = FINISH_ABORT(words, HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError")
        self._failures.note(error, "ends with an error" if ends else "goes on with sglang's own stops")
        return False


class Stopping:
    """In front of sglang's class of a request: its stops are found by stopscan. No exception of ours leaves it."""

    def update_finish_state(self: Any, new_accepted_len: int = 1) -> None:
        if self.finished() or self.to_finish:
            super().update_finish_state(new_accepted_len)  # type: ignore[misc]
            return
        stops = self.stopscan
        try:
            ended = stops.end(self)
        except BaseException as error:
            ended = stops.failed(self, error)
        super().update_finish_state(new_accepted_len)  # type: ignore[misc]
        if ended or self.finished_reason is not None:
            try:
                stops.settle(self)
            except BaseException as error:
                stops.failed(self, error)
                super().update_finish_state(new_accepted_len)  # type: ignore[misc]

    def check_match_stop_str_prefix(self: Any) -> bool:
        """Whether a message would bring no text."""
        stops = self.stopscan
        if stops.scanner is None:
            return bool(super().check_match_stop_str_prefix())  # type: ignore[misc]
        fresh, stops.fresh = stops.fresh, False
        return not fresh


@cache
def _stopping(theirs: type) -> type:
    """The class of requests that are as ``theirs``, but for their stops."""
    return type(f"Stopping{theirs.__name__}", (Stopping, theirs), {})
