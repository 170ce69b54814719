"""The hook of the scheduler process: makes the text of each token of a request with stops, and finds the token that
ends the request."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from functools import cache
from http import HTTPStatus
from logging import getLogger
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_MATCHED_STR, FINISHED_MATCHED_REGEX

from stopscan.engines import Failures
from stopscan.regions.shared import describe
from stopscan.sglang._guard import Refused
from stopscan.sglang._requests import LAST_TOKENS, Requests, beyond

logger = getLogger("sglang.stopscan")

# The key in a request's `customized_info` for the list of its tokens' texts. sglang sends each text with its token.
# When sglang divides a batch among its processes, it also divides this list.
KEY = "__stopscan"


class Scheduler:
    """The hook of the scheduler. It changes the class of each request with stops, and leaves other requests alone."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        # Compiles the sets in a thread, during the prefill, so that the scheduler's loop does not wait.
        self._maker = ThreadPoolExecutor(1, "stopscan")
        self._logged = False

    def queued(self, scheduler: Any, req: Any, *args: Any, **options: Any) -> Generator[None, Any, None]:
        """Wraps `_add_request_to_queue`. If a request can have stops, changes its class, so that stopscan finds them. A
        request that sglang queues again after a pause (a "retraction") already has this class, and stays as it is."""
        if req.tokenizer is not None and not isinstance(req, Stopping):
            if not self._logged:
                self._logged = True
                regions = describe(self._requests.model(req.tokenizer).checkpoint.graph)
                logger.info("stopscan finds the stops; known regions and their opening markers: %s", regions)
            params = req.sampling_params
            if self._requests.concerns(params):
                req.stopscan = Stops(self._maker.submit(self._requests.scanner, req), self._requests.failures)
                cls: Any = type(req)
                req.__class__ = _stopping(cls)
        yield


class Stops:
    """The stops of one request: its scanner, and the texts of its tokens, which sglang sends with the tokens."""

    def __init__(self, made: Future[Any], failures: Failures) -> None:
        self.made: Future[Any] | None = made
        self._failures = failures
        self._own_params: Any = None
        self._beyond = False
        # While `_scanner` is `None`, sglang finds the stops. While `texts` is `None`, sglang also makes the text.
        self._scanner: Any = None
        self.texts: list[str] | None = None

    def begin(self, req: Any) -> None:
        """Takes the stops of a request away from sglang, if the request has a scanner."""
        made, self.made = self.made, None
        scanning = made.result() if made else None
        if scanning is None:
            return
        self._scanner, self._beyond, added = scanning
        self._own_params, req.sampling_params = req.sampling_params, copy(req.sampling_params)
        req.sampling_params.stop_strs, req.sampling_params.stop_regex_strs = added, []
        self.texts = []
        req.customized_info = {**(req.customized_info or {}), KEY: self.texts}

    def read(self, req: Any) -> None:
        """Reads the new tokens, and ends the request at a stop. If sglang has found an end, the tokens after this end
        are not read. Runs in each step, so it is kept short."""
        scanner, texts, ids = self._scanner, self.texts, req.output_ids
        last = len(ids) if req.finished_len is None else req.finished_len
        if texts is None:
            return
        if scanner is None:
            texts += [""] * (last - len(texts))
            if req.finished() and not isinstance(req.finished_reason, FINISH_ABORT):
                self._close(req, self._decoded(req, ids[:last]))
            return
        if len(texts) > last:  # a paused request with input embeddings starts again at its first token
            texts.clear()
            scanner.reset()
        while (finish := scanner.finish) is None and len(texts) < last:
            texts.append(scanner.feed(ids[len(texts)]))
        if finish is not None or req.finished_reason is not None:
            self._end(req, scanner, texts)

    def _end(self, req: Any, scanner: Any, texts: list[str]) -> None:
        """Ends a request: sets its text and its finish reason. Called if a stop has fired, or if sglang has ended the
        request. In the second case, the end of the text may complete the match of a pattern such as `END$`."""
        aborted = isinstance(req.finished_reason, FINISH_ABORT)
        if scanner.finish is None and texts:
            texts[-1] += scanner.flush("abort" if aborted else "length")
        match = scanner.match
        if match is None or aborted:
            self._close(req, "".join(texts))
            return
        # sglang's APIs have no word for a loop (`repeat`). So a loop is reported as a stop without a text: `None`.
        literal = FINISH_MATCHED_STR(matched=None if match.period else match.sequence)
        pattern = match.pattern
        req.finished_reason = literal if pattern is None else FINISHED_MATCHED_REGEX(matched=pattern)
        req.finished_len = len(texts)

    def _close(self, req: Any, whole: str) -> None:
        """Sets the text that is still to be sent: the part of ``whole`` after the text that was sent. ``whole`` is the
        whole text of the request. If sglang found a stop string, the text ends at this stop."""
        matched, sent = req.finished_reason.to_json().get("matched"), req.send_token_offset
        begin = whole.find(matched) if isinstance(matched, str) else -1
        end = len(whole) if begin < 0 else begin + len(matched) * req.sampling_params.no_stop_trim
        self.texts[sent:] = [whole[len("".join(self.texts[:sent])) : end]]  # type: ignore[index]

    def _decoded(self, req: Any, ids: Any) -> str:
        """Returns the text as sglang makes it, for a request that was given back to sglang after a failure."""
        params = req.sampling_params
        if isinstance(req.finished_reason.to_json().get("matched"), int) and not params.no_stop_trim:
            ids = ids[:-1]
        before = list(req.origin_input_ids[-LAST_TOKENS:])
        shown = {name: getattr(params, name) for name in ("skip_special_tokens", "spaces_between_special_tokens")}
        prompt, whole = (req.tokenizer.decode(part, **shown) for part in (before, [*before, *ids]))
        return str(whole[len(prompt) :])

    def failed(self, req: Any, error: BaseException) -> None:
        """Called after a failure of stopscan. Gives the request back to sglang, or ends the request with an error if it
        asks for something that sglang cannot do."""
        given_back, self._scanner, self.made = self._own_params is not None and self._scanner is None, None, None
        params = req.sampling_params = self._own_params or req.sampling_params
        if isinstance(error, Refused):
            req.finished_reason = FINISH_ABORT(str(error), error.status, "BadRequestError")
            return
        outcome = "goes on with sglang's own stops"
        if given_back or isinstance(req.finished_reason, FINISH_ABORT):
            outcome = "may lack the end of its text"
        elif self._beyond or beyond(params):
            outcome, status = "ends with an error", HTTPStatus.INTERNAL_SERVER_ERROR
            req.finished_reason = FINISH_ABORT("stopscan failed in this request", status, "InternalServerError")
        else:  # `update_finish_state` then reads this step again, with sglang's own search for stops
            req.finished_reason = req.finished_len = None
        self._failures.note(error, outcome, "stream")


class Stopping:
    """A mixin for sglang's class of a request, with which stopscan finds the stops. A failure of stopscan does not
    reach sglang."""

    _update: Any  # sglang's `update_finish_state`, kept here because a call through `super()` takes a seventh longer

    def update_finish_state(self: Any, new_accepted_len: int = 1) -> None:
        if self.finished_reason is not None:
            return
        stops = self.stopscan
        if stops.made is not None:
            self._tried(stops.begin)
        self._update(new_accepted_len)
        if not self._tried(stops.read):
            self._update(new_accepted_len)
            self._tried(stops.read)

    def _tried(self: Any, step: Any) -> bool:
        try:
            step(self)
        except BaseException as error:
            self.stopscan.failed(self, error)
            return False
        return True

    def check_match_stop_str_prefix(self: Any) -> bool:
        """Returns whether an output that is sent now would have no new text. If so, sglang sends nothing yet."""
        texts = self.stopscan.texts
        waits = texts is not None and not any(texts[self.send_token_offset :])
        return waits or bool(super().check_match_stop_str_prefix())  # type: ignore[misc]


@cache
def _stopping(cls: Any) -> type:
    """Returns a subclass of ``cls``, sglang's class of a request. The subclass finds stops with stopscan."""
    return type(f"Stopping{cls.__name__}", (Stopping, cls), {"_update": cls.update_finish_state})
