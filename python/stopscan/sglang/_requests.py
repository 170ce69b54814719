"""What a request asks of stopscan: sglang's own stops, and the options in its ``custom_params``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from stopscan import StopSet
from stopscan._engine.circuit import Circuit
from stopscan._engine.environment import Settings
from stopscan._engine.options import options
from stopscan._engine.regions import NAMES, Pairs, regions
from stopscan._engine.sets import stop_set
from stopscan.tokens import TokenScanner, Vocabulary


class Spec(NamedTuple):
    """Plain values, which go from the scheduler to the detokenizer."""

    stop: tuple[str, ...]
    patterns: tuple[str, ...]
    max_held: int | None
    protect: Pairs
    start_protected: bool
    include_stop: bool
    stop_token_ids: tuple[int, ...]
    skip_special_tokens: bool

    @property
    def stops(self) -> StopSet:
        """The set of it. Raises ``ValueError`` that begins with what is wrong."""
        try:
            return stop_set(self.stop, self.patterns, self.protect, self.max_held)
        except ValueError as error:
            # sglang's own patterns come first in the list.
            raise ValueError(str(error).replace("stopscan_patterns", "stop_regex or stopscan_patterns", 1)) from error

    def scanner(self, vocabulary: Vocabulary, prompt_token_ids: Sequence[int]) -> TokenScanner:
        """A new scanner for it. Raises ``ValueError`` that begins with what is wrong."""
        return TokenScanner(
            vocabulary,
            self.stops,
            stop_token_ids=self.stop_token_ids,
            include_stop=self.include_stop,
            start_protected=self.start_protected and bool(self.protect),
            skip_special_tokens=self.skip_special_tokens,
            prompt_token_ids=prompt_token_ids,
        )


class Requests:
    """The requests of one process: their specs and vocabularies, and how often stopscan failed."""

    def __init__(self, settings: Settings, logger: logging.Logger) -> None:
        self._settings = settings
        self.circuit = Circuit(logger)
        self._vocabularies: WeakKeyDictionary[Any, Vocabulary] = WeakKeyDictionary()

    def vocabulary(self, tokenizer: Any) -> Vocabulary:
        """The vocabulary of a tokenizer, made once."""
        if tokenizer not in self._vocabularies:
            self._vocabularies[tokenizer] = Vocabulary(tokenizer)
        return self._vocabularies[tokenizer]

    def spec(self, params: Any, *, thinks: bool, prompt_end: Callable[[], str]) -> Spec | None:
        """What a request asks for; ``None`` if it has no stop. Raises ``ValueError`` that begins with what is wrong.

        ``thinks``: whether sglang tells reasoning from the answer in it. ``prompt_end`` has the prompt's last words.
        """
        asked = options(params.custom_params, self._named, self._settings.limits)
        stop, patterns = tuple(filter(None, params.stop_strs)), (*params.stop_regex_strs, *asked.patterns)
        if not stop and not patterns:
            return None
        protect = asked.protect
        if protect is None:
            default = self._settings.protect
            protect = regions((NAMES if thinks else ()) if default is None else default, self._named, pass_over=True)
        protect = tuple(pair for pair in protect if not {*stop}.intersection(pair))
        opened, start = None, asked.start_protected
        if protect and start is not False:
            end = prompt_end().rstrip()
            opened = next((pair for pair in protect if end.endswith(pair[0])), None)
            if opened is None and thinks and self._forced and protect[0] in self._named.get("reasoning", ()):
                opened = protect[0]
        protect = tuple(sorted(protect, key=lambda pair: pair != opened))
        ids = () if params.ignore_eos else tuple(params.stop_token_ids or ())
        inside = bool(start or opened)
        return Spec(
            stop, patterns, asked.max_held, protect, inside, params.no_stop_trim, ids, params.skip_special_tokens
        )

    def refuse(self, original: Callable[..., Any], manager: Any, *args: Any, **options: Any) -> Any:
        """Around the making of a request, where a ``ValueError`` is a 400: raises one for what no scanner takes."""
        made = original(manager, *args, **options)
        params = getattr(made, "sampling_params", None)
        if hasattr(params, "stop_strs"):
            try:
                self._check(params)
            except ValueError:
                raise
            except BaseException as error:
                self.circuit.note(error, "goes on")
        return made

    def _check(self, params: Any) -> None:
        for thinks in (True, False):
            spec = self.spec(params, thinks=thinks, prompt_end=str)
            if spec:
                _ = spec.stops

    async def refuse_stream(self, original: Callable[..., Any], obj: Any, request: Any) -> Any:
        """Around a stream of ``/generate``, in which sglang tells of errors in an event: a 400 before it begins."""
        if obj.stream:
            asked = obj.sampling_params if isinstance(obj.sampling_params, list) else [obj.sampling_params or {}]
            try:
                for params in asked:
                    self._check(_as_sglang(params))
            except ValueError as error:
                from fastapi.responses import JSONResponse

                problem = {"message": str(error), "type": "invalid_request_error", "code": 400}
                return JSONResponse({"error": problem}, status_code=400)
            except BaseException as error:
                self.circuit.note(error, "goes on")
        return await original(obj, request)

    @cached_property
    def _detector(self) -> Any:
        from sglang.srt.parser.reasoning_parser import ReasoningParser

        name = _serving("reasoning_parser")
        return ReasoningParser(model_type=name, stream_reasoning=False).detector if name else None

    @property
    def _forced(self) -> bool:
        """Whether an answer begins inside the reasoning without a marker."""
        return bool(self._detector and self._detector.force_reasoning)

    @cached_property
    def _named(self) -> Mapping[str, Pairs]:
        detector = self._detector
        if not detector or not detector.think_start_token or not detector.think_end_token:
            return {}
        return {"reasoning": ((detector.think_start_token, detector.think_end_token),)}


def _as_sglang(params: Mapping[str, Any]) -> Any:
    """What sglang makes of a request's parameters, as far as `spec` reads it."""

    def listed(value: Any) -> list[str]:
        return [value] if isinstance(value, str) else list(value or ())

    return SimpleNamespace(
        stop_strs=listed(params.get("stop")),
        stop_regex_strs=listed(params.get("stop_regex")),
        custom_params=params.get("custom_params"),
        ignore_eos=False,
        stop_token_ids=(),
        no_stop_trim=False,
        skip_special_tokens=True,
    )


def _serving(name: str) -> Any:
    """An argument of the server; ``None`` where there is no server, as in a test."""
    try:
        from sglang.srt.runtime_context import get_serving

        return getattr(get_serving(), name, None)
    except Exception:
        return None
