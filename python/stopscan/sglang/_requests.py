"""What a request asks of stopscan: sglang's own stops, and the options in its ``custom_params``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from stopscan import StopSet
from stopscan.engines import CHAT, Checkpoint, Defaults, Failures, StopOptions, read_options
from stopscan.regions import Graph, graph_of, restricted, with_reasoning
from stopscan.sglang._guard import Refused
from stopscan.tokens import TokenScanner

PREFIX = "stopscan_"
FIELDS = ("patterns", "max_held", "protect", "start_protected", "repeat")
# In `custom_params`, from a chat route: the regions that it tells from the content, and the stops that sglang added.
TOLD, ADDED = "__stopscan_told", "__stopscan_added"
# The end of a prompt: what the first token's text may depend on.
LAST_TOKENS = 8
OFF = "stop_regex, regions and stopscan's options are off here, because stopscan failed repeatedly"


class Model:
    """The regions of a tokenizer's model, as the checkpoint and the server's reasoning parser know them."""

    def __init__(self, tokenizer: Any) -> None:
        from sglang.srt.parser.reasoning_parser import ReasoningParser

        # The parser as chat routes make it for requests of which sglang says that they think.
        name = serving("reasoning_parser")
        detector = ReasoningParser(name, stream_reasoning=False, force_reasoning=True).detector if name else None
        start, end = (getattr(detector, f"think_{name}_token", None) for name in ("start", "end"))
        own: Graph | None = {"answer": {start: "reasoning"}, "reasoning": {end: "answer"}} if start and end else None
        self.graph: Graph = with_reasoning(graph_of(tokenizer), own) or {}
        # Whether the parser takes the answers of requests that think for reasoning from their first character.
        self.inside = bool(getattr(detector, "force_reasoning", False))


class Requests:
    """The requests of one process: the server's defaults, the models, and how often stopscan failed."""

    def __init__(self, defaults: Defaults, failures: Failures) -> None:
        self.defaults, self.failures = defaults, failures
        self._models: WeakKeyDictionary[Any, Model] = WeakKeyDictionary()

    def model(self, tokenizer: Any) -> Model:
        """Returns the model of a tokenizer, made once."""
        if tokenizer not in self._models:
            self._models[tokenizer] = Model(tokenizer)
        return self._models[tokenizer]

    def concerns(self, stop: Any, patterns: Any, given: Any) -> bool:
        """Returns whether a request could have stops."""
        return bool(stop or patterns or self.defaults.repeat or _ours(given))

    def on(self, patterns: Any, given: Any) -> bool:
        """Returns whether a request is for stopscan, and not left to sglang after too many faults.

        Raises ``Refused`` if sglang could not keep it.
        """
        if self.failures.off and beyond(patterns, given):
            raise Refused(OFF, HTTPStatus.SERVICE_UNAVAILABLE)
        return not self.failures.off

    def read(self, stop: Any, patterns: Any, given: Any) -> StopOptions:
        """Returns what a request asks in ``stop``, ``stop_regex`` and ``custom_params``, whatever a client sent.

        Raises ``Refused`` that begins with what is wrong.
        """
        if not isinstance(given, dict | None):
            raise Refused(f"custom_params must be an object, not a {type(given).__name__}")
        ask = partial(read_options, given, self.defaults, prefix=PREFIX, fields=FIELDS)
        # sglang knows an empty stop, and never finds it.
        stop, patterns = listed(stop, without=["", *added(given)]), listed(patterns)
        try:
            mine = ask().stops.patterns
            patterns = [*patterns, *mine] if isinstance(patterns, list) else patterns
            return ask(own={"stop": stop or None, "patterns": patterns or None})
        except ValueError as error:
            told = str(error)
            raise Refused(told.replace("patterns", "stop_regex", 1) if told.startswith("patterns") else told) from None

    def check(self, stop: Any, patterns: Any, given: Any, tokenizer: Any) -> None:
        """Raises ``Refused`` for a request with which something is wrong, or that sglang alone could not keep while
        stopscan is off."""
        if self.concerns(stop, patterns, given):
            asked = self.read(stop, patterns, given)
            if self.on(patterns, given) and tokenizer is not None:
                self._stops(asked, given, tokenizer, thinks=False)

    def scanner(self, req: Any) -> tuple[TokenScanner, bool] | None:
        """Returns the scanner of a request in the scheduler, and whether sglang could not keep its stops; ``None`` if
        the request has no stops, or is left to sglang.

        Raises ``Refused`` that begins with what is wrong.
        """
        params, tokenizer, prompt = req.sampling_params, req.tokenizer, list(req.origin_input_ids)
        patterns, given = params.stop_regex_strs, params.custom_params
        asked = self.read(params.stop_strs, patterns, given)
        if not self.on(patterns, given) or not len(asked.stops):
            return None
        checkpoint, stops = self._stops(asked, given, tokenizer, thinks=bool(req.require_reasoning))
        # The tokens at which sglang ends an answer, whose text is left out.
        ends = {tokenizer.eos_token_id, *(req.eos_token_ids or ()), *(tokenizer.additional_stop_token_ids or ())}
        options: dict[str, Any] = {
            "include_stop": params.no_stop_trim,
            "stop_token_ids": () if params.ignore_eos else [*(ends - {None}), *(params.stop_token_ids or ())],
            "skip_special_tokens": params.skip_special_tokens,
            "prompt_token_ids": prompt[-LAST_TOKENS:],
        }
        regions = stops.regions is not None or stops.protect
        # Also if a stop is the marker, which counts more.
        start = asked.start_protected if regions else None
        inside = bool(req.require_reasoning) and self.model(tokenizer).inside
        try:
            scanner = checkpoint.scanner(stops, prompt, start_protected=start, inside=inside, **options)
        except ValueError as error:
            # A marker that `skip_special_tokens` hides in part: an error only for who asked for the regions.
            if asked.protect is not None:
                raise Refused(f"{PREFIX}{error}") from None
            scanner = checkpoint.scanner(asked.stops, prompt, **options)
        return scanner, bool(beyond(patterns, given) or regions or stops.repeat)

    def _stops(self, asked: StopOptions, given: Any, tokenizer: Any, *, thinks: bool) -> tuple[Checkpoint, StopSet]:
        """The set of a request, in the regions that it protects: its own, the server's, or those of its route."""
        told = (given or {}).get(TOLD)
        # A route that could not say so, because its process has no plugins, still says that the answer has reasoning.
        names = [name for name in told if name in CHAT] if isinstance(told, list) else ["reasoning"] * thinks
        default: Sequence[Any] = names if self.defaults.protect is None else self.defaults.protect
        protect = default if asked.protect is None else asked.protect
        if asked.start_protected and not protect:
            raise Refused(f"{PREFIX}start_protected needs the markers of a region in {PREFIX}protect")
        # What is not told apart is text.
        regions = [name for name in CHAT if name in protect]
        checkpoint = Checkpoint(tokenizer, graph=restricted(self.model(tokenizer).graph, regions))
        try:
            return checkpoint, checkpoint.stops(asked.stops, asked.protect, default)
        except ValueError as error:
            raise Refused(f"{PREFIX}{error}") from None


def beyond(patterns: Any, given: Any) -> bool:
    """Returns whether a request asks for what sglang cannot keep. Its own ``stop_regex`` leaks, and may take the whole
    server's time."""
    return bool(patterns or _ours(given) or (given or {}).get(TOLD))


def added(given: Any) -> list[Any]:
    """Returns the stops that sglang added to those of a chat's request. They are left to sglang: they fire
    everywhere."""
    stops = (given or {}).get(ADDED)
    return stops if isinstance(stops, list) else []


def _ours(given: Any) -> bool:
    """Whether there are options of ours, or what is no options at all."""
    return any(str(name).startswith(PREFIX) for name in given or ()) if isinstance(given, dict | None) else True


def listed(value: Any, without: Sequence[str] = ()) -> Any:
    """Returns the entries of one string or a list, ``without`` some. Anything else is returned as it is, for an error
    that says so."""
    texts = [value] if isinstance(value, str) else value or []
    return [text for text in texts if text not in without] if isinstance(texts, list | tuple) else texts


def serving(name: str) -> Any:
    """Returns an argument of the server; ``None`` where there is no server, as in a test."""
    try:
        from sglang.srt.runtime_context import get_serving

        return getattr(get_serving(), name, None)
    except Exception:
        return None
