"""Reads the stops of a request: sglang's own fields, and the options of stopscan in ``custom_params``."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from stopscan.engines import Checkpoint, Defaults, Failures, StopOptions, read_options
from stopscan.regions import Graph, graph_of
from stopscan.regions.shared import with_reasoning
from stopscan.sglang._guard import Refused
from stopscan.tokens import TokenScanner

PREFIX = "stopscan_"
# A chat route sends two options to the scheduler. `STOP` has the client's stops, and is sent only if sglang has added
# other stops. `SET_APART` has the regions that the route separates from the content. Both are checked like all options,
# because a client can also send them.
STOP, SET_APART = f"{PREFIX}stop", f"{PREFIX}default"
FIELDS = ("patterns", "visible_patterns", "max_held", "protect", "start_protected", "repeat", "stop", "default")
# The text of an answer's first token may depend on this many tokens at the end of the prompt.
LAST_TOKENS = 8
OFF = "stop_regex, regions and stopscan's options are switched off, because stopscan failed repeatedly"


class Model:
    """The regions of the language model: from its tokenizer's files, and from the server's reasoning parser."""

    def __init__(self, tokenizer: Any) -> None:
        from sglang.srt.parser.reasoning_parser import ReasoningParser

        # Make the reasoning parser as chat routes make it for a request with `require_reasoning`.
        name = serving("reasoning_parser")
        detector = ReasoningParser(name, stream_reasoning=False, force_reasoning=True).detector if name else None
        start, end = (getattr(detector, f"think_{name}_token", None) for name in ("start", "end"))
        own: Graph | None = {"answer": {start: "reasoning"}, "reasoning": {end: "answer"}} if start and end else None
        graph = with_reasoning(graph_of(tokenizer), own) or {}
        # `narrow`: if a request does not protect a region, the markers of this region are plain text.
        self.checkpoint = Checkpoint(tokenizer, graph=graph, narrow=True)
        # Whether the answers of requests with `require_reasoning` begin in the reasoning, without a marker.
        self.inside = bool(getattr(detector, "force_reasoning", False))


class Requests:
    """Reads the requests of one process. Has the server's default options, a ``Model`` for each tokenizer, and the
    count of stopscan's failures."""

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
        stops = params.stop_strs or client_stops(params) or params.stop_regex_strs or self.defaults.repeat
        return bool(stops or {*own_options(params)} - {STOP, SET_APART})

    def on(self, params: Any) -> bool:
        """Returns whether stopscan handles a request. After too many failures, all requests are left to sglang.

        Raises ``Refused`` if a request that is left to sglang asks for something that sglang cannot do.
        """
        if self.failures.off and beyond(params):
            raise Refused(OFF, HTTPStatus.SERVICE_UNAVAILABLE)
        return not self.failures.off

    def check(self, params: Any, tokenizer: Any) -> None:
        """Raises ``Refused`` for a wrong request. While stopscan is switched off, also raises it for a request that
        sglang alone cannot serve."""
        if self.concerns(params):
            options = self.read(params)
            if self.on(params):
                self._make(options, params, tokenizer)

    def read(self, params: Any, *, thinks: bool = False) -> StopOptions:
        """Returns the options of a request: stopscan's options, and the stops in sglang's own fields.

        ``thinks`` says whether sglang expects reasoning. If so, the reasoning counts as a region that the route
        separates from the content, unless the route itself has said which regions it separates.

        Raises ``Refused`` for a wrong value. The message begins with the name of the field.
        """
        given, stop = params.custom_params, listed(params.stop_strs)
        if not isinstance(given, dict | None):
            raise Refused(f"custom_params must be an object, not a {type(given).__name__}")
        own = {
            "stop": stop if (given or {}).get(STOP) is None else None,
            "stop_regex": listed(params.stop_regex_strs),
            "stop_token_ids": [*(params.stop_token_ids or ())],
            "no_stop_trim": params.no_stop_trim,
        }
        default = ["reasoning"] * thinks
        try:
            read_options({"stop": stop}, self.defaults)  # also checks the stops that sglang itself looks for
            return read_options(given, self.defaults, default=default, prefix=PREFIX, fields=FIELDS, own=own)
        except ValueError as error:
            raise Refused(str(error)) from None

    def scanner(self, req: Any) -> Scanning | None:
        """Returns the scanner of a request in the scheduler, or ``None`` if the request has no stops or is left to
        sglang.

        Raises ``Refused`` for a wrong request. The message begins with the name of the wrong field.
        """
        params, tokenizer, thinks = req.sampling_params, req.tokenizer, bool(req.require_reasoning)
        options: Any = self.read(params, thinks=thinks)
        if not self.on(params) or not len(options.stops):
            return None
        # The tokens that end an answer in sglang. Their text is not part of the answer.
        ends = {tokenizer.eos_token_id, *(req.eos_token_ids or ()), *(tokenizer.additional_stop_token_ids or ())}
        ids = () if params.ignore_eos else (*(ends - {None}), *options.stop_token_ids)
        prompt = list(req.origin_input_ids)
        inside = thinks and self.model(tokenizer).inside
        engine = {"inside": inside, "prompt_token_ids": prompt[-LAST_TOKENS:]}
        scanner, stops = self._make(replace(options, stop_token_ids=ids), params, tokenizer, prompt, **engine)
        more = bool(beyond(params) or stops.regions is not None or stops.protect or stops.repeat)
        return Scanning(scanner, more, [stop for stop in listed(params.stop_strs) if stop not in options.stops.stop])

    def _make(self, options: StopOptions, params: Any, tokenizer: Any, prompt: Any = (), **engine: Any) -> Any:
        """Returns a scanner, and its set."""
        checkpoint, skips = self.model(tokenizer).checkpoint, bool(params.skip_special_tokens)
        try:
            return checkpoint.scanner(options, prompt, skip_special_tokens=skips, **engine), checkpoint.stops(options)
        except ValueError as error:
            raise Refused(f"{PREFIX}{error}") from None


class Scanning(NamedTuple):
    """The scanner of a request.

    ``beyond`` says whether the request asks for something that sglang cannot do. ``added`` has the stops that sglang
    added to a chat. sglang itself looks for these stops.
    """

    scanner: TokenScanner
    beyond: bool
    added: list[str]


def client_stops(params: Any) -> Any:
    """Returns the stop strings that stopscan looks for: those of the client, without those that sglang added."""
    given = own_options(params).get(STOP)
    return listed(params.stop_strs if given is None else given)


def beyond(params: Any) -> bool:
    """Returns whether a request asks for something that sglang cannot do well: options of stopscan, protected regions,
    or ``stop_regex``. (sglang can search for patterns, but it sends parts of a match to the client, and a slow pattern
    stops the server.)"""
    return bool(params.stop_regex_strs) or any(value for name, value in own_options(params).items() if name != STOP)


def own_options(params: Any) -> dict[str, Any]:
    """Returns the options of stopscan in ``custom_params``. If ``custom_params`` is not an object, returns an option
    that does not exist. The caller then passes the request to ``read``, which refuses it."""
    given = {} if params.custom_params is None else params.custom_params
    given = given if isinstance(given, dict) else {PREFIX: True}
    return {name: value for name, value in given.items() if isinstance(name, str) and name.startswith(PREFIX)}


def listed(value: Any) -> Any:
    """Returns a string or a list of strings as a list, without the empty strings, which sglang allows and never finds.
    Returns any other value unchanged, so that the reader of the options refuses it."""
    texts = [value] if isinstance(value, str) else value or []
    return [text for text in texts if text != ""] if isinstance(texts, list | tuple) else texts


def serving(name: str) -> Any:
    """Returns an argument of the server, or ``None`` if there is no server, as in a test."""
    try:
        from sglang.srt.runtime_context import get_serving

        return getattr(get_serving(), name, None)
    except Exception:
        return None
