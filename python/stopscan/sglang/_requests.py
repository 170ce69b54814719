"""Reads the stops of a request: sglang's own fields, and the options of stopscan in ``custom_params``."""

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
# Keys that a chat route's hook adds to `custom_params`: the regions that the route separates from the content, and the
# stops that sglang added.
TOLD, ADDED = "__stopscan_told", "__stopscan_added"
# The number of tokens at the end of a prompt on which the text of the first token may depend.
LAST_TOKENS = 8
OFF = "stop_regex, regions and stopscan's options are switched off, because stopscan failed repeatedly"


class Model:
    """The regions of the language model: from its tokenizer's files, and from the server's reasoning parser."""

    def __init__(self, tokenizer: Any) -> None:
        from sglang.srt.parser.reasoning_parser import ReasoningParser

        # Make the parser as the chat routes make it for a request with `require_reasoning`.
        name = serving("reasoning_parser")
        detector = ReasoningParser(name, stream_reasoning=False, force_reasoning=True).detector if name else None
        start, end = (getattr(detector, f"think_{name}_token", None) for name in ("start", "end"))
        own: Graph | None = {"answer": {start: "reasoning"}, "reasoning": {end: "answer"}} if start and end else None
        self.graph: Graph = with_reasoning(graph_of(tokenizer), own) or {}
        # Whether the answers of requests with `require_reasoning` begin in the reasoning, without a marker.
        self.inside = bool(getattr(detector, "force_reasoning", False))


class Requests:
    """Reads the requests of one process. Has the server's defaults, the models, and the count of failures."""

    def __init__(self, defaults: Defaults, failures: Failures) -> None:
        self.defaults, self.failures = defaults, failures
        self._models: WeakKeyDictionary[Any, Model] = WeakKeyDictionary()

    def model(self, tokenizer: Any) -> Model:
        """Returns the ``Model`` of a tokenizer, which is made once."""
        if tokenizer not in self._models:
            self._models[tokenizer] = Model(tokenizer)
        return self._models[tokenizer]

    def concerns(self, stop: Any, patterns: Any, given: Any) -> bool:
        """Returns whether a request could have stops."""
        return bool(stop or patterns or self.defaults.repeat or _ours(given))

    def on(self, patterns: Any, given: Any) -> bool:
        """Returns whether stopscan handles a request. After too many failures, all requests are left to sglang.

        Raises ``Refused`` if a request that is left to sglang asks for something that sglang cannot do.
        """
        if self.failures.off and beyond(patterns, given):
            raise Refused(OFF, HTTPStatus.SERVICE_UNAVAILABLE)
        return not self.failures.off

    def read(self, stop: Any, patterns: Any, given: Any) -> StopOptions:
        """Returns the options of a request from its ``stop``, ``stop_regex`` and ``custom_params``.

        These values may have any type, because the client sent them. Raises ``Refused`` for a wrong value. The message
        begins with the name of the field.
        """
        if not isinstance(given, dict | None):
            raise Refused(f"custom_params must be an object, not a {type(given).__name__}")
        ask = partial(read_options, given, self.defaults, prefix=PREFIX, fields=FIELDS)
        # sglang allows empty stops, and never finds one. A `StopSet` refuses empty stops, so they are left out here.
        stop, patterns = listed(stop, without=["", *added(given)]), listed(patterns)
        try:
            mine = ask().stops.patterns
            patterns = [*patterns, *mine] if isinstance(patterns, list) else patterns
            return ask(own={"stop": stop or None, "patterns": patterns or None})
        except ValueError as error:
            told = str(error)
            raise Refused(told.replace("patterns", "stop_regex", 1) if told.startswith("patterns") else told) from None

    def check(self, stop: Any, patterns: Any, given: Any, tokenizer: Any) -> None:
        """Raises ``Refused`` for a wrong request, and, while stopscan is switched off, for one that sglang alone cannot
        serve."""
        if self.concerns(stop, patterns, given):
            asked = self.read(stop, patterns, given)
            if self.on(patterns, given) and tokenizer is not None:
                self._stops(asked, given, tokenizer, thinks=False)

    def scanner(self, req: Any) -> tuple[TokenScanner, bool] | None:
        """Returns the scanner of a request in the scheduler, and whether the request asks for something that sglang
        cannot do. Returns ``None`` if the request has no stops, or is left to sglang.

        Raises ``Refused`` for a wrong request. The message begins with the name of the wrong field.
        """
        params, tokenizer, prompt = req.sampling_params, req.tokenizer, list(req.origin_input_ids)
        patterns, given = params.stop_regex_strs, params.custom_params
        asked = self.read(params.stop_strs, patterns, given)
        if not self.on(patterns, given) or not len(asked.stops):
            return None
        checkpoint, stops = self._stops(asked, given, tokenizer, thinks=bool(req.require_reasoning))
        # The tokens that end an answer in sglang. Their text is not part of the answer.
        ends = {tokenizer.eos_token_id, *(req.eos_token_ids or ()), *(tokenizer.additional_stop_token_ids or ())}
        options: dict[str, Any] = {
            "include_stop": params.no_stop_trim,
            "stop_token_ids": () if params.ignore_eos else [*(ends - {None}), *(params.stop_token_ids or ())],
            "skip_special_tokens": params.skip_special_tokens,
            "prompt_token_ids": prompt[-LAST_TOKENS:],
        }
        regions = stops.regions is not None or stops.protect
        # A stop that is a region's marker removes the region. If no region is left, `start_protected=True`
        # would raise, so this option is dropped.
        start = asked.start_protected if regions else None
        inside = bool(req.require_reasoning) and self.model(tokenizer).inside
        try:
            scanner = checkpoint.scanner(stops, prompt, start_protected=start, inside=inside, **options)
        except ValueError as error:
            # A marker contains a skipped special token, so it is never found. Refuse only if the request named regions.
            if asked.protect is not None:
                raise Refused(f"{PREFIX}{error}") from None
            scanner = checkpoint.scanner(asked.stops, prompt, **options)
        return scanner, bool(beyond(patterns, given) or regions or stops.repeat)

    def _stops(self, asked: StopOptions, given: Any, tokenizer: Any, *, thinks: bool) -> tuple[Checkpoint, StopSet]:
        """Returns the checkpoint and the ``StopSet`` of a request. If the request has no ``protect``, the
        protected regions are the server's default, or else those that the route separates."""
        told = (given or {}).get(TOLD)
        # `told` has the regions that the route noted. If the route runs in a process without plugins, it noted none,
        # and `thinks` (sglang's `require_reasoning`) says whether sglang expects reasoning.
        names = [name for name in told if name in CHAT] if isinstance(told, list) else ["reasoning"] * thinks
        default: Sequence[Any] = names if self.defaults.protect is None else self.defaults.protect
        protect = default if asked.protect is None else asked.protect
        if asked.start_protected and not protect:
            raise Refused(f"{PREFIX}start_protected needs a region in {PREFIX}protect")
        # The markers of regions that are not protected are plain text.
        regions = [name for name in CHAT if name in protect]
        checkpoint = Checkpoint(tokenizer, graph=restricted(self.model(tokenizer).graph, regions))
        try:
            return checkpoint, checkpoint.stops(asked.stops, asked.protect, default)
        except ValueError as error:
            raise Refused(f"{PREFIX}{error}") from None


def beyond(patterns: Any, given: Any) -> bool:
    """Returns whether a request asks for something that sglang cannot do well: options of stopscan, protected regions,
    or ``patterns`` (``stop_regex``). sglang finds patterns, but sends parts of the match, and a slow pattern stops
    the whole server."""
    return bool(patterns or _ours(given) or (given or {}).get(TOLD))


def added(given: Any) -> list[Any]:
    """Returns the stops that sglang added to those of a chat request. The added stops are left to sglang, because they
    must fire in all regions."""
    stops = (given or {}).get(ADDED)
    return stops if isinstance(stops, list) else []


def _ours(given: Any) -> bool:
    """Returns whether ``given`` has an option of stopscan. True also if ``given`` is neither a dict nor ``None``:
    ``read`` refuses it then."""
    return any(str(name).startswith(PREFIX) for name in given or ()) if isinstance(given, dict | None) else True


def listed(value: Any, without: Sequence[str] = ()) -> Any:
    """Returns a string or a list of strings as a list, without the entries in ``without``. Returns any other value
    unchanged, so that the reader of the options refuses it."""
    texts = [value] if isinstance(value, str) else value or []
    return [text for text in texts if text not in without] if isinstance(texts, list | tuple) else texts


def serving(name: str) -> Any:
    """Returns an argument of the server, or ``None`` if there is no server, as in a test."""
    try:
        from sglang.srt.runtime_context import get_serving

        return getattr(get_serving(), name, None)
    except Exception:
        return None
