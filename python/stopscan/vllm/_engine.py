"""What the adapter knows of an engine: the regions that its parsers name, and where an answer begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from stopscan._protect import Region, Regions
from stopscan.vllm._parsers import BEGINS_INSIDE, MARKERS

if TYPE_CHECKING:
    from vllm.reasoning import ReasoningParser
    from vllm.tokenizers import TokenizerLike


class Engine:
    """The regions of one engine by their names, and the state in which its reasoning parser begins an answer."""

    def __init__(self, reasoning_parser: str, tokenizer: TokenizerLike) -> None:
        self._reasoning_parser = reasoning_parser
        # Weak, because engines are kept as long as their tokenizers.
        self._tokenizer = ref(tokenizer)
        reasoning = self._reasoning_regions() if reasoning_parser else ()
        self.named = {"reasoning": reasoning} if reasoning else {}

    def opened(self, prompt_token_ids: Sequence[int], parser_options: Mapping[str, Any] | None) -> Region | None:
        """The region of its reasoning parser, which it must have, in which the answer begins; ``None`` if in none.

        ``parser_options`` are the request's own, such as its ``chat_template_kwargs``.
        """
        pairs = self.named["reasoning"]
        parser = self._parser(**parser_options or {})
        inside = BEGINS_INSIDE.get(self._reasoning_parser)
        if inside is None:
            inside = not parser.is_reasoning_end(prompt_token_ids) and self._begins_inside(parser, prompt_token_ids)
        if not inside:
            return None
        return next((pair for pair in pairs if pair[0] == parser.reasoning_start_str), pairs[0])

    def _parser(self, **options: Any) -> ReasoningParser:
        from vllm.reasoning import ReasoningParserManager

        return ReasoningParserManager.get_reasoning_parser(self._reasoning_parser)(self._tokenizer(), **options)

    def _reasoning_regions(self) -> Regions:
        name = self._reasoning_parser
        if name in MARKERS:
            return MARKERS[name]
        # Some parsers name their markers only where the model is asked to think.
        parser = self._parser(chat_template_kwargs={"thinking": True, "enable_thinking": True})
        opening, closing = parser.reasoning_start_str, parser.reasoning_end_str
        return ((opening, closing),) if opening and closing else ()

    def _begins_inside(self, parser: ReasoningParser, prompt_token_ids: Sequence[int]) -> bool:
        # What the parser makes of text without a marker says in which state it is.
        parser.adjust_initial_state_from_prompt(prompt_token_ids)
        first = parser.model_tokenizer.encode("a", add_special_tokens=False)
        delta = parser.extract_reasoning_streaming("", "a", "a", [], first, first)
        return bool(delta and delta.reasoning)
