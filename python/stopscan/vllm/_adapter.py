"""From a request to its detokenizer: which stops, which regions, and where the answer begins."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stopscan import StopSet
from stopscan._engine.circuit import Circuit
from stopscan._engine.environment import ANY, Settings
from stopscan._engine.graphs import Frozen, beginning, thawed
from stopscan._engine.options import PREFIX, Options, options
from stopscan._engine.sets import reportable, stop_set
from stopscan.regions import NAMES, Graph, known
from stopscan.vllm._decoder import native, token_scanner
from stopscan.vllm._detokenizer import ScanningDetokenizer
from stopscan.vllm._parsers import form_of_calls
from stopscan.vllm._reasoning import Engine

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.tokenizers import TokenizerLike
    from vllm.v1.engine import EngineCoreRequest

# vLLM's own handlers print what is logged below its name.
logger = logging.getLogger("vllm.stopscan")

# A server's requests are called after their routes; in these, vLLM tells reasoning and calls from the answer.
CHAT_ROUTES = ("chatcmpl-", "resp_")

NAMED = frozenset(NAMES)


class Adapter:
    """What is asked of stopscan in this process, the engines that were made since, and how often stopscan failed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.checked()
        self.circuit = Circuit(logger)
        # Whether vLLM runs without stopscan where stopscan does not fit, instead of not at all.
        self.optional = False
        self._engines: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()
        self._calls: Graph | None = None

    def succeed(self, other: Adapter) -> None:
        """To be called when this adapter takes the place of ``other``, which knows the engines made so far."""
        self._engines, self._calls = other._engines, other._calls

    def note_engine(self, reasoning_parser: str, tokenizer: TokenizerLike) -> None:
        """To be called when an engine is made."""
        native(tokenizer)  # takes a moment, which no request is to wait for
        self._engines[tokenizer] = Engine(reasoning_parser, tokenizer, self._calls)

    def note_tools(self, tool_parser: str | None) -> None:
        """To be called when a server says which tool parser it has."""
        self._calls = form_of_calls(tool_parser)
        for engine in self._engines.values():
            engine.note_calls(self._calls)

    def check(self, params: SamplingParams, *, resumable: bool = False) -> Options | None:
        """What a request asks for, ``None`` if nothing. Raises vLLM's validation error for what would be wrong when
        the request's stream has begun."""
        if not self._concerns(params):
            return None
        try:
            asked = options(params.extra_args, self._settings.limits, self._settings.repeat)
            # What tells the route comes later, and before the first engine names have no markers.
            unknown = ANY if NAMED.intersection(asked.protect or ()) else ()
            graphs = {engine.graph for engine in self._engines.values()} or {unknown}
            sets = self._sets(params, asked, graphs)
        except ValueError as error:
            raise refusal(str(error)) from None
        if asked.start_protected and not any(protect for protect, _ in sets):
            raise refusal("stopscan_start_protected needs the markers of a region in stopscan_protect")
        # What the server asks for is passed over where it cannot be had.
        own_repeat = asked.repeat and f"{PREFIX}repeat" in (params.extra_args or {})
        needs_text = "stopscan_patterns" if asked.patterns else "stopscan_repeat" if own_repeat else None
        if needs_text and not params.detokenize:
            raise refusal(f"{needs_text} needs detokenize")
        if needs_text and resumable:
            raise refusal(f"{needs_text} cannot be used with streaming input, as stop cannot")
        if (asked.patterns or asked.protect or own_repeat) and not self.circuit.closed:
            raise refusal("stopscan_patterns, _protect and _repeat are off here, because stopscan failed repeatedly")
        return asked

    def scanning(
        self, inner: Any, tokenizer: TokenizerLike, request: EngineCoreRequest, remake: Callable[[int], Any]
    ) -> Any:
        """``inner`` with its stops found by stopscan, or itself if it has none."""
        params = request.sampling_params
        asked = None if isinstance(inner, ScanningDetokenizer) else self.check(params)
        # Streaming input has several answers in one stream: vLLM takes no stops there.
        if (
            asked is None
            or getattr(request, "resumable", False)
            or not self.circuit.closed
            or not (params.stop or asked.patterns or asked.repeat)
        ):
            return inner
        if tokenizer not in self._engines:
            self._engines[tokenizer] = Engine("", tokenizer)
        engine = self._engines[tokenizer]
        try:
            protect, stops = self._set(params, asked, engine.graph, _is_chat(request))
        except ValueError as error:
            raise refusal(str(error)) from None
        beyond = bool(asked.patterns or asked.repeat or protect)
        try:
            return self._detokenizer(inner, tokenizer, request, engine, stops, asked, None if beyond else remake)
        except BaseException as error:
            self.circuit.note(error, "was refused" if beyond else "was left to vLLM's own stops")
            if beyond:
                raise refusal(f"stop: stopscan failed: {error!r}") from error
            return inner

    def _detokenizer(
        self,
        inner: Any,
        tokenizer: TokenizerLike,
        request: EngineCoreRequest,
        engine: Engine,
        stops: StopSet,
        asked: Options,
        remake: Callable[[int], Any] | None,
    ) -> ScanningDetokenizer:
        begins: dict[str, Any] = {}
        if stops.protect or stops.regions:
            prompt, start = request.prompt_token_ids or [], asked.start_protected
            forced = start is None and engine.begins_inside(prompt, request.reasoning_parser_kwargs)
            begins = beginning(stops, engine.prompt_end(prompt), start, forced=forced)
        hidden = engine.hidden(stops) if request.sampling_params.skip_special_tokens else {}
        scanner = token_scanner(inner, tokenizer, request, stops, hidden, begins)
        return ScanningDetokenizer(inner, scanner, self.circuit, remake, trims=_trims_token_ids())

    def _concerns(self, params: SamplingParams) -> bool:
        asks = any(name.startswith(PREFIX) for name in params.extra_args or ())
        return bool(params.stop or asks or self._settings.repeat)

    def _sets(self, params: SamplingParams, asked: Options, graphs: set[Frozen]) -> list[tuple[Any, StopSet]]:
        """The regions and the set of a request on each route. Raises ``ValueError`` if no engine has such regions."""
        problem = ValueError()
        for graph in graphs:
            try:
                return [self._set(params, asked, graph, chat) for chat in (True, False)]
            except ValueError as error:
                problem = error
        raise problem

    def _set(self, params: SamplingParams, asked: Options, graph: Frozen, chat: bool) -> tuple[Any, StopSet]:
        """The regions of a request, which are its own, the server's, or those that are not for stops in an answer to
        a chat; and the set that reports what vLLM would."""
        protect = asked.protect
        if protect is None:
            default = self._settings.protect
            protect = tuple(known(thawed(graph), (NAMES if chat else ()) if default is None else default))
        stop = reportable(tuple(params.stop or ()))
        # Loops end an answer in every region.
        closed = protect if stop or asked.patterns or not asked.repeat else ()
        return protect, stop_set(stop, asked.patterns, closed, asked.max_held, asked.repeat, graph if closed else ())


def _is_chat(request: EngineCoreRequest) -> bool:
    name = getattr(request, "external_req_id", None) or request.request_id
    return str(name).startswith(CHAT_ROUTES)


def _trims_token_ids() -> bool:
    """Whether this vLLM drops the tokens behind a stop, where one step brings several: since 0.32."""
    from vllm.v1.engine.output_processor import OutputProcessor

    return hasattr(OutputProcessor, "_trim_surplus_tokens")


def refusal(problem: str) -> Exception:
    """vLLM's own validation error: its engine makes a 500 of a ``ValueError``, and a 400 of this."""
    from vllm.exceptions import VLLMValidationError

    error: Exception = VLLMValidationError(problem, parameter=problem.split(" ", 1)[0].rstrip(":"))
    return error
