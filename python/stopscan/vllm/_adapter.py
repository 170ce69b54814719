"""Reads the stops of vLLM's requests, and decides which requests stopscan handles."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind, SamplingParams

from stopscan.engines import Defaults, Failures, Limits, StopOptions, read_options
from stopscan.regions import described
from stopscan.vllm._detokenizer import ScanningDetokenizer, arm
from stopscan.vllm._engine import Engine

# A name below `vllm`, so that vLLM's own handlers print the log.
logger = logging.getLogger("vllm.stopscan")

PREFIX = "stopscan_"
FIELDS = ("patterns", "visible_patterns", "max_held", "protect", "start_protected", "repeat", "default")
# With this option the HTTP route says which regions (reasoning, tool calls) it separates from the content. A client may
# send it, too, as the render routes hand it out: it is checked as all options, and concerns only its own request.
DEFAULT = f"{PREFIX}default"
# The largest number that `read_options` takes. No answer is longer.
MAX_COUNT = 2**31 - 1
# How many requests' options are kept.
MAX_KEPT = 256
# No limits, for requests of a program that calls vLLM directly. The limits are for the clients of a server.
UNLIMITED = Limits(*[2**62] * 4)


class UnfitError(RuntimeError):
    """Raised for an engine that stopscan cannot use."""


def refusal(words: str) -> Exception:
    """Returns ``words`` as vLLM's validation error. vLLM answers this error with a 400, but a ``ValueError`` with a
    500."""
    error: Exception = VLLMValidationError(words, parameter=words.split(" ", 1)[0].rstrip(":"))
    return error


class Adapter:
    """Holds the state of stopscan in this process: the defaults of requests, the engines, and the count of failures."""

    def __init__(self, defaults: Defaults, failures: Failures | None = None) -> None:
        self.renew(defaults, failures)
        self._engines: WeakValueDictionary[int, Engine] = WeakValueDictionary()
        self._read_before: dict[str | None, StopOptions] = {}
        # The class of the parser of a server's chat routes, and the name of the server's tool parser.
        self._parser: Any = None
        self._tool_parser: str | None = None

    def renew(self, defaults: Defaults, failures: Failures | None = None, *, optional: bool = False) -> None:
        """Replaces the defaults, and forgets earlier failures. If stopscan cannot use an engine, the engine runs
        without stopscan if ``optional`` is true, and does not start otherwise."""
        self.defaults, self.failures, self.optional = defaults, failures or Failures(logger), optional

    def engine_made(self, _: None, processor: Any, vllm_config: Any, *args: Any, **options: Any) -> None:
        """Runs after ``InputProcessor.__init__``, and makes the ``Engine``. This is the only place where the process
        that detokenizes has both an engine's configuration and its tokenizer."""
        name = "unreadable in vLLM's configuration"
        try:
            name = vllm_config.structured_outputs_config.reasoning_parser or ""
            if (tokenizer := processor.tokenizer) is not None:
                engine = Engine(tokenizer, name, self._tool_parser)
                engine.vocabulary  # noqa: B018 - slow, so made before the first request
                self._engines.pop(id(tokenizer), None)  # so that the newest engine comes last
                # The processor keeps the engine alive: `_engines` has only a weak reference.
                self._engines[id(tokenizer)] = processor.stopscan = engine
                self._say(engine)
        except Exception as error:
            said = f"stopscan cannot use the engine (reasoning parser: {name or 'none'}): {error!r}"
            raise UnfitError(said) from error

    def parser_made(self, parser: Any, _: Any, tool_parser_name: Any = None, *args: Any, **options: Any) -> None:
        """Runs after ``ParserManager.get_parser``, from which a server gets the parser of its chat routes. Notes the
        parser, and tells each ``Engine`` the name of the tool parser."""
        self._parser = parser
        self._tool_parser = tool_parser_name if getattr(parser, "tool_parser_cls", None) else None
        for engine in [*self._engines.values()]:
            engine.know(self._tool_parser)
            self._say(engine)

    def _say(self, engine: Engine) -> None:
        if (known := described(engine.graph)) != engine.said:
            engine.said = known
            logger.info("stopscan finds the stops; known regions and their opening markers: %s", known)

    def params_made(self, params: Any, request: Any, *args: Any, **options: Any) -> None:
        """Runs after ``to_sampling_params`` of a chat request, and notes the regions that the route separates from
        the content. Raises vLLM's validation error for an invalid request now, because vLLM cannot answer with a 400
        after a stream has begun."""
        if self._concerns(params):
            engine = self._newest()
            if engine and (told := engine.told_apart(self._parser, request.tool_choice)):
                params.extra_args = {**(params.extra_args or {}), DEFAULT: told}
            self._read(params, engine, self.defaults)

    def generate_called(self, _: Any, asked: Any, prompt: Any, sampling_params: Any, *args: Any, **more: Any) -> None:
        """Runs after ``AsyncLLM.generate`` has returned its generator, but before the generator runs. Checks the
        request, because some routes do not run ``params_made``."""
        if isinstance(sampling_params, SamplingParams) and self._concerns(sampling_params):
            engine = getattr(getattr(asked, "input_processor", None), "stopscan", None) or self._newest()
            self._read(sampling_params, engine, self.defaults, resumable=isinstance(prompt, AsyncGenerator))

    def _newest(self) -> Engine | None:
        return next(reversed([*self._engines.values()]), None)

    def request_made(self, state: Any, _: Any, tokenizer: Any, request: Any, *args: Any, **options: Any) -> None:
        """Runs after ``RequestState.from_new_request``, and makes the request's detokenizer find its stops with
        stopscan."""
        params, theirs = request.sampling_params, state.detokenizer
        if params is None or isinstance(theirs, ScanningDetokenizer) or not self._concerns(params):
            return
        # Requests without a queue come from a program that calls the engine directly, not from a server's client.
        defaults = self.defaults if state.queue is not None else replace(self.defaults, limits=UNLIMITED)
        # If vLLM's engine was made before stopscan was installed, make the `Engine` here, without the parsers of vLLM's
        # engine, which are unknown here.
        engine = None if tokenizer is None else self._engines.get(id(tokenizer)) or Engine(tokenizer)
        resumable = getattr(request, "resumable", False)
        asked: Any = self._read(params, engine, defaults, resumable=resumable)
        skipped = resumable or self.failures.off or not params.detokenize or not len(asked.stops)
        if engine is None or skipped:
            return
        told = self.defaults.protect is None and "reasoning" in asked.default
        if told and params.output_kind is RequestOutputKind.DELTA and engine.ended(request):
            # vLLM's streams take all of an answer for content if the prompt has ended a reasoning.
            asked = replace(asked, default=tuple(name for name in asked.default if name != "reasoning"))
        stops = engine.stops(asked)
        # Whether the request asks for something that vLLM cannot do. (If the whole answer is a call, no stop fires in
        # it, so `stops` has fewer stops than the request.)
        patterns = stops.patterns or stops.visible_patterns
        beyond = bool(patterns or stops.repeat or stops.regions or stops.protect or len(stops) < len(asked.stops))
        # In stopscan, the stop "abc" never fires if "b" is also a stop, because "b" fires first. In vLLM "abc" can
        # fire, because vLLM ignores a stop that completes within `min_tokens`, such as this "b". So leave a request
        # with such stops to vLLM.
        if not beyond and params.min_tokens and any(stops.find(stop[:-1]) for stop in stops.stop):
            return
        try:
            scanner, hidden = engine.scanner(theirs, request, asked, stops)
            arm(theirs, scanner, made_of=(tokenizer, request), failures=self.failures, hidden=hidden, beyond=beyond)
            if beyond:
                _report_end(state, theirs)
        except BaseException as error:
            self.failed(error, beyond=beyond)

    def failed(self, error: BaseException, *, beyond: bool) -> None:
        """Notes a failure of stopscan in a new request. Refuses the request if it asks for something that vLLM cannot
        do (``beyond``). Otherwise leaves the request to vLLM."""
        self.failures.note(error, "was refused" if beyond else "was left to vLLM's own stops")
        if beyond:
            raise refusal(f"stop: stopscan failed: {error!r}") from error

    def _concerns(self, params: Any) -> bool:
        return bool(params.stop or params.extra_args or self.defaults.repeat)

    def _options(self, params: Any, defaults: Defaults) -> StopOptions:
        """Returns the options of a request: of all its fields that reach a scanner. They are kept, because vLLM's hooks
        see copies of one request."""
        given, least, shown = (
            params.extra_args or {},
            min(params.min_tokens, MAX_COUNT),
            params.include_stop_str_in_output,
        )
        key = None
        with suppress(RecursionError, ValueError, AttributeError):  # what a client has nested too deeply; huge numbers
            ours = [each for each in given.items() if str(each[0]).startswith(PREFIX)]
            key = repr((params.stop, least, shown, ours, defaults))
        if (kept := self._read_before.get(key)) is not None:
            return kept
        own = {"stop": _reportable(params.stop or ()) or None, "min_tokens": least, "include_stop": shown}
        asked = read_options(given, defaults, prefix=PREFIX, fields=FIELDS, own=own)
        if key is not None:
            if len(self._read_before) >= MAX_KEPT:
                self._read_before.clear()
            self._read_before[key] = asked
        return asked

    def _read(self, params: Any, engine: Engine | None, defaults: Defaults, *, resumable: bool = False) -> StopOptions:
        """Returns the options of a request, after a check with the engine's regions.

        Raises vLLM's validation error for an invalid request. vLLM answers this error with a 400 if the response has
        not begun.
        """
        given = params.extra_args or {}
        try:
            asked = self._options(params, defaults)
        except ValueError as error:
            raise refusal(str(error)) from None
        ours = ("stopscan_patterns", "stopscan_visible_patterns", "stopscan_repeat")
        mine = next((name for name in ours if given.get(name)), "")
        if mine and (resumable or not params.detokenize):  # resumable: streaming input, several answers in one stream
            raise refusal(f"{mine} needs detokenize, and cannot be used with streaming input")
        if (mine or asked.protect) and self.failures.off:
            raise refusal(f"{mine or 'stopscan_protect'} is switched off, because stopscan failed repeatedly")
        try:
            if engine:
                engine.stops(asked)
        except ValueError as error:
            raise refusal(f"{PREFIX}{error}") from None
        return asked


def _report_end(state: Any, detokenizer: Any) -> None:
    """Makes the last output of a request report how the request ended. Call this only for a request with stops that
    vLLM does not know."""
    made = state._new_completion_output

    def last_output(token_ids: Any, finish_reason: Any, *rest: Any, **more: Any) -> Any:
        detokenizer.end_confirms = str(finish_reason) not in ("abort", "error")
        output = made(token_ids, finish_reason, *rest, **more)
        if finish_reason is not None:
            detokenizer.report(output)
        return output

    state._new_completion_output = last_output


def _reportable(stops: Sequence[str]) -> list[str]:
    """Returns the stops that vLLM can report: if several complete at one character, vLLM reports the first in the list.

    A stop is left out if it ends with an earlier stop of the list, such as "xEND" after "END": whenever "xEND"
    completes, "END" also completes. If one of the remaining stops ends with another, the longer one is earlier in
    the list. So stopscan, which reports the longest, reports the same stop as vLLM.
    """
    first = {stop: place for place, stop in reversed([*enumerate(stops)])}
    lengths = {*map(len, stops)}
    return [stop for place, stop in enumerate(stops)
            if not any(first.get(stop[-size:], place) < place for size in lengths if size <= len(stop))]  # fmt: skip
