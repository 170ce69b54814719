"""What vLLM's requests ask, and what its engines know of the regions of their answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from stopscan import StopScanner, StopSet
from stopscan.engines import CHAT, Checkpoint, Defaults, StopOptions, read_options
from stopscan.regions import graph_of, with_reasoning
from stopscan.tokens import TokenScanner, Vocabulary
from stopscan.vllm._detokenizer import Hidden, failures, scanning
from stopscan.vllm._parsers import BEGINS_INSIDE, REASONING, form_of_calls

PREFIX = "stopscan_"
FIELDS = ("patterns", "max_held", "protect", "start_protected", "repeat")
# In a request's `extra_args`: the regions that its route tells from the answer.
TOLD = "stopscan.told"
# So many tokens may have a part in one character.
CHARACTER = 4

# Before the first engine names have no markers yet.
ANY = {"answer": {f"<{name}>": name for name in CHAT}, **{name: {f"</{name}>": "answer"} for name in CHAT}}

defaults = Defaults()
engines: dict[int, Engine] = {}
tool_parser: str | None = None


class Engine:
    """The regions of an engine's answers, as its parsers say, or else its checkpoint."""

    def __init__(self, tokenizer: Any, reasoning_parser: str = "") -> None:
        self.tokenizer, self._name = tokenizer, reasoning_parser
        self._hidden: dict[StopSet, Hidden] = {}
        self._reasoning = REASONING.get(reasoning_parser)
        if reasoning_parser and self._reasoning is None:
            # Some parsers name their markers only where the model is asked to think.
            parser = self._parser(chat_template_kwargs={"thinking": True, "enable_thinking": True})
            start, end = parser.reasoning_start_str, parser.reasoning_end_str
            if start and end:
                self._reasoning = {"answer": {start: "reasoning"}, "reasoning": {end: "answer"}}
        self.join()

    def join(self) -> None:
        """To be called when the tool parser becomes known."""
        self.calls = form_of_calls(tool_parser)
        graph = with_reasoning(self.calls or graph_of(self.tokenizer), self._reasoning) or {}
        self.checkpoint = Checkpoint(self.tokenizer, graph=graph)
        markers = [marker for edges in graph.values() for marker in edges]
        added = self.tokenizer.get_added_vocab().items() if self._reasoning else ()
        self._roles = {token_id for text, token_id in added if not any(text in marker for marker in markers)}

    def told(self, request: Any) -> list[str]:
        """The regions that the route of ``request`` tells from the answer."""
        calls = self.calls and request.tools and request.tool_choice != "none"
        return ["reasoning"] * bool(self._reasoning) + ["tool_call"] * bool(calls)

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary, if its bytes make the text that vLLM would make."""
        from tokenizers.decoders import ByteLevel

        backend = getattr(self.tokenizer, "_tokenizer", None)
        if not isinstance(getattr(backend, "decoder", None), ByteLevel):
            return None
        vocabulary = Vocabulary(backend)
        return vocabulary if vocabulary.native else None

    def scanner(self, theirs: Any, request: Any, asked: StopOptions, stops: StopSet) -> tuple[Any, Hidden]:
        """The scanner of a request, and what its text hides of the markers."""
        params, prompt = request.sampling_params, list(request.prompt_token_ids or ())
        region = None
        if stops.regions is not None or stops.protect:
            end = str(self.tokenizer.decode(prompt[-32:], skip_special_tokens=False)) if prompt else ""
            inside = asked.start_protected is None and self._begins_inside(prompt, request.reasoning_parser_kwargs)
            region = self.checkpoint.begins(stops, end, asked.start_protected, inside=inside)
        options = {"region": region, "include_stop": params.include_stop_str_in_output}
        skip = params.skip_special_tokens
        if self.vocabulary and hasattr(theirs, "stream") and (skip or params.spaces_between_special_tokens):
            # After half a character, vLLM gives its text out again.
            tail = self.vocabulary and theirs.tokenizer.decode(prompt[-CHARACTER:], skip_special_tokens=skip)
            if not tail.endswith("\ufffd"):
                options = {**options, "min_tokens": params.min_tokens, "unknown_ids": "count"}
                try:
                    return TokenScanner(self.vocabulary, stops, skip_special_tokens=skip, **options), {}
                except ValueError:  # a marker of special tokens and text together
                    del options["min_tokens"], options["unknown_ids"]
        if skip and stops not in self._hidden:
            self._hidden[stops] = _hidden(self.tokenizer, stops)
        return StopScanner(stops, **options), self._hidden[stops] if skip else {}

    def _begins_inside(self, prompt: Sequence[int], parser_options: Any) -> bool:
        """Whether the reasoning parser says that the answer begins in the reasoning."""
        if not self._reasoning:
            return False
        if self._name in BEGINS_INSIDE:
            return BEGINS_INSIDE[self._name]
        # What a user writes, such as `</think>`, stands before the last token of the chat template.
        last = next((place for place in range(len(prompt) - 1, -1, -1) if prompt[place] in self._roles), -1)
        parser, turn = self._parser(**parser_options or {}), prompt[last + 1 :]
        if parser.is_reasoning_end(turn):
            return False
        # What the parser makes of text without a marker says in which state it is.
        parser.adjust_initial_state_from_prompt(turn)
        first = parser.model_tokenizer.encode("a", add_special_tokens=False)
        delta = parser.extract_reasoning_streaming("", "a", "a", [], first, first)
        return bool(delta and delta.reasoning)

    def _parser(self, **options: Any) -> Any:
        from vllm.reasoning import ReasoningParserManager

        return ReasoningParserManager.get_reasoning_parser(self._name)(self.tokenizer, **options)


def refusal(problem: object) -> Exception:
    """vLLM's own validation error: its engine makes a 500 of a ``ValueError``, and a 400 of this."""
    from vllm.exceptions import VLLMValidationError

    words = str(problem)
    error: Exception = VLLMValidationError(words, parameter=words.split(" ", 1)[0].rstrip(":"))
    return error


def asked_by(params: Any) -> StopOptions | None:
    """What a request asks, ``None`` if nothing. Raises vLLM's validation error."""
    given = {name: value for name, value in (params.extra_args or {}).items() if name.startswith(PREFIX)}
    if not (params.stop or given or defaults.repeat):
        return None
    try:
        asked = _read(tuple(params.stop or ()), json.dumps(given, sort_keys=True), defaults)
        _check(asked, defaults)
    except (TypeError, ValueError) as error:
        raise refusal(error) from None
    if not params.detokenize and (asked.stops.patterns or given.get(PREFIX + "repeat")):
        raise refusal("stopscan_patterns and stopscan_repeat need detokenize")
    if failures.off and beyond_vllm(asked, asked.protect):
        raise refusal("stopscan_patterns, _protect and _repeat are off here, because stopscan failed repeatedly")
    return asked


@lru_cache(maxsize=128)
def _read(stop: tuple[str, ...], given: str, defaults: Defaults) -> StopOptions:
    # Of several stops at one character vLLM reports the first of its list: one that ends with an earlier one never.
    first = {text: place for place, text in reversed([*enumerate(stop)])}
    kept = [
        text for place, text in enumerate(stop)
        if not any(first.get(text[cut:], place) < place for cut in range(len(text)))
    ]  # fmt: skip
    own = {"stop": kept} if kept else {}
    return read_options(json.loads(given), defaults, prefix=PREFIX, fields=FIELDS, own=own)


def _check(asked: StopOptions, defaults: Defaults) -> None:
    """Raises ``ValueError`` unless an engine has the request's regions."""
    problem = ValueError()
    for checkpoint in [engine.checkpoint for engine in engines.values()] or [Checkpoint(None, graph=ANY)]:
        try:
            stops = checkpoint.stops(asked.stops, asked.protect, CHAT)
            if asked.start_protected and not (asked.protect or stops.regions):
                raise ValueError("stopscan_start_protected needs the markers of a region in stopscan_protect")
            return
        except ValueError as error:
            problem = error
    words = str(problem)
    raise ValueError(f"stopscan_protect {words.removeprefix('protect: ')}" if words.startswith("protect") else words)


def beyond_vllm(asked: StopOptions, protect: Any) -> bool:
    """Whether a request has what vLLM cannot keep."""
    return bool(asked.stops.patterns or asked.stops.repeat or protect)


def take(state: Any, tokenizer: Any, request: Any, *, trims: bool) -> bool:
    """Finds the stops of a request in the place of its detokenizer; whether it does."""
    params = request.sampling_params
    asked = asked_by(params)
    if asked is None or not len(asked.stops) and not asked.stops.repeat:
        return False
    if getattr(request, "resumable", False):  # several answers in one stream: vLLM takes no stops there
        if asked.stops.patterns:
            raise refusal("stopscan_patterns cannot be used with streaming input, as stop cannot")
        return False
    engine = engines.setdefault(id(tokenizer), Engine(tokenizer)) if id(tokenizer) not in engines else engines[id(tokenizer)]
    default = (params.extra_args or {}).get(TOLD, ()) if defaults.protect is None else defaults.protect
    try:
        stops = engine.checkpoint.stops(asked.stops, asked.protect, default)
    except ValueError as error:
        raise refusal(error) from None
    beyond = beyond_vllm(asked, stops.regions or stops.protect)
    if not beyond and (failures.off or params.min_tokens and _nested(asked.stops.stop)):
        return False
    try:
        scanner, hidden = engine.scanner(state.detokenizer, request, asked, stops)
    except BaseException as error:
        failures.note(error, "was refused" if beyond else "was left to vLLM's own stops")
        if beyond:
            raise refusal(f"stop: stopscan failed: {error!r}") from error
        return False
    state.detokenizer.__class__ = scanning(type(state.detokenizer))
    state.detokenizer.arm(scanner, tokenizer, request, beyond=beyond, trims=trims, hidden=hidden)
    return True


def _nested(stops: Sequence[str]) -> bool:
    """Whether a stop has another inside. Such a stop can fire if the other completes within ``min_tokens``."""
    return any(one in other[:-1] for other in stops for one in stops)


def _hidden(tokenizer: Any, stops: StopSet) -> Hidden:
    """The markers of a set, and its stops that are one token, of which ``skip_special_tokens`` hides a part."""
    markers = {marker for edges in (stops.regions or {}).values() for marker in edges}
    markers |= {marker for pair in stops.protect for marker in pair}
    backend = getattr(tokenizer, "_tokenizer", None)  # transformers' own `encode` starts a thread for each core
    table: Hidden = {}
    for marker in sorted(markers.union(stops.stop)):
        if hasattr(backend, "encode_batch"):
            ids = tuple(backend.encode(marker, add_special_tokens=False).ids)
        else:
            ids = tuple(tokenizer.encode(marker, add_special_tokens=False))
        whole, shown = (tokenizer.decode(list(ids), skip_special_tokens=skip) for skip in (False, True))
        if whole != shown and (marker in markers or len(ids) == 1):
            table.setdefault(ids[-1], []).append((ids, marker))
    return table
