"""What a request asks of stopscan: sglang's own stops, and the options in its ``custom_params``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from stopscan import StopSet
from stopscan.engines import CHAT, Checkpoint, Defaults, Failures, StopOptions, read_options
from stopscan.regions import Graph, graph_of, region_name, restricted, with_reasoning
from stopscan.sglang._guard import Refused
from stopscan.sglang._spec import Spec

PREFIX = "stopscan_"
FIELDS = ("patterns", "max_held", "protect", "start_protected", "repeat")
# In `custom_params`, from a chat route: the regions that it tells from the content, and the stops that sglang added.
TOLD, ADDED = "__stopscan_told", "__stopscan_added"
# The end of a prompt: where regions are looked for, and what the first token's text may depend on.
PROMPT_TOKENS, LAST_TOKENS = 32, 8
OFF = "stop_regex, regions and stopscan's options are off here, because stopscan failed repeatedly"


class Model:
    """The regions of a tokenizer's model, as the checkpoint and the server's reasoning parser know them."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._detector = _detector()
        start, end = (getattr(self._detector, f"think_{name}_token", None) for name in ("start", "end"))
        own: Graph | None = {"answer": {start: "reasoning"}, "reasoning": {end: "answer"}} if start and end else None
        self._graph: Graph = with_reasoning(graph_of(tokenizer), own) or {}
        # Whether the parser takes the answers of requests that think for reasoning from their first character.
        self.inside = bool(getattr(self._detector, "force_reasoning", False))
        self._checkpoints: dict[frozenset[Any], Checkpoint] = {}

    def regions(self) -> str:
        """Returns the names of the regions, each with what begins it."""
        opened = {region_name(to): mark for markers in self._graph.values() for mark, to in markers.items()}
        return ", ".join(f"{name} ({opened[name]})" for name in CHAT if name in opened) or "none"

    def checkpoint(self, protect: Iterable[Any]) -> Checkpoint:
        """Returns the checkpoint for answers that are told apart into these regions. Others are text."""
        names = frozenset(CHAT).intersection(entry for entry in protect if isinstance(entry, str))
        if names not in self._checkpoints:
            self._checkpoints[names] = Checkpoint(self._tokenizer, graph=restricted(self._graph, names))
        return self._checkpoints[names]


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
        odd = given is not None and not isinstance(given, dict)
        return bool(stop or patterns or self.defaults.repeat or odd or beyond(patterns, given))

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
        try:
            asked = read_options(given, self.defaults, prefix=PREFIX, fields=FIELDS)
            if stop or patterns:
                # Of sglang's own fields and ours. sglang knows an empty stop, and never finds it.
                patterns = [*_listed(patterns), *asked.stops.patterns] if _texts(patterns) else patterns
                stop = [text for text in _listed(stop) if text] if _texts(stop) else stop
                own = {"stop": stop or None, "patterns": patterns or None}
                asked = read_options(given, self.defaults, prefix=PREFIX, fields=FIELDS, own=own)
        except ValueError as error:
            told = str(error)
            raise Refused(told.replace("patterns", "stop_regex", 1) if told.startswith("patterns") else told) from None
        return asked

    def check(self, stop: Any, patterns: Any, given: Any, tokenizer: Any) -> None:
        """Raises ``Refused`` for a request with which something is wrong, or that sglang alone could not keep while
        stopscan is off."""
        if not self.concerns(stop, patterns, given):
            return
        asked = self.read(stop, patterns, given)
        if not self.on(patterns, given):
            return
        if tokenizer is not None:
            self._stops(asked, given, tokenizer, thinks=False)

    def spec(self, params: Any, tokenizer: Any, prompt: Sequence[int], *, thinks: bool) -> Spec | None:
        """Returns the stops of a request in the scheduler, ``None`` if it has none. ``thinks`` is sglang's word that
        its answer has reasoning.

        Raises ``Refused`` that begins with what is wrong.
        """
        asked = self.read(params.stop_strs, params.stop_regex_strs, params.custom_params)
        if not self.on(params.stop_regex_strs, params.custom_params) or not len(asked.stops):
            return None
        model, added = self.model(tokenizer), (params.custom_params or {}).get(ADDED)
        everywhere = StopSet([stop for stop in asked.stops.stop if isinstance(added, list) and stop in added])
        checkpoint, stops = self._stops(asked, params.custom_params, tokenizer, thinks=thinks)
        options: dict[str, Any] = {
            "include_stop": params.no_stop_trim,
            "stop_token_ids": () if params.ignore_eos else tuple(params.stop_token_ids or ()),
            "skip_special_tokens": params.skip_special_tokens,
            "prompt_token_ids": list(prompt[-LAST_TOKENS:]),
        }
        start = asked.start_protected
        if stops.regions is None and not stops.protect:  # also if a stop is the marker, which counts more
            start = None
        region = checkpoint.begins(stops, list(prompt[-PROMPT_TOKENS:]), start, inside=thinks and model.inside)
        spec = Spec.of(stops, everywhere, region, **options)
        try:
            spec.scanner(checkpoint.vocabulary)
        except ValueError as error:
            # A marker that `skip_special_tokens` hides in part: an error only for who asked for the regions.
            if asked.protect is not None:
                raise Refused(f"{PREFIX}{error}") from None
            spec = Spec.of(asked.stops, everywhere, None, **options)
        return spec

    def _stops(self, asked: StopOptions, given: Any, tokenizer: Any, *, thinks: bool) -> tuple[Checkpoint, StopSet]:
        """The set of a request, in the regions that it protects: its own, the server's, or those of its route."""
        told = (given or {}).get(TOLD)
        # A route that could not say so, because its process has no plugins, still says that the answer has reasoning.
        names = [name for name in told if name in CHAT] if isinstance(told, list) else ["reasoning"] * thinks
        default: Sequence[Any] = names if self.defaults.protect is None else self.defaults.protect
        protect = default if asked.protect is None else asked.protect
        if asked.start_protected and not protect:
            raise Refused(f"{PREFIX}start_protected needs the markers of a region in {PREFIX}protect")
        checkpoint = self.model(tokenizer).checkpoint(protect)
        try:
            return checkpoint, checkpoint.stops(asked.stops, asked.protect, default)
        except ValueError as error:
            raise Refused(f"{PREFIX}{error}") from None


def beyond(patterns: Any, given: Any) -> bool:
    """Returns whether a request asks for what sglang cannot keep. Its own ``stop_regex`` leaks, and may take the whole
    server's time."""
    names = given if isinstance(given, dict) else ()
    return bool(patterns or (TOLD in names and given[TOLD]) or any(str(name).startswith(PREFIX) for name in names))


def _texts(value: Any) -> bool:
    return value is None or isinstance(value, str | list | tuple)


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value or ())


def serving(name: str) -> Any:
    """Returns an argument of the server; ``None`` where there is no server, as in a test."""
    try:
        from sglang.srt.runtime_context import get_serving

        return getattr(get_serving(), name, None)
    except Exception:
        return None


def _detector() -> Any:
    """The server's reasoning parser, as chat routes make it for requests of which sglang says that they think."""
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    name = serving("reasoning_parser")
    return ReasoningParser(name, stream_reasoning=False, force_reasoning=True).detector if name else None
