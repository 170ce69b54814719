"""What the adapter knows of an engine: the regions that its parsers name, and where an answer begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from stopscan._engine.sets import Pair, Pairs
from stopscan.vllm._hidden import HiddenPairs
from stopscan.vllm._parsers import BEGINS_INSIDE, MARKERS

if TYPE_CHECKING:
    from vllm.reasoning import ReasoningParser
    from vllm.tokenizers import TokenizerLike

KEPT = 128


class Engine:
    """The regions of one engine by their names, and the state in which its reasoning parser begins an answer."""

    def __init__(self, reasoning_parser: str, tokenizer: TokenizerLike) -> None:
        self._reasoning_parser = reasoning_parser
        # Weak, because engines are kept as long as their tokenizers.
        self._tokenizer = ref(tokenizer)
        reasoning = self._reasoning_regions() if reasoning_parser else ()
        self.named: dict[str, Pairs] = {"reasoning": reasoning} if reasoning else {}
        self._hidden: dict[Pairs, HiddenPairs] = {}
        self._added = dict(tokenizer.get_added_vocab()) if reasoning else {}
        self.name_also({})

    def name_also(self, regions: Mapping[str, Pairs]) -> None:
        """To be called with regions that become known later."""
        self.named.update(regions)
        markers = [marker for pairs in self.named.values() for pair in pairs for marker in pair]
        self._roles = {token_id for text, token_id in self._added.items() if not any(text in one for one in markers)}

    def hidden(self, protect: Pairs) -> HiddenPairs:
        """Those of the regions whose markers the text may leave out; kept, because many requests have the same."""
        if protect not in self._hidden:
            if len(self._hidden) == KEPT:
                self._hidden.clear()
            self._hidden[protect] = HiddenPairs(self._tokenizer(), protect)
        return self._hidden[protect]

    def opened(self, prompt_token_ids: Sequence[int], parser_options: Mapping[str, Any] | None) -> Pair | None:
        """The region of its reasoning parser in which the answer begins; ``None`` if in none.

        ``parser_options`` are the request's own, such as its ``chat_template_kwargs``.
        """
        pairs = self.named.get("reasoning")
        if not pairs:
            return None
        parser = self._parser(**parser_options or {})
        inside = BEGINS_INSIDE.get(self._reasoning_parser)
        if inside is None:
            turn = self._turn(prompt_token_ids)
            inside = not parser.is_reasoning_end(turn) and self._begins_inside(parser, turn)
        if not inside:
            return None
        return next((pair for pair in pairs if pair[0] == parser.reasoning_start_str), pairs[0])

    def _turn(self, prompt_token_ids: Sequence[int]) -> Sequence[int]:
        """The assistant's own part of a prompt: what stands behind the last token of the chat template.

        What a user writes, such as ``</think>``, stands before that token and says nothing of the answer.
        """
        roles = self._roles
        for place in range(len(prompt_token_ids) - 1, -1, -1):
            if prompt_token_ids[place] in roles:
                return prompt_token_ids[place + 1 :]
        return prompt_token_ids

    def _parser(self, **options: Any) -> ReasoningParser:
        from vllm.reasoning import ReasoningParserManager

        return ReasoningParserManager.get_reasoning_parser(self._reasoning_parser)(self._tokenizer(), **options)

    def _reasoning_regions(self) -> Pairs:
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
