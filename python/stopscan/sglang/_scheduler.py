"""In the scheduler: which token ends a request, and what the detokenizer is told of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from stopscan._engine.options import PREFIX
from stopscan.sglang._everywhere import Everywhere
from stopscan.sglang._requests import KEY, Requests
from stopscan.sglang._spec import Spec
from stopscan.tokens import TokenScanner

PROMPT_TOKENS = 8


class Watch:
    """The scanner of one request, how many ids it has read, and whether text came since the last message."""

    def __init__(self, spec: Spec, make: Callable[[Spec], TokenScanner | Everywhere]) -> None:
        self.spec = spec
        self._make = make
        self.fresh = False
        self.sent = False
        self._begin()

    def _begin(self) -> None:
        self.scanner = self._make(self.spec)
        self._feed = self.scanner.feed
        self.seen = 0

    def ends(self, ids: Sequence[int]) -> bool:
        """Whether the stream is over with the ids that are new. This is all that a step costs, so it is kept short."""
        size = len(ids)
        if self.seen > size:
            # Retraction of a request of embeddings begins anew.
            self._begin()
        while self.seen < size:
            if self._feed(ids[self.seen]):
                self.fresh = True
            self.seen += 1
            if self.scanner.finish is not None:
                return True
        return False


class Scheduler:
    """The hooks of the scheduler. No exception leaves them: it would end the whole server."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._compiler = ThreadPoolExecutor(1, "stopscan")

    def prepare(self, original: Callable[..., Any], scheduler: Any, req: Any, *args: Any, **options: Any) -> Any:
        """Around the queue's new requests: patterns are compiled beside the scheduler's loop, during the prefill."""
        try:
            params = req.sampling_params
            if params.stop_regex_strs or "stopscan_patterns" in (params.custom_params or {}):
                req._stopscan_ready = self._compiler.submit(self._made, req)
        except BaseException as error:
            self._requests.circuit.note(error, "goes on")
        return original(scheduler, req, *args, **options)

    def check(self, original: Callable[..., Any], req: Any, *args: Any, **options: Any) -> Any:
        """Around `Req._check_str_based_finish`: whether a stop has completed."""
        watch = req.__dict__.get("_stopscan")
        if watch is False:
            return original(req, *args, **options)
        try:
            if watch is None:
                watch = self._watch(req)
            if watch is not None:
                return watch.ends(req.output_ids) and self._report(req, watch, watch.seen)
        except ValueError as error:
            if watch is None:
                _abort(req, str(error), 400, "BadRequestError")
                return True
            self._fail(req, error)
        except BaseException as error:
            self._fail(req, error)
        return req.finished() or original(req, *args, **options)

    def confirm(self, original: Callable[..., Any], req: Any, *args: Any, **options: Any) -> Any:
        """Around `Req.update_finish_state`: the end of the text may confirm a pattern."""
        result = original(req, *args, **options)
        try:
            watch = req.finished_reason and req.__dict__.get("_stopscan")
            if watch and watch.scanner.finish is None and _confirms(req.finished_reason):
                watch.scanner.close("length")
                self._report(req, watch, req.finished_len or len(req.output_ids))
        except BaseException as error:
            self._fail(req, error)
        return result

    def waits(self, original: Callable[..., Any], req: Any, *args: Any, **options: Any) -> Any:
        """Around `Req.check_match_stop_str_prefix`: whether a message would bring no text."""
        watch = req.__dict__.get("_stopscan")
        if not watch:
            return original(req, *args, **options)
        fresh, watch.fresh = watch.fresh, False
        return not fresh

    def send(self, original: Callable[..., Any], streamer: Any, *args: Any, **options: Any) -> Any:
        """Around `to_payload`: the first message of a request brings its spec."""
        try:
            rows: list[Spec | None] | None = None
            for place, req in enumerate(streamer.output_reqs):
                watch = req.__dict__.get("_stopscan")
                if watch and not watch.sent:
                    rows = rows or [None] * len(streamer.output_reqs)
                    rows[place] = tuple(watch.spec)  # type: ignore[call-overload]
                    watch.sent = True
            if rows:
                streamer.customized_info[KEY] = rows
        except BaseException as error:
            self._requests.circuit.note(error, "goes on with sglang's own text")
        return original(streamer, *args, **options)

    def _watch(self, req: Any) -> Watch | None:
        ready: Future[Watch | None] | None = req.__dict__.pop("_stopscan_ready", None)
        watch = ready.result() if ready else self._made(req)
        # `False`: nothing for stopscan.
        req._stopscan = watch or False
        return watch

    def _made(self, req: Any) -> Watch | None:
        params = req.sampling_params
        if not self._requests.circuit.closed or req.tokenizer is None:
            return None
        thinks = bool(req.require_reasoning)
        spec = self._requests.spec(params, req.tokenizer, thinks=thinks, prompt_end=lambda: _prompt_end(req))
        if spec is None:
            return None
        prompt = list(req.origin_input_ids[-PROMPT_TOKENS:])
        vocabulary = self._requests.vocabulary(req.tokenizer)
        make = partial(Spec.scanner, vocabulary=vocabulary, prompt_token_ids=prompt)
        try:
            return Watch(spec, make)
        except ValueError:
            # A marker that `skip_special_tokens` hides in part: an error only for who asked for the regions.
            if not spec.protect or "stopscan_protect" in (params.custom_params or {}):
                raise
            spec = spec._replace(protect=(), graph=(), begins=())
            return Watch(spec, make)

    def _report(self, req: Any, watch: Watch, length: int) -> bool:
        from sglang.srt.managers import schedule_batch

        match = watch.scanner.match
        if match is None:
            return False
        if match.pattern is None:
            # sglang's APIs have no word for a loop, which has no stop of the user's.
            matched = match.sequence if match.period is None else None
            req.finished_reason = schedule_batch.FINISH_MATCHED_STR(matched=matched)
        else:
            req.finished_reason = schedule_batch.FINISHED_MATCHED_REGEX(matched=match.pattern)
        req.finished_len = length
        return True

    def _fail(self, req: Any, error: BaseException) -> None:
        """Gives a request back to sglang, or ends it where sglang cannot keep what it asks for."""
        watch = req.__dict__.get("_stopscan")
        req._stopscan = False
        beyond = _beyond(req.sampling_params) or bool(watch and (watch.spec.protect or watch.spec.repeat))
        self._requests.circuit.note(error, "ends with an error" if beyond else "goes on with sglang's own stops")
        if beyond and not req.finished():
            _abort(req, "stopscan failed in this request", 500, "InternalServerError")


def _abort(req: Any, message: str, status: int, kind: str) -> None:
    from sglang.srt.managers.schedule_batch import FINISH_ABORT

    req.finished_reason = FINISH_ABORT(message, status, kind)


def _beyond(params: Any) -> bool:
    """Whether sglang cannot keep what is asked; its own `stop_regex` leaks, and may take the whole server's time."""
    return bool(params.stop_regex_strs) or any(name.startswith(PREFIX) for name in params.custom_params or ())


def _confirms(reason: Any) -> bool:
    return reason.to_json().get("type") in ("stop", "length")


def _prompt_end(req: Any) -> str:
    return str(req.tokenizer.decode(list(req.origin_input_ids[-PROMPT_TOKENS:])))
