"""What a request asks of stopscan: sglang's own stops, and the options in its ``custom_params``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from stopscan._engine.circuit import Circuit
from stopscan._engine.environment import Settings
from stopscan._engine.graphs import Frozen, frozen
from stopscan._engine.options import options
from stopscan.regions import NAMES, Graph, graph_of, with_reasoning
from stopscan.sglang._spec import Spec, by_default
from stopscan.tokens import Vocabulary

# In `custom_params`: the request came on a chat route, and the stops that sglang added to those of the user. The same
# name is used in `customized_info`, which the scheduler alone makes and sglang's routers split by row.
KEY = "__stopscan"


class Requests:
    """The requests of one process: their specs, vocabularies and graphs, and how often stopscan failed."""

    def __init__(self, settings: Settings, logger: logging.Logger) -> None:
        self._settings = settings
        self.circuit = Circuit(logger)
        self._vocabularies: WeakKeyDictionary[Any, Vocabulary] = WeakKeyDictionary()
        self._graphs: WeakKeyDictionary[Any, Frozen] = WeakKeyDictionary()

    def vocabulary(self, tokenizer: Any) -> Vocabulary:
        """The vocabulary of a tokenizer, made once."""
        if tokenizer not in self._vocabularies:
            self._vocabularies[tokenizer] = Vocabulary(tokenizer)
        return self._vocabularies[tokenizer]

    def spec(self, params: Any, tokenizer: Any, *, thinks: bool, prompt_end: Callable[[], str]) -> Spec | None:
        """What a request asks for; ``None`` if it has no stop. Raises ``ValueError`` that begins with what is wrong.

        ``thinks``: whether sglang tells reasoning from the answer in it. ``prompt_end`` has the prompt's last words.
        """
        given = params.custom_params
        asked = options(given, self._settings.limits, self._settings.repeat)
        own = (given or {}).get(KEY)
        everywhere = tuple(stop for stop in params.stop_strs if stop and isinstance(own, list) and stop in own)
        stop = tuple(stop for stop in params.stop_strs if stop and stop not in everywhere)
        patterns = (*params.stop_regex_strs, *asked.patterns)
        if not (stop or everywhere or patterns or asked.repeat):
            return None
        protect, graph = asked.protect, self._graph(tokenizer)
        if protect is None:
            default = self._settings.protect
            protect = by_default(graph, (NAMES if thinks or own is not None else ()) if default is None else default)
        spec = Spec(
            stop,
            everywhere,
            patterns,
            asked.max_held,
            asked.repeat,
            protect,
            graph if protect else (),
            include_stop=params.no_stop_trim,
            stop_token_ids=() if params.ignore_eos else tuple(params.stop_token_ids or ()),
            skip_special_tokens=params.skip_special_tokens,
        )
        if not protect and not asked.start_protected:
            return spec
        forced = thinks and bool(self._detector and self._detector.force_reasoning)
        return spec.beginning_after(prompt_end(), asked.start_protected, forced=forced)

    @cached_property
    def _detector(self) -> Any:
        from sglang.srt.parser.reasoning_parser import ReasoningParser

        name = _serving("reasoning_parser")
        # On chat routes, sglang makes its parsers so for the requests of which it says that they think.
        return ReasoningParser(name, stream_reasoning=False, force_reasoning=True).detector if name else None

    def _graph(self, tokenizer: Any) -> Frozen:
        """The regions of the model's answers: the checkpoint's, and the reasoning of the parser, which decides."""
        if tokenizer is None:
            return ()
        if tokenizer not in self._graphs:
            self._graphs[tokenizer] = frozen(with_reasoning(graph_of(tokenizer), _reasoning(self._detector)))
        return self._graphs[tokenizer]


def _reasoning(detector: Any) -> Graph | None:
    start, end = getattr(detector, "think_start_token", None), getattr(detector, "think_end_token", None)
    return {"answer": {start: "reasoning"}, "reasoning": {end: "answer"}} if start and end else None


def _serving(name: str) -> Any:
    """An argument of the server; ``None`` where there is no server, as in a test."""
    try:
        from sglang.srt.runtime_context import get_serving

        return getattr(get_serving(), name, None)
    except Exception:
        return None
