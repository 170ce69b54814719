"""What vLLM's requests ask, and which of them stopscan takes."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from secrets import token_hex
from typing import Any
from weakref import WeakValueDictionary

from stopscan.engines import Defaults, Failures, Limits, StopOptions, read_options
from stopscan.vllm._detokenizer import ScanningDetokenizer, arm
from stopscan.vllm._engine import Engine

# vLLM's own handlers print what is logged below its name.
logger = logging.getLogger("vllm.stopscan")

PREFIX = "stopscan_"
FIELDS = ("patterns", "max_held", "protect", "start_protected", "repeat")
# The key in a request's `extra_args` for the regions that its route tells apart. No client can know it.
TOLD = f"stopscan told {token_hex(8)}"
# A program's own requests may ask for more than a server's clients.
UNLIMITED = Limits(*[2**62] * 4)


class Refusal(Exception):
    """What is wrong with a request."""

    def as_vllm(self) -> Exception:
        """Returns vLLM's own error for it: vLLM makes a 500 of a ``ValueError``, and a 400 of this."""
        from vllm.exceptions import VLLMValidationError

        words = str(self)
        error: Exception = VLLMValidationError(words, parameter=words.split(" ", 1)[0].rstrip(":"))
        return error


class Adapter:
    """What is asked of stopscan in this process, the engines that were made, and how often stopscan failed."""

    def __init__(self, defaults: Defaults, failures: Failures | None = None) -> None:
        self.renew(defaults, failures)
        self._engines: WeakValueDictionary[int, Engine] = WeakValueDictionary()
        # The class of the parser of a server's chat routes, and the name of its tool parser.
        self._parser: Any = None
        self._tool_parser: str | None = None
        self._said: str | None = None

    def renew(self, defaults: Defaults, failures: Failures | None = None) -> None:
        """Takes new defaults, and forgets earlier faults."""
        self.defaults, self.failures = defaults, failures or Failures(logger)

    def know_engine(self, tokenizer: Any, reasoning_parser: str) -> Engine:
        """To be called when an engine is made. stopscan knows it as long as the result lives."""
        self._engines.pop(id(tokenizer), None)  # the newest is the last
        engine = self._engines[id(tokenizer)] = Engine(tokenizer, reasoning_parser, self._tool_parser)
        engine.vocabulary  # noqa: B018 - takes a moment, for which no request is to wait
        self._say(engine)
        return engine

    def know_parser(self, parser: Any, tool_parser: str | None) -> None:
        """To be called when a server makes the class of its parser, whose calls ``tool_parser`` reads."""
        self._parser = parser
        self._tool_parser = tool_parser if getattr(parser, "tool_parser_cls", None) else None
        for engine in [*self._engines.values()]:
            engine.know(self._tool_parser)
            self._say(engine)

    def _say(self, engine: Engine) -> None:
        named = ", ".join(f"{state} ({' '.join(markers)})" for state, markers in engine.graph.items() if markers)
        if named != self._said:
            self._said = named
            logger.info("stopscan finds the stops. Regions, with the markers that end them: %s", named or "none")

    def tell_apart(self, params: Any, tool_choice: Any) -> None:
        """Notes in the parameters of a chat's request what its route tells from the content, and checks them."""
        if self._concerns(params):
            engine = next(reversed([*self._engines.values()]), None)
            if engine and (told := engine.told_apart(self._parser, tool_choice)):
                params.extra_args = {**(params.extra_args or {}), TOLD: told}
            self.check(params)

    def check(self, params: Any, *, resumable: bool = False) -> None:
        """Raises ``Refusal`` for what would be wrong with a request when its stream has begun."""
        asked = self._read(params, self.defaults, resumable)
        if asked is None:
            return
        problem = None
        for engine in [*self._engines.values()]:
            try:
                engine.stops(asked, self._default(params))
                return
            except ValueError as error:
                problem = error
        if problem:
            raise Refusal(_named(problem))

    def scan(self, state: Any, tokenizer: Any, request: Any, *, trims: bool) -> bool:
        """Finds the stops of a new request, in its own detokenizer. Returns whether it needs ``report`` at its end."""
        params, theirs = request.sampling_params, state.detokenizer
        if isinstance(theirs, ScanningDetokenizer):
            return False
        # A program's requests have no queue: it asks the engine itself.
        defaults = self.defaults if state.queue is not None else replace(self.defaults, limits=UNLIMITED)
        resumable = getattr(request, "resumable", False)
        asked = self._read(params, defaults, resumable)
        if asked is None or resumable or not params.detokenize or tokenizer is None:
            return False
        engine = self._engines.get(id(tokenizer)) or _plain(tokenizer)
        try:
            stops = engine.stops(asked, self._default(params))
        except ValueError as error:
            raise Refusal(_named(error)) from None
        if self.failures.off or not len(asked.stops):
            return False
        # What vLLM has not. There are fewer stops where all of the answer is a call, in which none fires.
        beyond = bool(stops.patterns or stops.repeat or stops.regions or stops.protect or len(stops) < len(asked.stops))
        # Rule 8 would lose the longer of two stops if the shorter completes too early to count.
        if not beyond and params.min_tokens and any(stops.find(stop[:-1]) for stop in stops.stop):
            return False
        try:
            scanner, hidden = engine.scanner(theirs, request, asked, stops)
            arm(theirs, scanner, (tokenizer, request), self.failures, hidden=hidden, beyond=beyond, trims=trims)
        except BaseException as error:
            self.failed(error, beyond=beyond)
            return False
        return beyond

    def failed(self, error: BaseException, *, beyond: bool) -> None:
        """Notes a fault of ours in a new request, which is left to vLLM, or refused if it has what vLLM has not."""
        self.failures.note(error, "was refused" if beyond else "was left to vLLM's own stops")
        if beyond:
            raise Refusal(f"stop: stopscan failed: {error!r}") from error

    def _concerns(self, params: Any) -> bool:
        return bool(params.stop or params.extra_args or self.defaults.repeat)

    def _default(self, params: Any) -> Collection[Any]:
        """The regions in which no stop fires if the request does not say: the operator's, or those of its route."""
        told: Collection[Any] = (params.extra_args or {}).get(TOLD, ())
        return told if self.defaults.protect is None else self.defaults.protect

    def _read(self, params: Any, defaults: Defaults, resumable: bool) -> StopOptions | None:
        """What a request asks, ``None`` if nothing."""
        if not self._concerns(params):
            return None
        given, stop = params.extra_args or {}, list(params.stop or ())

        def read(stop: list[str]) -> StopOptions:
            return read_options(given, defaults, prefix=PREFIX, fields=FIELDS, own={"stop": stop or None})

        try:
            asked = read(stop)
            if len(kept := _reportable(stop)) < len(stop):
                asked = read(kept)
        except ValueError as error:
            raise Refusal(str(error)) from None
        mine = "stopscan_patterns" if asked.stops.patterns else "stopscan_repeat" if given.get("stopscan_repeat") else ""
        if mine and not params.detokenize:
            raise Refusal(f"{mine} needs detokenize")
        if mine and resumable:  # several answers in one stream, in which vLLM takes no stops
            raise Refusal(f"{mine} cannot be used with streaming input, as stop cannot")
        if (mine or asked.protect) and self.failures.off:
            raise Refusal(f"{mine or 'stopscan_protect'} is off here, because stopscan failed repeatedly")
        if asked.start_protected and not (self._default(params) if asked.protect is None else asked.protect):
            raise Refusal("stopscan_start_protected needs the markers of a region in stopscan_protect")
        return asked


@lru_cache(maxsize=4)
def _plain(tokenizer: Any) -> Engine:
    """The engine of a tokenizer, if it was made before stopscan was installed: its parsers are not known."""
    return Engine(tokenizer)


def _named(error: ValueError) -> str:
    """The message of a set that cannot be had, with the option's name as the client wrote it."""
    words = str(error)
    return f"stopscan_protect {words.removeprefix('protect: ')}" if words.startswith("protect") else words


def _reportable(stops: list[str]) -> list[str]:
    """The stops that vLLM would report: of several that end at one character, the first of its list.

    A stop that ends with one listed before it is never reported. Without those, the longest is the first listed.
    """
    first = {stop: place for place, stop in reversed([*enumerate(stops)])}
    lengths = {*map(len, stops)}
    return [
        stop for place, stop in enumerate(stops)
        if not any(first.get(stop[-length:], place) < place for length in lengths if length <= len(stop))
    ]  # fmt: skip
