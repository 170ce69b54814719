"""From a request to its detokenizer: which stops, which regions, and where the answer begins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stopscan import StopScanner, StopSet
from stopscan._engine.circuit import Circuit
from stopscan._engine.environment import ANY, Settings
from stopscan._engine.options import PREFIX, Options, options, regions
from stopscan._engine.sets import Pair, Pairs, reportable, stop_set
from stopscan.regions import NAMES
from stopscan.vllm._decoder import decoder, pieces_of
from stopscan.vllm._detokenizer import ScanningDetokenizer
from stopscan.vllm._hidden import HiddenRegions, prompt_end
from stopscan.vllm._parsers import tool_call_regions
from stopscan.vllm._reasoning import Engine

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.tokenizers import TokenizerLike
    from vllm.v1.engine import EngineCoreRequest

# vLLM's own handlers print what is logged below its name.
logger = logging.getLogger("vllm.stopscan")

# A server's requests are called after their routes; in these, vLLM tells reasoning and calls from the answer.
CHAT_ROUTES = ("chatcmpl-", "resp_")


class Adapter:
    """What is asked of stopscan in this process, the engines that were made since, and how often stopscan failed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.checked()
        self.circuit = Circuit(logger)
        # Whether vLLM runs without stopscan where stopscan does not fit, instead of not at all.
        self.optional = False
        self._engines: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()
        self._tools: dict[str, Pairs] = {}

    def note_engine(self, reasoning_parser: str, tokenizer: TokenizerLike) -> None:
        """To be called when an engine is made."""
        pieces_of(tokenizer)  # takes a moment, which no request is to wait for
        engine = Engine(reasoning_parser, tokenizer)
        engine.name_also(self._tools)
        self._engines[tokenizer] = engine

    def note_tools(self, tool_parser: str | None) -> None:
        """To be called when a server says which tool parser it has."""
        calls = tool_call_regions(tool_parser or "")
        self._tools = {"tool_call": calls} if calls else {}
        for engine in self._engines.values():
            engine.name_also(self._tools)

    def check(self, params: SamplingParams, *, resumable: bool = False) -> None:
        """Raises vLLM's validation error for what would be wrong when the request's stream has begun."""
        if not self._concerns(params):
            return
        named = {name: pairs for engine in self._engines.values() for name, pairs in engine.named.items()}
        try:
            asked = self._options(params, named if self._engines else ANY)
            # What tells the route comes later.
            protect = {self._protect(asked, named, chat) for chat in (True, False)}
            for regions_of_route in protect:
                self._set(params, asked, regions_of_route)
        except ValueError as error:
            raise refusal(str(error)) from None
        if asked.start_protected and not any(protect):
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

    def scanning(
        self, inner: Any, tokenizer: TokenizerLike, request: EngineCoreRequest, remake: Callable[[int], Any]
    ) -> Any:
        """``inner`` with its stops found by stopscan, or itself if it has none."""
        params = request.sampling_params
        if isinstance(inner, ScanningDetokenizer) or not self._concerns(params):
            return inner
        self.check(params)
        engine = self._engine(tokenizer)
        try:
            asked = self._options(params, engine.named)
        except ValueError as error:
            raise refusal(str(error)) from None
        # Streaming input has several answers in one stream: vLLM takes no stops there.
        if (
            getattr(request, "resumable", False)
            or not self.circuit.closed
            or not (params.stop or asked.patterns or asked.repeat)
        ):
            return inner
        protect: Pairs = asked.protect or ()
        try:
            protect = self._protect(asked, engine.named, _is_chat(request))
            return self._detokenizer(inner, tokenizer, request, asked, protect, remake)
        except BaseException as error:
            beyond = bool(asked.patterns or asked.repeat or protect)
            self.circuit.note(error, "was refused" if beyond else "was left to vLLM's own stops")
            if beyond:
                raise refusal(f"stop: stopscan failed: {error!r}") from error
            return inner

    def _detokenizer(
        self,
        inner: Any,
        tokenizer: TokenizerLike,
        request: EngineCoreRequest,
        asked: Options,
        protect: Pairs,
        remake: Callable[[int], Any],
    ) -> ScanningDetokenizer:
        params = request.sampling_params
        stops = self._set(params, asked, protect)
        opened = self._opened(tokenizer, request, stops.protect, asked.start_protected)
        hidden = self._engine(tokenizer).hidden(stops.protect) if params.skip_special_tokens and stops.protect else None
        shown = hidden.shown if hidden else stops.protect
        # The first region is the one that `start_protected` begins in.
        shown = tuple(sorted(shown, key=lambda pair: pair != opened))
        scanner = StopScanner(
            stop_set(stops.stop, stops.patterns, shown, stops.max_held, stops.repeat),
            include_stop=params.include_stop_str_in_output,
            start_protected=opened in shown,
        )
        unseen = None
        if hidden and hidden.table:
            unseen = HiddenRegions(hidden.table, hidden.closing.get(opened) if opened else None, stops.repeat)
        beyond = bool(stops.patterns or stops.protect or stops.repeat)
        made = decoder(inner, tokenizer, request)
        return ScanningDetokenizer(
            inner, made, scanner, unseen, self.circuit, None if beyond else remake, trims=_trims_token_ids()
        )

    def _options(self, params: SamplingParams, named: Mapping[str, Pairs]) -> Options:
        return options(params.extra_args, named, self._settings.limits, self._settings.repeat)

    def _concerns(self, params: SamplingParams) -> bool:
        asks = any(name.startswith(PREFIX) for name in params.extra_args or ())
        return bool(params.stop or asks or self._settings.repeat)

    def _engine(self, tokenizer: TokenizerLike) -> Engine:
        if tokenizer not in self._engines:
            self._engines[tokenizer] = Engine("", tokenizer)
        return self._engines[tokenizer]

    def _protect(self, asked: Options, named: Mapping[str, Pairs], chat: bool) -> Pairs:
        """The regions of a request: its own, the server's, or those that the engine tells from an answer to a chat."""
        if asked.protect is not None:
            return asked.protect
        default = self._settings.protect
        return regions((NAMES if chat else ()) if default is None else default, named, pass_over=True)

    def _set(self, params: SamplingParams, asked: Options, protect: Pairs) -> StopSet:
        """The set that reports what vLLM would. A stop that equals a marker wins: that region is not protected."""
        stop = reportable(tuple(params.stop or ()))
        pairs = tuple(pair for pair in protect if not {*stop}.intersection(pair))
        # Loops end an answer in every region.
        pairs = pairs if stop or asked.patterns else ()
        return stop_set(stop, asked.patterns, pairs, asked.max_held, asked.repeat)

    def _opened(
        self, tokenizer: TokenizerLike, request: EngineCoreRequest, protect: Pairs, start: bool | None
    ) -> Pair | None:
        """The region in which the answer begins: the one that vLLM's parser names, or whose marker ends the prompt."""
        if start is False or not protect:
            return None
        prompt, engine = request.prompt_token_ids or [], self._engine(tokenizer)
        end = prompt_end(tokenizer, prompt).rstrip()
        opened = next((pair for pair in protect if end.endswith(pair[0])), None)
        if not {*protect}.isdisjoint(engine.named.get("reasoning", ())):
            named = engine.opened(prompt, request.reasoning_parser_kwargs)
            if named in protect and named is not None and not end.endswith(named[1]):
                opened = named
        return opened or (protect[0] if start else None)


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
