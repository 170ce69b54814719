"""Reads the stops of a request: sglang's own fields, and the options of stopscan in ``custom_params``."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from stopscan.engines import Checkpoint, Defaults, Failures, StopOptions, read_options
from stopscan.regions import Graph, graph_of, with_reasoning
from stopscan.sglang._guard import Refused
from stopscan.tokens import TokenScanner

PREFIX = "stopscan_"
# What the hook of a chat route tells the scheduler. A client may also write it: it is read and checked as all options.
# STOP: the client's stops, if `stop` has other stops that are left to sglang. DEFAULT: the regions that the route
# separates from the content.
STOP, DEFAULT = f"{PREFIX}stop", f"{PREFIX}default"
FIELDS = ("patterns", "visible_patterns", "max_held", "protect", "start_protected", "repeat", "stop", "default")
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

    def concerns(self, params: Any) -> bool:
        """Returns whether a request could have stops."""
        given = params.custom_params
        ours = any(str(name).startswith(PREFIX) and name not in (STOP, DEFAULT) for name in _items(given))
        return bool(params.stop_strs or mine(params) or params.stop_regex_strs or self.defaults.repeat or ours)

    def on(self, params: Any) -> bool:
        """Returns whether stopscan handles a request. After too many failures, all requests are left to sglang.

        Raises ``Refused`` if a request that is left to sglang asks for something that sglang cannot do.
        """
        if self.failures.off and beyond(params):
            raise Refused(OFF, HTTPStatus.SERVICE_UNAVAILABLE)
        return not self.failures.off

    def read(self, params: Any, *, thinks: bool = False) -> StopOptions:
        """Returns the options of a request: of all its fields that reach a scanner. These may have any value, because
        the client sent them. ``thinks``: whether sglang expects reasoning.

        Raises ``Refused`` for a wrong value. The message begins with the name of the field.
        """
        given = params.custom_params
        if not isinstance(given, dict | None):
            raise Refused(f"custom_params must be an object, not a {type(given).__name__}")
        own = {
            "stop_regex": listed(params.stop_regex_strs) or None,
            "stop_token_ids": [*(params.stop_token_ids or ())] or None,
            "no_stop_trim": params.no_stop_trim,
        }
        stop = listed(params.stop_strs)
        if (given or {}).get(STOP) is None:
            own["stop"] = stop or None
        default = ["reasoning"] * thinks
        try:
            read_options({"stop": stop}, self.defaults)  # some of them may be left to sglang
            return read_options(given, self.defaults, default=default, prefix=PREFIX, fields=FIELDS, own=own)
        except ValueError as error:
            raise Refused(str(error)) from None

    def check(self, params: Any, tokenizer: Any) -> None:
        """Raises ``Refused`` for a wrong request, and, while stopscan is switched off, for one that sglang alone cannot
        serve."""
        if self.concerns(params):
            asked = self.read(params)
            if self.on(params):
                self._scanner(asked, params, tokenizer)

    def scanner(self, req: Any) -> tuple[TokenScanner, bool, list[str]] | None:
        """Returns the scanner of a request in the scheduler, whether the request asks for something that sglang cannot
        do, and the stops that are left to sglang. Returns ``None`` if the request has no stops, or is left to sglang.

        Raises ``Refused`` for a wrong request. The message begins with the name of the wrong field.
        """
        params, tokenizer = req.sampling_params, req.tokenizer
        thinks = bool(req.require_reasoning)
        asked: Any = self.read(params, thinks=thinks)
        if not self.on(params) or not len(asked.stops):
            return None
        # The tokens that end an answer in sglang. Their text is not part of the answer.
        ends = {tokenizer.eos_token_id, *(req.eos_token_ids or ()), *(tokenizer.additional_stop_token_ids or ())}
        ids = () if params.ignore_eos else (*(ends - {None}), *asked.stop_token_ids)
        prompt, inside = list(req.origin_input_ids), thinks and self.model(tokenizer).inside
        last = {"prompt_token_ids": prompt[-LAST_TOKENS:]}
        asked = replace(asked, stop_token_ids=ids)
        scanner, stops = self._scanner(asked, params, tokenizer, prompt, inside=inside, **last)
        more = bool(beyond(params) or stops.regions is not None or stops.protect or stops.repeat)
        return scanner, more, [stop for stop in listed(params.stop_strs) if stop and stop not in asked.stops.stop]

    def _scanner(self, asked: StopOptions, params: Any, tokenizer: Any, prompt: Any = (), **engine: Any) -> Any:
        checkpoint = Checkpoint(tokenizer, graph=self.model(tokenizer).graph, narrow=True)
        try:
            skips = bool(params.skip_special_tokens)
            return checkpoint.scanner(asked, prompt, skip_special_tokens=skips, **engine), checkpoint.stops(asked)
        except ValueError as error:
            raise Refused(f"{PREFIX}{error}") from None


def mine(params: Any) -> Any:
    """Returns the stops of a request that stopscan finds. sglang allows empty stops, and never finds one, so they are
    left out. Returns a value of a wrong type unchanged, so that the reader of the options refuses it."""
    given = params.custom_params
    told = given.get(STOP) if isinstance(given, dict) else None
    return listed(params.stop_strs if told is None else told)


def beyond(params: Any) -> bool:
    """Returns whether a request asks for something that sglang cannot do well: options of stopscan, protected regions,
    or ``stop_regex``. sglang finds patterns, but sends parts of the match, and a slow pattern stops the server."""
    ours = (str(name) for name, value in _items(params.custom_params).items() if value)
    return bool(params.stop_regex_strs) or any(name.startswith(PREFIX) and name != STOP for name in ours)


def _items(given: Any) -> dict[Any, Any]:
    """Returns ``custom_params``. A wrong value counts as an option of stopscan: ``read`` refuses it."""
    return given if isinstance(given, dict) else {} if given is None else {PREFIX: given}


def listed(value: Any) -> Any:
    """Returns a string or a list of strings as a list, without empty strings. Returns any other value unchanged, so
    that the reader of the options refuses it."""
    texts = [value] if isinstance(value, str) else value or []
    return [text for text in texts if text != ""] if isinstance(texts, list | tuple) else texts


def serving(name: str) -> Any:
    """Returns an argument of the server, or ``None`` if there is no server, as in a test."""
    try:
        from sglang.srt.runtime_context import get_serving

        return getattr(get_serving(), name, None)
    except Exception:
        return None
