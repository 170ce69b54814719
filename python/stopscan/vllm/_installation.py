from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stopscan._protect import NAMES, Protect, Regions, regions
from stopscan.vllm._engine import Engine
from stopscan.vllm._options import check
from stopscan.vllm._parsers import tool_call_regions
from stopscan.vllm._pieces import pieces_of
from stopscan.vllm._request import scanning

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.tokenizers import TokenizerLike
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.detokenizer import IncrementalDetokenizer

# For names whose markers are not known yet.
_ANY: dict[str, Regions] = {name: ((f"<{name}>", f"</{name}>"),) for name in NAMES}


class Installation:
    """What is asked of stopscan in this process, and the engines that were made since.

    Raises ``ValueError`` as soon as it is known that there are no markers for a name in ``protect``.
    """

    def __init__(self, protect: Protect) -> None:
        # It is read again for each request.
        self._protect = list(protect) if isinstance(protect, Iterable) and not isinstance(protect, str) else protect
        regions(self._protect, _ANY)
        self._engines: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()
        self._tools: dict[str, Regions] = {}

    def note_engine(self, reasoning_parser: str, tokenizer: TokenizerLike) -> None:
        """To be called when an engine is made."""
        pieces_of(tokenizer)  # takes a moment, which no request is to wait for
        engine = Engine(reasoning_parser, tokenizer)
        engine.named.update(self._tools)
        self._engines[tokenizer] = engine
        self._require("reasoning", engine.named, reasoning_parser)

    def note_tools(self, tool_parser: str | None) -> None:
        """To be called when a server says which tool parser it has."""
        calls = tool_call_regions(tool_parser or "")
        self._tools = {"tool_calls": calls} if calls else {}
        for engine in self._engines.values():
            engine.named.update(self._tools)
        self._require("tool_calls", self._tools, tool_parser)

    def check(self, params: SamplingParams) -> None:
        """Raises vLLM's validation error for options that no engine of this process would take."""
        engines = [engine.named for engine in self._engines.values()]
        named = {name: pairs for names in engines or [_ANY] for name, pairs in names.items()}
        check(params, named, bool(self._protect))

    def scanning(
        self, detokenizer: IncrementalDetokenizer, tokenizer: TokenizerLike, request: EngineCoreRequest
    ) -> Any:
        """``detokenizer`` with the request's stops."""
        return scanning(detokenizer, tokenizer, request, self._engines.get(tokenizer), self._protect)

    def _require(self, name: str, known: Mapping[str, Regions], parser: str | None) -> None:
        asked = _ANY[name][0] in regions(self._protect, _ANY)
        if name in known or not asked:
            return
        kind = {"reasoning": "reasoning parser", "tool_calls": "tool parser"}[name]
        if not parser:
            raise ValueError(f"stopscan: protect={name!r} needs a {kind}, and this engine has none")
        raise ValueError(f"stopscan: the {kind} {parser!r} names no start and end; name the markers instead")
