"""What makes text of the tokens of a stream: a native vocabulary, where bytes alone make its text, or else vLLM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stopscan import StopSet, _stopscan
from stopscan.tokens import TokenScanner, Vocabulary

if TYPE_CHECKING:
    from vllm.tokenizers import TokenizerLike
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.detokenizer import BaseIncrementalDetokenizer

Ids = tuple[int, ...]
# The markers that the text does not show whole, by their last token: the ids of each, and whether it opens a region.
Hidden = dict[int, list[tuple[Ids, str, bool]]]

# So many tokens may have a part in one character.
CHARACTER = 4

_known: WeakKeyDictionary[Any, Vocabulary | None] = WeakKeyDictionary()


def token_scanner(
    detokenizer: BaseIncrementalDetokenizer,
    tokenizer: TokenizerLike,
    request: EngineCoreRequest,
    stops: StopSet,
    hidden: Hidden,
    begins: dict[str, Any],
) -> TokenScanner:
    """The scanner of a request, whose text is that of ``detokenizer``."""
    from vllm.v1.engine.detokenizer import FastIncrementalDetokenizer

    params = request.sampling_params
    skip = params.skip_special_tokens
    options = {"min_tokens": params.min_tokens, "include_stop": params.include_stop_str_in_output, **begins}
    if type(detokenizer) is FastIncrementalDetokenizer and (skip or params.spaces_between_special_tokens):
        # After half a character, vLLM gives its text out again.
        end = detokenizer.tokenizer.decode((request.prompt_token_ids or [])[-CHARACTER:], skip_special_tokens=skip)
        vocabulary = native(tokenizer)
        if vocabulary is not None and not end.endswith("\ufffd"):
            with suppress(ValueError):  # a marker of special tokens and text together
                return TokenScanner(vocabulary, stops, skip_special_tokens=skip, **options)
    return TokenScanner(Decoding(Window(detokenizer, hidden)), stops, **options)


def native(tokenizer: TokenizerLike) -> Vocabulary | None:
    """The vocabulary of a tokenizer, kept as long as it lives; ``None`` unless bytes alone make its text."""
    if tokenizer not in _known:
        try:
            vocabulary = Vocabulary(tokenizer._tokenizer)
        except (AttributeError, TypeError):
            vocabulary = None
        if vocabulary is not None:
            options = vocabulary._parts()[1] if vocabulary.native else {"strays": None}
            if options["strays"] != "parts" or options["firsts"] or options["strip_first_space"]:
                vocabulary = None
        _known[tokenizer] = vocabulary
    return _known[tokenizer]


def hidden_markers(tokenizer: TokenizerLike, stops: StopSet) -> Hidden:
    """The markers of a set, and its stops that are one token, of which ``skip_special_tokens`` hides a part."""
    graph: Any = stops.regions or {"": dict.fromkeys((one for one, _ in stops.protect), "")}
    openings = set(next(iter(graph.values())))
    markers = {marker for edges in graph.values() for marker in edges}
    markers |= {marker for pair in stops.protect for marker in pair}
    table: Hidden = {}
    for marker in sorted(markers.union(stops.stop)):
        ids = _encode(tokenizer, marker)
        if (marker in markers or len(ids) == 1) and not _shown(tokenizer, ids):
            table.setdefault(ids[-1], []).append((ids, marker, marker in openings))
    return table


class Decoding(_stopscan.Vocabulary):
    """To ``TokenScanner``, a vocabulary of which each stream is decoded by its own ``window``."""

    window: Window

    def __new__(cls, window: Window) -> Decoding:
        made = super().__new__(cls, None)
        made.window = window
        return made

    def _window(self, skip_special_tokens: bool, prompt_token_ids: Sequence[int]) -> Window:
        return self.window


class Window:
    """vLLM's own text of one stream, token by token, and the markers that the text hides."""

    def __init__(self, detokenizer: BaseIncrementalDetokenizer, hidden: Hidden) -> None:
        self._token_ids = detokenizer.token_ids
        self._decode = detokenizer.decode_next
        self._hidden = hidden
        # The visible end of a marker that opens a region: it stands inside.
        self._late = ""

    def step(self, token_id: int, number: int, /) -> tuple[list[tuple[str, int]], str | None]:
        """The text that comes with a token, which is in the list of token ids, and the marker that ends with it."""
        text = self._late + self._decode(token_id)
        self._late = ""
        for ids, marker, opens in self._hidden.get(token_id, ()):
            if _ends_with(self._token_ids, ids):
                if opens:
                    text, self._late = "", text
                return [(text, number)] if text else [], marker
        return [(text, number)] if text else [], None

    def tail(self, token_id: int | None, number: int, /) -> tuple[list[tuple[str, int]], None]:
        """What is left at the end: vLLM drops half a character."""
        return [(self._late, number)] if self._late else [], None

    def copy(self) -> Window:
        """Itself: a stream of vLLM's goes on in one place alone."""
        return self

    def spelled(self, markers: Iterable[str], /) -> None:
        """No marker is refused: those that are hidden are found by their token ids."""


def _encode(tokenizer: Any, marker: str) -> Ids:
    # transformers' own `encode` starts a thread for each core.
    backend: Any = getattr(tokenizer, "_tokenizer", None)
    if hasattr(backend, "encode_batch"):
        return tuple(backend.encode(marker, add_special_tokens=False).ids)
    return tuple(tokenizer.encode(marker, add_special_tokens=False))


def _shown(tokenizer: TokenizerLike, token_ids: Ids) -> bool:
    whole, shown = (tokenizer.decode(list(token_ids), skip_special_tokens=skip) for skip in (False, True))
    return bool(whole == shown)


def _ends_with(token_ids: Sequence[int], marker: Ids) -> bool:
    return tuple(token_ids[-len(marker) :]) == marker
