"""``Engine``: the regions of an engine's answers, the region in which an answer begins, and the vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

from tokenizers.decoders import ByteLevel
from vllm.reasoning import ReasoningParserManager

from stopscan import StopScanner, StopSet
from stopscan.engines import CHAT, Checkpoint, StopOptions
from stopscan.regions import Graph, graph_of
from stopscan.regions.shared import region_name, with_reasoning
from stopscan.tokens import TokenScanner, Vocabulary
from stopscan.vllm._parsers import BEGINS_INSIDE, HARMONY, OF_THE_CHECKPOINT, REASONING, form_of, form_of_calls

# This many tokens at the end of a prompt are searched for markers. They are enough, because chat templates end with a
# marker and line breaks.
PROMPT_TOKENS = 32
# The reasoning parser tells whether an answer begins in the reasoning. At most `MAX_TURNS` results are cached. The
# result for a prompt whose last turn has `MAX_TURN` tokens or more is not cached.
MAX_TURN = MAX_TURNS = 64
# A character has at most this many tokens: it has at most 4 bytes, and each token has at least one of them.
CHARACTER = 4
# In the list of regions that a route separates from the content, this entry stands for the whole answer.
ANSWER = "answer"

# `skip_special_tokens` leaves special tokens out of the text. This dict has the markers, and the stops of one token,
# that are then missing from the text as a whole or in part. The key is the id of the last token of a marker or stop.
# Several of them may end with the same token, so the value is a list: the token ids and the text of each.
Hidden = dict[int, list[tuple[tuple[int, ...], str]]]


class Engine:
    """What stopscan knows about an engine of vLLM. The regions come from the engine's parsers, or else from its
    checkpoint.

    If the reasoning parser cannot be made, raises the error of that parser.
    """

    # The regions that were logged last. They are logged again only after a change.
    logged = ""

    def __init__(self, tokenizer: Any, reasoning_parser: str = "", tool_parser: str | None = None) -> None:
        self.tokenizer, self._name = tokenizer, reasoning_parser
        # The markers with which a reasoning parser ends the reasoning, if it names them.
        self._ends: Collection[str] = ()
        self._reasoning = self._own_regions() if reasoning_parser else None
        self._hidden = lru_cache(maxsize=128)(self._find_hidden)
        self._inside: dict[Any, bool] = {}
        self._parsers: dict[str, Any] = {}
        self.know(tool_parser)

    def know(self, tool_parser: str | None) -> None:
        """Sets the tool parser by its name, which is not in vLLM's configuration but comes from the server."""
        template = graph_of(self.tokenizer)
        self._calls = template if tool_parser in OF_THE_CHECKPOINT else form_of_calls(tool_parser)
        self.graph: Graph = with_reasoning(self._calls or template, self._reasoning) or {}
        if self._ends:  # some reasoning parsers do not let a call end the reasoning
            inside = {mark: to for mark, to in self.graph["reasoning"].items()
                      if mark in self._ends or region_name(to) != "tool_call"}  # fmt: skip
            self.graph = {**self.graph, "reasoning": inside}
        # `narrow` turns the markers of all regions that a request does not protect into plain text.
        self._checkpoint = Checkpoint(self.tokenizer, graph=self.graph, narrow=True)
        # `_roles`: the ids of the added tokens that are in no marker, such as tokens that name a role. The last turn of
        # a prompt begins after the last of these tokens. Earlier turns are ignored: a `</think>` in them may be a
        # user's text.
        markers = [marker for edges in self.graph.values() for marker in edges]
        added = self.tokenizer.get_added_vocab().items() if self._reasoning else ()
        self._roles = {token_id for text, token_id in added if not any(text in marker for marker in markers)}

    @property
    def reasons(self) -> bool:
        """Whether the engine has a reasoning parser whose markers are known."""
        return bool(self._reasoning)

    def set_apart(self, parser: Any, tool_choice: Any) -> list[str]:
        """Returns the regions that a chat route separates from the content. ``parser`` is the class of the route's
        parser, or ``None``.

        The result contains ``ANSWER`` if the route treats all of the content as a call.
        """
        if parser is None:
            return []
        regions = ["reasoning"] * bool(self._reasoning and parser.reasoning_parser_cls)
        if regions and self._name == HARMONY:
            return [*CHAT]
        if parser.tool_parser_cls:
            # If a call is required, the whole answer is a call, unless the tool parser has
            # `supports_required_and_named = False`. Some releases of vLLM do not have this attribute.
            whole = getattr(parser.tool_parser_cls, "supports_required_and_named", True)
            if tool_choice not in (None, "auto", "none") and whole:
                return [*regions, ANSWER]
            # With the tool choice "none", calls stay in the content. Exception: if all parsers have
            # `engine_based_streaming`, they remove the calls from the content, and drop them.
            parsers = filter(None, (parser.reasoning_parser_cls, parser.tool_parser_cls))
            if tool_choice != "none" or all(getattr(each, "engine_based_streaming", False) for each in parsers):
                regions += ["tool_call"] * bool(self._calls)
        return regions

    def stops(self, options: StopOptions) -> StopSet:
        """Returns the ``StopSet`` of a request. Raises ``ValueError`` for a region that is not known."""
        return self._checkpoint.stops(options)

    @cached_property
    def _backend(self) -> Any:
        """The tokenizer without the class that transformers puts around it. In that class, ``encode`` starts a thread
        for each core, and ``decode`` takes several times as long."""
        backend = getattr(self.tokenizer, "_tokenizer", None)
        return backend if hasattr(backend, "encode_batch") else self.tokenizer

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary, or ``None`` if its bytes do not give the text that vLLM makes."""
        backend = getattr(self.tokenizer, "_tokenizer", None)
        if not isinstance(getattr(backend, "decoder", None), ByteLevel):
            return None
        vocabulary = Vocabulary(backend)
        return vocabulary if vocabulary.native else None

    def scanner(self, detokenizer: Any, request: Any, options: StopOptions, stops: StopSet) -> tuple[Any, Hidden]:
        """Returns the scanner of a request, and the markers that vLLM's text leaves out.

        The scanner reads tokens if ``vocabulary`` gives the text of vLLM's ``detokenizer``. Otherwise it reads
        vLLM's text.
        """
        params, prompt = request.sampling_params, request.prompt_token_ids or []
        shared: dict[str, Any] = {
            "include_stop": options.include_stop,
            "region": self._start_region(stops, prompt, options, request),
        }
        skip = bool(params.skip_special_tokens)
        if (
            self.vocabulary
            and hasattr(detokenizer, "stream")
            and (skip or params.spaces_between_special_tokens)
            # If the prompt ends inside a character, vLLM's answer repeats text of the prompt. A TokenScanner would not
            # repeat it. So a StopScanner scans vLLM's text.
            and not detokenizer.tokenizer.decode(prompt[-CHARACTER:], skip_special_tokens=skip).endswith("\ufffd")
        ):
            counts: Any = {"min_tokens": options.min_tokens, "unknown_ids": "count", "skip_special_tokens": skip}
            # TokenScanner raises an error for a marker that is partly a special token. Then a StopScanner scans vLLM's
            # text.
            with suppress(ValueError):
                return TokenScanner(self.vocabulary, stops, **shared, **counts), {}
        return StopScanner(stops, **shared), self._hidden(stops) if skip else {}

    def _start_region(self, stops: StopSet, prompt: Sequence[int], options: StopOptions, request: Any) -> str | None:
        """Returns the region (or the state of a region) in which the answer begins, or ``None`` for the first
        region."""
        regions = stops.regions
        if regions is None and not stops.protect:
            return None
        end = str(self._backend.decode(prompt[-PROMPT_TOKENS:], skip_special_tokens=False)) if prompt else ""
        thinks = options.start_protected is None and "reasoning" in map(region_name, regions or ())
        inside = thinks and self._begins_inside(prompt, getattr(request, "reasoning_parser_kwargs", None))
        return self._checkpoint.start_region(options, stops, end, inside=inside)

    def _begins_inside(self, prompt: Sequence[int], parser_options: Mapping[str, Any] | None) -> bool:
        """Returns whether the answer begins in the reasoning, according to the reasoning parser."""
        if not self._reasoning or self._name in BEGINS_INSIDE:
            return BEGINS_INSIDE.get(self._name, False)
        last = next((place for place in range(len(prompt) - 1, -1, -1) if prompt[place] in self._roles), -1)
        turn = prompt[last + 1 :]
        key = (repr(parser_options), *turn) if len(turn) < MAX_TURN else None
        if key not in self._inside:
            if len(self._inside) >= MAX_TURNS:
                self._inside.clear()
            self._inside[key] = self._parser_begins_inside(turn, parser_options)
        return self._inside[key] if key else self._inside.pop(key)

    def _parser_begins_inside(self, turn: Sequence[int], parser_options: Mapping[str, Any] | None) -> bool:
        try:
            parser = self._parser(**parser_options or {})
            if parser.is_reasoning_end(turn):
                return False
            # The parser does not say whether it is in the reasoning. So feed it a letter. If it returns the letter as
            # reasoning, the answer begins in the reasoning.
            parser.adjust_initial_state_from_prompt(turn)
            first = parser.model_tokenizer.encode("a", add_special_tokens=False)
            delta = parser.extract_reasoning_streaming("", "a", "a", [], first, first)
        except Exception:  # vLLM's route raises this error of the parser itself, so let the prompt's markers decide
            return False
        return bool(delta and delta.reasoning)

    def reasoning_ended(self, request: Any) -> bool:
        """Returns whether the prompt has ended the reasoning, according to the parser. The parser reads the whole
        prompt, also the words of users and the earlier answers that the template keeps."""
        if not self._reasoning or self._name in BEGINS_INSIDE:
            return False
        try:
            options = getattr(request, "reasoning_parser_kwargs", None) or {}
            if (key := repr(options)) not in self._parsers:
                self._parsers = {key: self._parser(**options)}
            return bool(self._parsers[key].is_reasoning_end(request.prompt_token_ids or []))
        except Exception:  # vLLM's route raises this error of the parser itself, so ignore it here
            return False

    def _parser(self, **options: Any) -> Any:
        return ReasoningParserManager.get_reasoning_parser(self._name)(self.tokenizer, **options)

    def _own_regions(self) -> Graph | None:
        if self._name in REASONING:
            return REASONING[self._name]
        if self._name in OF_THE_CHECKPOINT:
            return graph_of(self.tokenizer)
        # Some parsers name their markers only if the model is told to think.
        parser = self._parser(chat_template_kwargs={"thinking": True, "enable_thinking": True})
        start, end = parser.reasoning_start_str, parser.reasoning_end_str
        if not (start and end):
            return None
        # In vLLM's newer parsers, a tool call ends the reasoning even if the server has no tool parser. So also take
        # the markers that open a tool call, from the parser's form in `FORMATS`.
        form = form_of(self._name) if getattr(parser, "engine_based_streaming", False) else None
        inside = (form or {}).get("reasoning", {})
        self._ends = {end} | {mark for mark, to in inside.items() if region_name(to) == "tool_call" and end in inside}
        return {"answer": {start: "reasoning"}, "reasoning": dict.fromkeys(self._ends, "answer")}

    def _find_hidden(self, stops: StopSet) -> Hidden:
        markers = {marker for edges in (stops.regions or {}).values() for marker in edges}
        markers |= {marker for pair in stops.protect for marker in pair}
        table: Hidden = {}
        for text in sorted(markers.union(stops.stop)):
            encoded = self._backend.encode(text, add_special_tokens=False)
            ids = tuple(getattr(encoded, "ids", encoded))
            whole, shown = (self.tokenizer.decode(list(ids), skip_special_tokens=skip) for skip in (False, True))
            if whole != shown and (text in markers or len(ids) == 1):
                table.setdefault(ids[-1], []).append((ids, text))
        return table
