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

from stopscan import StopSet
from stopscan.engines import Defaults, Failures, Limits, StopOptions, read_options
from stopscan.regions import Graph
from stopscan.regions.shared import describe
from stopscan.vllm._detokenizer import ScanningDetokenizer, arm
from stopscan.vllm._engine import Engine

# The name of the logger begins with `vllm.`, so that vLLM's own handlers print the log.
logger = logging.getLogger("vllm.stopscan")

PREFIX = "stopscan_"
FIELDS = ("patterns", "visible_patterns", "max_held", "protect", "start_protected", "repeat", "default")
# The options for stops that vLLM itself cannot find.
BEYOND = (f"{PREFIX}patterns", f"{PREFIX}visible_patterns", f"{PREFIX}repeat")
# The hook of a chat route stores in this option which regions the route separates from the content: the reasoning, the
# tool calls or both. A client can send the option too, so it is checked like all options.
SET_APART = f"{PREFIX}default"
# The ids of requests to chat routes begin with these texts. A client can choose an id with the same beginning, so an id
# decides only whether a warning is logged.
CHAT_IDS = ("chatcmpl-", "resp_")
# The largest number that `read_options` takes. No answer is longer.
MAX_COUNT = 2**31 - 1
# The cache has the options and stop sets of at most `MAX_KEPT` requests. Options with more than `MAX_KEPT_LENGTH`
# characters are not cached. Clients choose the options, so without these limits they could fill the memory.
MAX_KEPT, MAX_KEPT_LENGTH = 256, 1_024
# No limits, for requests of a program that calls vLLM directly. The limits on the stops, patterns and regions of a
# request are for the clients of a server.
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
        self._engines: WeakValueDictionary[int, Engine] = WeakValueDictionary()
        # `_parser`: the class of the parser of a server's chat routes. `_tool_parser`: the name of the server's tool
        # parser.
        self._parser: Any = None
        self._tool_parser: str | None = None
        self.renew(defaults, failures)

    def renew(self, defaults: Defaults, failures: Failures | None = None, *, optional: bool = False) -> None:
        """Replaces the defaults, and forgets earlier failures. If stopscan cannot be used with an engine, the engine
        does not start. With ``optional``, it starts without stopscan."""
        self.defaults, self.failures, self.optional = defaults, failures or Failures(logger), optional
        self._unlimited = replace(defaults, limits=UNLIMITED)
        self._kept: dict[Any, tuple[Graph | None, StopOptions, StopSet]] = {}
        self._warned = False

    # The next two hooks learn which tokenizer an engine has, and which parsers the engine and its server use

    def engine_made(self, _: None, processor: Any, vllm_config: Any, *args: Any, **options: Any) -> None:
        """Runs after ``InputProcessor.__init__``, and makes the ``Engine``. This is the only place where the process
        that detokenizes has both an engine's configuration and its tokenizer."""
        name = "unreadable in vLLM's configuration"
        try:
            name = vllm_config.structured_outputs_config.reasoning_parser or ""
            if (tokenizer := processor.tokenizer) is not None:
                engine = Engine(tokenizer, name, self._tool_parser)
                engine.vocabulary  # noqa: B018 - made before the first request, because making it is slow
                self._engines.pop(id(tokenizer), None)  # the newest engine comes last in `_engines`
                # The processor keeps the engine alive: `_engines` has only a weak reference.
                self._engines[id(tokenizer)] = processor.stopscan = engine
                self._log_regions(engine)
        except Exception as error:
            problem = f"stopscan cannot use the engine (reasoning parser: {name or 'none'}): {error!r}"
            raise UnfitError(problem) from error

    def parser_made(self, parser: Any, _: Any, tool_parser_name: Any = None, *args: Any, **options: Any) -> None:
        """Runs after ``ParserManager.get_parser``, from which a server gets the parser of its chat routes. Stores the
        parser, and tells each ``Engine`` the name of the tool parser."""
        self._parser = parser
        self._tool_parser = tool_parser_name if getattr(parser, "tool_parser_cls", None) else None
        for engine in [*self._engines.values()]:
            engine.know(self._tool_parser)
            self._log_regions(engine)

    # The next three hooks see a request before vLLM begins to answer, so that vLLM can still answer an error with a 400

    def params_made(self, params: Any, request: Any, *args: Any, **options: Any) -> None:
        """Runs after ``to_sampling_params`` of a chat request. Adds an option to the request: the regions that the
        route separates from the content. Checks all options now, because vLLM cannot answer with a 400 after a stream
        has begun."""
        if self._concerns(params):
            if engine := self._newest():
                regions = engine.set_apart(self._parser, request.tool_choice)
                params.extra_args = {**(params.extra_args or {}), SET_APART: regions}
            self._read(params, engine, self.defaults)

    def beam_params_made(self, params: Any, request: Any, *args: Any, **options: Any) -> None:
        """Runs after ``to_beam_search_params``. Refuses stopscan's options: beam search looks for no stops."""
        for name in getattr(request, "vllm_xargs", None) or ():
            if name.startswith(PREFIX):
                raise refusal(f"{name} cannot be used with beam search, which looks for no stops")

    def generate_called(self, _: Any, client: Any, prompt: Any, sampling_params: Any, *args: Any, **more: Any) -> None:
        """Runs after ``AsyncLLM.generate`` has returned its generator, but before the generator runs. Checks the
        options, because some routes do not run ``params_made``."""
        if isinstance(sampling_params, SamplingParams) and self._concerns(sampling_params):
            engine = getattr(getattr(client, "input_processor", None), "stopscan", None) or self._newest()
            self._read(sampling_params, engine, self.defaults, resumable=isinstance(prompt, AsyncGenerator))

    # The hook that makes the scanner

    def request_made(self, state: Any, _: Any, tokenizer: Any, request: Any, *args: Any, **more: Any) -> None:
        """Runs after ``RequestState.from_new_request``, and makes the request's detokenizer find its stops with
        stopscan."""
        params, detokenizer = request.sampling_params, state.detokenizer
        if params is None or isinstance(detokenizer, ScanningDetokenizer) or not self._concerns(params):
            return
        # If stopscan was installed after vLLM's engine was made, there is no `Engine` yet. Make one here. It does not
        # know the parsers of vLLM's engine.
        engine = None if tokenizer is None else self._engines.get(id(tokenizer)) or Engine(tokenizer)
        self._warn_of_missing_regions(request, params, engine)
        # A request without a queue comes from a program that calls the engine directly. The limits on the stops,
        # patterns and regions of a request are only for the clients of a server.
        defaults = self.defaults if state.queue is not None else self._unlimited
        resumable = getattr(request, "resumable", False)
        options, stops = self._read(params, engine, defaults, resumable=resumable)
        if engine is None or resumable or self.failures.off or not params.detokenize or not len(options.stops):
            return
        by_route = options.protect is None and self.defaults.protect is None and "reasoning" in options.default
        if by_route and params.output_kind is RequestOutputKind.DELTA and engine.reasoning_ended(request):
            # According to vLLM's parser, the reasoning has already ended in the prompt. vLLM then streams the reasoning
            # of the answer as content, so stops must also fire in it.
            options = replace(options, default=tuple(name for name in options.default if name != "reasoning"))
            stops = engine.stops(options)
        # Whether the request needs something that vLLM cannot do. One case: `stops` has fewer stops than `options`,
        # because some of the client's stops are not allowed to fire. For example, none is allowed to fire in an answer
        # that is only a tool call. vLLM alone would let them all fire.
        beyond = len(stops) < len(options.stops) or bool(
            stops.patterns or stops.visible_patterns or stops.repeat or stops.protect or stops.regions
        )
        # If a stop contains another stop before its end, leave the request to vLLM. For example, "abc" contains "b". In
        # stopscan "abc" never fires, because "b" fires first. In vLLM "abc" can fire, because vLLM ignores a "b" that
        # completes within `min_tokens`.
        if not beyond and params.min_tokens and any(stops.find(stop[:-1]) for stop in stops.stop):
            return
        try:
            scanner, hidden = engine.scanner(detokenizer, request, options, stops)
            made_of = (tokenizer, request)
            arm(detokenizer, scanner, made_of=made_of, failures=self.failures, hidden=hidden, beyond=beyond)
            if beyond:
                _report_end(state, detokenizer)
        except BaseException as error:
            self.failed(error, "request_made", beyond=beyond)

    def failed(self, error: BaseException, hook: str, *, beyond: bool) -> None:
        """Notes a failure of stopscan in a new request. Refuses the request if it asks for something that vLLM cannot
        do (``beyond``). Otherwise leaves the request to vLLM."""
        self.failures.note(error, "was refused" if beyond else "was left to vLLM's own stops", hook)
        if beyond:
            raise refusal(f"stop: stopscan failed: {error!r}") from error

    def _concerns(self, params: Any) -> bool:
        return bool(params.stop or params.extra_args or self.defaults.repeat)

    def _newest(self) -> Engine | None:
        return next(reversed([*self._engines.values()]), None)

    def _read(
        self, params: Any, engine: Engine | None, defaults: Defaults, *, resumable: bool = False
    ) -> tuple[StopOptions, StopSet]:
        """Returns the options of a request and its ``StopSet``. Both are cached. The cache key consists of all fields
        of the request that a scanner needs. The results cannot be stored in ``params``, because vLLM copies ``params``
        between the hooks, and the copies lose our attributes.

        Raises vLLM's validation error for an invalid request. vLLM answers this error with a 400 if the response has
        not begun.
        """
        given, least = params.extra_args or {}, min(params.min_tokens, MAX_COUNT)
        included, graph = params.include_stop_str_in_output, engine.graph if engine else None
        key, kept = None, None
        with suppress(RecursionError, TypeError, ValueError):  # a wrong value may be nested too deeply, or unhashable
            own = [(name, value) for name, value in given.items() if str(name).startswith(PREFIX)]
            # The key of the cache has a `repr` of all options except the stops, because `True`, `1` and `1.0` are equal
            # as keys.
            stop, others = tuple(params.stop or ()), repr((least, included, own, defaults is self._unlimited))
            if sum(map(len, stop), len(others)) <= MAX_KEPT_LENGTH:
                key = id(graph), stop, others
                kept = self._kept.get(key)
        if kept is not None:
            _, options, stops = kept
        else:
            options, stops = self._options(params, engine, defaults)
            if key is not None:
                if len(self._kept) >= MAX_KEPT:
                    self._kept.clear()
                self._kept[key] = graph, options, stops
        beyond = next((name for name in BEYOND if given.get(name)), "")
        # A resumable request has streaming input: its stream consists of several answers.
        if beyond and (resumable or not params.detokenize):
            raise refusal(f"{beyond} needs detokenize, and cannot be used with streaming input")
        if (beyond or options.protect) and self.failures.off:
            raise refusal(f"{beyond or 'stopscan_protect'} is switched off, because stopscan failed repeatedly")
        return options, stops

    def _options(self, params: Any, engine: Engine | None, defaults: Defaults) -> tuple[StopOptions, StopSet]:
        own = {
            "stop": _reportable(params.stop or ()),
            "min_tokens": min(params.min_tokens, MAX_COUNT),
            "include_stop_str_in_output": params.include_stop_str_in_output,
        }
        try:
            options = read_options(params.extra_args or {}, defaults, prefix=PREFIX, fields=FIELDS, own=own)
        except ValueError as error:
            raise refusal(str(error)) from None
        try:
            return options, engine.stops(options) if engine else StopSet()
        except ValueError as error:
            raise refusal(f"{PREFIX}{error}") from None

    def _warn_of_missing_regions(self, request: Any, params: Any, engine: Engine | None) -> None:
        """Logs a warning, but only once, if the hook ``params_made`` did not run for a chat request. Stops then also
        fire in the reasoning."""
        if engine is None or not engine.reasons or self._warned or SET_APART in (params.extra_args or {}):
            return
        if str(request.external_req_id).startswith(CHAT_IDS) and self.defaults.protect is None:
            self._warned = True
            logger.warning(
                "a chat came without %s, which stopscan adds to chats: stops of such chats also fire in the reasoning. "
                "vLLM may make the parameters of chats in a way that stopscan does not know.", SET_APART,
            )  # fmt: skip

    def _log_regions(self, engine: Engine) -> None:
        if (regions := describe(engine.graph)) != engine.logged:
            engine.logged = regions
            logger.info("stopscan finds the stops; known regions and their opening markers: %s", regions)


def _report_end(state: Any, detokenizer: Any) -> None:
    """Makes the last output of a request say how the request ended. Called only if the request asks for something that
    vLLM cannot do."""
    made = state._new_completion_output

    def last_output(token_ids: Any, finish_reason: Any, *rest: Any, **more: Any) -> Any:
        detokenizer.end_confirms = str(finish_reason) not in ("abort", "error")
        output = made(token_ids, finish_reason, *rest, **more)
        if finish_reason is not None:
            detokenizer.report(output)
        return output

    state._new_completion_output = last_output


def _reportable(stops: Sequence[str]) -> list[str]:
    """Returns the stops that vLLM can report. If several stops complete at one character, vLLM reports the first of
    them in the list.

    A stop that ends with an earlier stop of the list is left out. For example, "xEND" after "END" is left out, because
    "END" also completes whenever "xEND" completes. So if several stops of the result complete at one character, the
    longest of them comes first. stopscan reports the longest, and vLLM the first: they report the same stop. Wrong
    values are returned unchanged, because `read_options` refuses them.
    """
    if not all(isinstance(stop, str) for stop in stops):
        return [*stops]
    first = {stop: place for place, stop in reversed([*enumerate(stops)])}
    lengths = {*map(len, stops)}
    return [stop for place, stop in enumerate(stops)
            if not any(first.get(stop[-size:], place) < place for size in lengths if size <= len(stop))]  # fmt: skip
