"""What the adapter knows of an engine: the regions of its answers, and whether an answer begins in the reasoning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from stopscan import StopSet
from stopscan._engine.graphs import Frozen, frozen, with_reasoning
from stopscan.regions import Graph, graph_of
from stopscan.vllm._decoder import Hidden, hidden_markers
from stopscan.vllm._parsers import BEGINS_INSIDE, REASONING

if TYPE_CHECKING:
    from vllm.reasoning import ReasoningParser
    from vllm.tokenizers import TokenizerLike

KEPT = 128
# How many of a prompt's last tokens are looked at: chat templates end with the marker and line breaks.
PROMPT_TOKENS = 32


class Engine:
    """The regions of one engine, as its parsers say, or else its checkpoint; and the words of its reasoning parser."""

    def __init__(self, reasoning_parser: str, tokenizer: TokenizerLike, calls: Graph | None = None) -> None:
        self._reasoning_parser = reasoning_parser
        # Weak, because engines are kept as long as their tokenizers.
        self._tokenizer = ref(tokenizer)
        self._reasoning = self._own_regions() if reasoning_parser else None
        self._checkpoint = graph_of(tokenizer)
        self._added = dict(tokenizer.get_added_vocab()) if self._reasoning else {}
        self._hidden: dict[StopSet, Hidden] = {}
        self.note_calls(calls)

    def note_calls(self, calls: Graph | None) -> None:
        """To be called with the form of the tool parser, when it becomes known."""
        graph = with_reasoning(calls or self._checkpoint, self._reasoning) or {}
        self.graph: Frozen = frozen(graph)
        markers = [marker for edges in graph.values() for marker in edges]
        self._roles = {token_id for text, token_id in self._added.items() if not any(text in one for one in markers)}

    def hidden(self, stops: StopSet) -> Hidden:
        """The markers of a set that the text may leave out; kept, because many requests have the same."""
        if stops not in self._hidden:
            if len(self._hidden) == KEPT:
                self._hidden.clear()
            self._hidden[stops] = hidden_markers(self._tokenizer(), stops)
        return self._hidden[stops]

    def prompt_end(self, prompt_token_ids: Sequence[int]) -> str:
        """The text of the prompt's last tokens, special ones included."""
        tokenizer: Any = self._tokenizer()
        tail = list(prompt_token_ids[-PROMPT_TOKENS:])
        return str(tokenizer.decode(tail, skip_special_tokens=False)) if tail else ""

    def begins_inside(self, prompt_token_ids: Sequence[int], parser_options: Mapping[str, Any] | None) -> bool:
        """Whether its reasoning parser says that the answer begins in the reasoning.

        ``parser_options`` are the request's own, such as its ``chat_template_kwargs``.
        """
        if not self._reasoning:
            return False
        inside = BEGINS_INSIDE.get(self._reasoning_parser)
        if inside is not None:
            return inside
        parser, turn = self._parser(**parser_options or {}), self._turn(prompt_token_ids)
        if parser.is_reasoning_end(turn):
            return False
        # What the parser makes of text without a marker says in which state it is.
        parser.adjust_initial_state_from_prompt(turn)
        first = parser.model_tokenizer.encode("a", add_special_tokens=False)
        delta = parser.extract_reasoning_streaming("", "a", "a", [], first, first)
        return bool(delta and delta.reasoning)

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

    def _own_regions(self) -> Graph | None:
        name = self._reasoning_parser
        if name in REASONING:
            return REASONING[name]
        # Some parsers name their markers only where the model is asked to think.
        parser = self._parser(chat_template_kwargs={"thinking": True, "enable_thinking": True})
        opening, closing = parser.reasoning_start_str, parser.reasoning_end_str
        return {"answer": {opening: "reasoning"}, "reasoning": {closing: "answer"}} if opening and closing else None
