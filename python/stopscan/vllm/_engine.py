"""What stopscan knows of an engine of vLLM: the regions of its answers, where an answer begins, and its vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

from tokenizers.decoders import ByteLevel
from vllm.reasoning import ReasoningParserManager

from stopscan import StopScanner, StopSet
from stopscan.engines import CHAT, Checkpoint, StopOptions
from stopscan.regions import Graph, begins, graph_of, region_name, restricted, with_reasoning
from stopscan.tokens import TokenScanner, Vocabulary
from stopscan.vllm._parsers import BEGINS_INSIDE, HARMONY, OF_THE_CHECKPOINT, REASONING, form_of, form_of_calls

# How many of a prompt's last tokens are looked at: chat templates end with a marker and line breaks.
PROMPT_TOKENS = 32
# No more tokens than this have a part in one character.
CHARACTER = 4
# Among the regions that a route tells apart, this one says that all of the answer is a call.
ANSWER = "answer"

# Markers, and stops of one token, that `skip_special_tokens` leaves out of the text, by their last token.
Hidden = dict[int, list[tuple[tuple[int, ...], str]]]


class Engine:
    """The regions of an engine's answers are those of its parsers, or else those of its checkpoint.

    Raises whatever the reasoning parser raises when it is made.
    """

    # What the log says of it.
    said = ""

    def __init__(self, tokenizer: Any, reasoning_parser: str = "", tool_parser: str | None = None) -> None:
        self.tokenizer, self._name = tokenizer, reasoning_parser
        # The markers with which a reasoning parser ends the reasoning, if it names them.
        self._ends: Collection[str] = ()
        self._reasoning = self._own_regions() if reasoning_parser else None
        self._hidden = lru_cache(maxsize=128)(self._find_hidden)
        self.know(tool_parser)

    def know(self, tool_parser: str | None) -> None:
        """To be called when a server names its tool parser, which no configuration does."""
        template = graph_of(self.tokenizer)
        self._calls = template if tool_parser in OF_THE_CHECKPOINT else form_of_calls(tool_parser)
        self.graph: Graph = with_reasoning(self._calls or template, self._reasoning) or {}
        if self._ends:  # the calls of a form end its reasoning, but not every parser reads them there
            inside = {mark: to for mark, to in self.graph["reasoning"].items()
                      if mark in self._ends or region_name(to) != "tool_call"}  # fmt: skip
            self.graph = {**self.graph, "reasoning": inside}
        # The tokens of the chat template: what a user writes, such as `</think>`, stands before the last of them.
        markers = [marker for edges in self.graph.values() for marker in edges]
        added = self.tokenizer.get_added_vocab().items() if self._reasoning else ()
        self._roles = {token_id for text, token_id in added if not any(text in marker for marker in markers)}

    def told_apart(self, parser: Any, tool_choice: Any) -> list[str]:
        """Returns the regions that a chat route, whose parser is of the class ``parser``, tells from the content.

        ``ANSWER`` is among them if the route takes all of the content for a call.
        """
        if parser is None:
            return []
        told = ["reasoning"] * bool(self._reasoning and parser.reasoning_parser_cls)
        if told and self._name == HARMONY:
            return [*CHAT]
        if parser.tool_parser_cls and tool_choice != "none":
            # Releases that do not say so take every required call for the whole answer.
            whole = getattr(parser.tool_parser_cls, "supports_required_and_named", True)
            if tool_choice in (None, "auto") or not whole:
                told += ["tool_call"] * bool(self._calls)
            else:
                told.append(ANSWER)
        return told

    def stops(self, asked: StopOptions, default: Collection[Any]) -> StopSet:
        """Returns the set of a request. ``default`` has the regions in which no stop fires if the request does not say.

        Raises ``ValueError`` for a region that is not known.
        """
        if asked.protect is None and ANSWER in default:
            return StopSet(repeat=asked.stops.repeat)
        # What is not told apart is text.
        names = [name for name in CHAT if name in (asked.protect or default)]
        return Checkpoint(self.tokenizer, graph=restricted(self.graph, names)).stops(
            asked.stops, asked.protect, default
        )

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary, if its bytes make the text that vLLM would make."""
        backend = getattr(self.tokenizer, "_tokenizer", None)
        if not isinstance(getattr(backend, "decoder", None), ByteLevel):
            return None
        vocabulary = Vocabulary(backend)
        return vocabulary if vocabulary.native else None

    def scanner(self, theirs: Any, request: Any, asked: StopOptions, stops: StopSet) -> tuple[Any, Hidden]:
        """Returns the scanner of a request: of its tokens if a vocabulary makes the text, else of vLLM's text, with the
        markers that this text leaves out. ``theirs`` is vLLM's detokenizer."""
        params, prompt = request.sampling_params, list(request.prompt_token_ids or ())
        closed = stops.regions is not None or stops.protect
        region = self._begins(stops, prompt, asked.start_protected, request) if closed else None
        options: dict[str, Any] = {"include_stop": params.include_stop_str_in_output, "region": region}
        skip = params.skip_special_tokens
        if (
            self.vocabulary
            and hasattr(theirs, "stream")
            and (skip or params.spaces_between_special_tokens)
            # After a prompt that ends in half a character, vLLM gives text of the prompt out again.
            and not theirs.tokenizer.decode(prompt[-CHARACTER:], skip_special_tokens=skip).endswith("\ufffd")
        ):
            counts = {"min_tokens": params.min_tokens, "unknown_ids": "count", "skip_special_tokens": skip}
            # A marker of special tokens and text together is a ValueError: vLLM's text is scanned then.
            with suppress(ValueError):
                return TokenScanner(self.vocabulary, stops, **options, **counts), {}
        return StopScanner(stops, **options), self._hidden(stops) if skip else {}

    def _begins(self, stops: StopSet, prompt: Sequence[int], start: bool | None, request: Any) -> str | None:
        """The state in which the answer begins."""
        end = str(self.tokenizer.decode(prompt[-PROMPT_TOKENS:], skip_special_tokens=False)) if prompt else ""
        thinks = start is None and "reasoning" in map(region_name, stops.regions or ())
        inside = thinks and self._begins_inside(prompt, request.reasoning_parser_kwargs)
        try:
            return begins(stops, end, start, inside=inside)
        except ValueError:  # the region in which it should begin has a stop for a marker, which counts more
            return None

    def _begins_inside(self, prompt: Sequence[int], parser_options: Mapping[str, Any] | None) -> bool:
        """Whether the reasoning parser says that the answer begins in the reasoning."""
        if not self._reasoning or self._name in BEGINS_INSIDE:
            return BEGINS_INSIDE.get(self._name, False)
        last = next((place for place in range(len(prompt) - 1, -1, -1) if prompt[place] in self._roles), -1)
        turn = prompt[last + 1 :]
        try:
            parser = self._parser(**parser_options or {})
            if parser.is_reasoning_end(turn):
                return False
            # What the parser makes of text without a marker says in which state it is.
            parser.adjust_initial_state_from_prompt(turn)
            first = parser.model_tokenizer.encode("a", add_special_tokens=False)
            delta = parser.extract_reasoning_streaming("", "a", "a", [], first, first)
        except Exception:  # vLLM's own code: the prompt's markers decide then, and the route raises the same
            return False
        return bool(delta and delta.reasoning)

    def _parser(self, **options: Any) -> Any:
        return ReasoningParserManager.get_reasoning_parser(self._name)(self.tokenizer, **options)

    def _own_regions(self) -> Graph | None:
        if self._name in REASONING:
            return REASONING[self._name]
        if self._name in OF_THE_CHECKPOINT:
            return graph_of(self.tokenizer)
        # Some parsers name their markers only if the model is asked to think.
        parser = self._parser(chat_template_kwargs={"thinking": True, "enable_thinking": True})
        start, end = parser.reasoning_start_str, parser.reasoning_end_str
        if not (start and end):
            return None
        # vLLM's newer parsers are described as our forms are: a call ends the reasoning, whoever reads the call.
        form = form_of(self._name) if getattr(parser, "engine_based_streaming", False) else None
        inside = (form or {}).get("reasoning", {})
        self._ends = {end} | {mark for mark, to in inside.items() if region_name(to) == "tool_call" and end in inside}
        return {"answer": {start: "reasoning"}, "reasoning": dict.fromkeys(self._ends, "answer")}

    def _find_hidden(self, stops: StopSet) -> Hidden:
        markers = {marker for edges in (stops.regions or {}).values() for marker in edges}
        markers |= {marker for pair in stops.protect for marker in pair}
        # A transformers tokenizer's own `encode` starts a thread for each core.
        backend: Any = getattr(self.tokenizer, "_tokenizer", None)
        encode = (backend if hasattr(backend, "encode_batch") else self.tokenizer).encode
        table: Hidden = {}
        for text in sorted(markers.union(stops.stop)):
            encoded = encode(text, add_special_tokens=False)
            ids = tuple(getattr(encoded, "ids", encoded))
            whole, shown = (self.tokenizer.decode(list(ids), skip_special_tokens=skip) for skip in (False, True))
            if whole != shown and (text in markers or len(ids) == 1):
                table.setdefault(ids[-1], []).append((ids, text))
        return table
