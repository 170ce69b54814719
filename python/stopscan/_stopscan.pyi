from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Literal, TypeVar, final, type_check_only

from typing_extensions import Self, disjoint_base

from stopscan.finish import EndReason, Finish

__version__: str

__all__ = [
    "Repeat",
    "RewriteSet",
    "RewriteStream",
    "Rewriter",
    "SegmentSet",
    "SegmentStream",
    "Segmenter",
    "StopMatch",
    "StopScanner",
    "StopSet",
    "StopStream",
    "TokenScanner",
    "TokenSegmenter",
    "Vocabulary",
    "__version__",
    "formats",
    "rewrite",
    "scan",
    "split",
    "truncate",
]

# Base classes with the members that several classes share. The compiled module does not have these base classes.

_Out = TypeVar("_Out", covariant=True)

@type_check_only
class _Copied:
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...

@type_check_only
class _Set(_Copied):
    @property
    def stop(self) -> tuple[str, ...]:
        """The hidden stops: those that are cut from the output."""
    @property
    def visible(self) -> tuple[str, ...]:
        """The visible stops: those that stay in the output."""
    @property
    def patterns(self) -> tuple[str, ...]:
        """The regular expressions that are hidden stops."""
    @property
    def visible_patterns(self) -> tuple[str, ...]:
        """The regular expressions that are visible stops."""
    @property
    def max_held(self) -> int | None:
        """The most code points that are withheld while a hidden pattern may match. ``None`` means the default,
        65,536.
        """
    @property
    def stop_in(self) -> tuple[str, ...]:
        """The regions in which stops fire."""
    @property
    def repeat(self) -> Repeat | None:
        """The rule for loops (text that repeats itself). ``None`` if loops are not a stop."""
    def region_after(self, prefix: str, /) -> str:
        r"""Returns the name of the region, or of the state of a region, that is open after ``prefix``.

        ``prefix`` is the assistant's own part of a prompt. Some chat templates end this part with ``<think>``.
        Leave the user's words out of ``prefix``.

        >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {}}
        >>> SegmentSet(markers).region_after("<think>\n")
        'reasoning'
        """
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@type_check_only
class _Scanner(_Copied):
    @property
    def region(self) -> str:
        """The name of the region that is open."""
    @property
    def match(self) -> StopMatch | None:
        """The stop that fired, or ``None``. Its ``offset`` counts code points of the input, markers included."""
    @property
    def held(self) -> str:
        """The text that is withheld because it may be the beginning of a hidden stop, or of a marker that is not
        in the output.
        """
    @property
    def unused(self) -> str:
        """The text after the stop in the delta or token that completed the stop."""
    def reset(self) -> None:
        """Goes back to the start of the stream. Returns nothing."""
    def copy(self) -> Self:
        """Returns a copy of the stream. The copy and the stream go on independently."""
    def snapshot(self) -> bytes:
        """Returns the state of the stream as bytes. A stream with an equal set and equal options can ``restore``
        it, also in another process or on another machine. The bytes do not contain the set, the tokenizer or
        the vocabulary.
        """
    def restore(self, snapshot: bytes) -> None:
        """Replaces the state of the stream by the state in ``snapshot``. Returns nothing.

        Raises ``ValueError`` for a snapshot that was made with another set or other options, for damaged bytes,
        and for an unknown version of the format. After an error the stream is as before.
        """

@type_check_only
class _OfTokens(_Scanner):
    @property
    def finish(self) -> Finish | None:
        """The ``Finish`` of the stream. ``None`` while the stream goes on."""
    @property
    def tokens_seen(self) -> int:
        """The number of tokens that were fed, for a usage report."""
    @property
    def tokens_kept(self) -> int:
        """How many tokens to keep: all tokens up to the last one that has text in the output. Cut token ids and
        logprobs to this length.
        """
    @property
    def tokens_in(self) -> dict[str, int]:
        """How many tokens each region has, for a usage report. Each call makes a new dict.

        A token counts in the region of its last character. If a stop cuts a token in two, the token counts if
        some of its text was emitted. Three kinds of tokens count in no region: a token that completes a marker,
        a token that a stop cuts off as a whole, and a stop token or EOS that ends the stream. Without regions
        the dict is ``{"answer": tokens_kept}``.
        """

@type_check_only
class _Stream(Iterator[_Out]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Out: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def close(self) -> None:
        """Closes the source. The stream then yields the output that is ready, and ends. Held text stays in ``held``.

        If closing the source fails, ``close`` raises the source's error. If another thread is using the stream,
        ``close`` raises ``RuntimeError``. In both cases the stream stays open, and ``close`` can be called again.
        """
    @property
    def held(self) -> str:
        """The text that is withheld because it may be the beginning of a hidden stop, a key, or a marker that is
        not in the output.
        """
    @property
    def closes(self) -> bool:
        """Whether the source can be closed. A plain iterator, such as transformers' streamer, cannot be closed: the model
        keeps generating after a stop.
        """

@type_check_only
class _ScanStream(_Stream[_Out]):
    @property
    def match(self) -> StopMatch | None:
        """The stop that fired, or ``None``."""
    @property
    def unused(self) -> str:
        """The text after the stop in the delta that completed the stop."""
    @property
    def region(self) -> str:
        """The name of the region that is open."""

@final
class StopMatch:
    """The stop that fired and where: ``text[offset:end] == sequence``.

    ``offset`` and ``end`` count code points of the stream's whole text. Matches are sorted by ``offset``, then ``end``.

    >>> StopMatch("END", 26).end
    29
    """

    __match_args__: ClassVar[tuple[Literal["sequence"], Literal["offset"]]]
    def __new__(
        cls, sequence: str, offset: int, pattern: str | None = None, period: int | None = None
    ) -> StopMatch: ...
    @property
    def sequence(self) -> str:
        """The stop as the user gave it. For a pattern or a loop: the text that matched."""
    @property
    def pattern(self) -> str | None:
        """The pattern that matched. ``None`` if the stop is not a pattern."""
    @property
    def period(self) -> int | None:
        """The length of the block that a loop repeats, in code points (see ``Repeat``). ``None`` if the stop is not a
        loop.
        """
    @property
    def offset(self) -> int:
        """Where the stop begins in the text of the stream, in code points."""
    @property
    def end(self) -> int:
        """Where the stop ends in the text of the stream, in code points."""
    def __lt__(self, other: StopMatch, /) -> bool: ...
    def __le__(self, other: StopMatch, /) -> bool: ...
    def __gt__(self, other: StopMatch, /) -> bool: ...
    def __ge__(self, other: StopMatch, /) -> bool: ...

@final
class Repeat(_Copied):
    r"""A stop that fires when the text repeats itself, at the first character that completes a loop.

    A loop is a block of at most ``max_period`` code points that comes at least ``count`` times in a row. All copies
    together have at least ``min_length`` code points, so a short block has to come more often. The first copy of a
    short block may be incomplete: the end of the block is enough. The stop is visible, and fires in every region.

    Raises ``ValueError`` for a ``count`` below 3, a ``max_period`` outside of 1 to 65,536, or a ``min_length`` below
    32.

    >>> StopSet(repeat=Repeat()).find("I will now fix the bug.\n" * 20).period
    24
    """
    def __new__(cls, count: int = 4, *, max_period: int = 1024, min_length: int = 256) -> Repeat: ...
    @property
    def count(self) -> int:
        """The fewest copies of a block that make a loop."""
    @property
    def max_period(self) -> int:
        """The most code points that a block may have."""
    @property
    def min_length(self) -> int:
        """The fewest code points that all copies of a block must have together."""

@final
class StopSet(_Set):
    r"""A compiled set of stops: immutable, hashable, picklable, shared by any number of threads and scanners.

    The stop that completes first fires. If several stops complete at the same character, the longest stop fires.

    - ``stop``: hidden stops, which are cut from the output. A single string is one stop. ``StopSet(stops)`` returns
      ``stops`` itself if it is a ``StopSet``.
    - ``visible``: stops that stay in the output.
    - ``patterns``: regular expressions in the syntax of Rust's regex crate, with ASCII ``\d``, ``\s``, ``\w`` and
      ``\b``. They are hidden stops. The match that completes first fires.
    - ``visible_patterns``: regular expressions whose match stays in the output. No text is withheld for them.
    - ``max_held``: the most code points that are withheld while one of the ``patterns`` may still match. A longer match
      does not fire: its text is emitted. Without ``max_held`` the limit is 65,536, and a pattern that could withhold
      ordinary text for ever is refused.
    - ``protect``: pairs of an opening and a closing marker. Between the markers, no stop except a loop fires. The two
      markers of a pair may be equal: one opens a region, and the next closes it.
    - ``regions``: a graph of regions as in ``SegmentSet``. In a ``StopSet`` the markers stay in the text. ``protect``
      is a short form of such a graph: it has the region ``answer``, in which stops fire, and a region for each pair,
      named after the opening marker of the pair.
    - ``stop_in``: the regions in which stops fire. The default is all regions; with ``protect``, only the answer.
    - ``repeat``: a ``Repeat`` that makes loops a stop.

    A stop that is given twice counts once.

    Raises ``ValueError`` for an empty stop or marker, a string with two meanings (such as a stop that is hidden and
    visible), a pattern that is not supported, more than 8,000,000 bytes of UTF-8, or more than 99 pairs. Raises
    ``TypeError`` for a stop that is not a string, and ``UnicodeEncodeError`` for a lone surrogate.

    >>> StopSet(["is", "a"]).find("this a")
    StopMatch('is', 2)
    """
    def __new__(
        cls,
        stop: StopSet | str | Iterable[str] | None = None,
        *,
        patterns: str | Iterable[str] | None = None,
        visible: str | Iterable[str] | None = None,
        visible_patterns: str | Iterable[str] | None = None,
        protect: Iterable[tuple[str, str]] | None = None,
        regions: Mapping[str, Mapping[str, str]] | None = None,
        stop_in: Iterable[str] | None = None,
        max_held: int | None = None,
        repeat: Repeat | None = None,
    ) -> StopSet: ...
    @property
    def protect(self) -> tuple[tuple[str, str], ...]:
        """The opening and closing markers of the protected regions."""
    @property
    def regions(self) -> dict[str, dict[str, str]] | None:
        """The graph of regions that was given, or ``None``. Each call makes a new dict."""
    def find(self, text: str, /, *, start_protected: bool = False, region: str | None = None) -> StopMatch | None:
        """Returns the match that a scanner reports when it reads all of ``text``, or ``None`` if no stop fires.

        >>> StopSet(["b", "ab"]).find("xab")
        StopMatch('ab', 1)
        """
    def truncate(
        self, text: str, /, *, include_stop: bool = False, start_protected: bool = False, region: str | None = None
    ) -> tuple[str, StopMatch | None]:
        """Returns the text before the stop, and the match. If no stop fires, returns ``text`` itself and ``None``.

        A visible stop stays in the text. If a loop fires, the first copy of the repeated block stays. With
        ``include_stop=True``, all of the stop stays.

        >>> StopSet("END").truncate("The END.")
        ('The ', StopMatch('END', 4))
        """

@final
class StopScanner(_Scanner):
    """Scans one stream: give ``feed`` each delta, emit the text that ``feed`` returns, and call ``flush`` at the end.

    The returned texts, joined, are the text before the stop, or all text if no stop fires.

    - ``stop``: a ``StopSet``, or the stops that make a set.
    - ``include_stop``: whether every stop stays in the output.
    - ``start_protected``: whether the stream begins inside the first protected region of the set.
    - ``region``: where the stream begins: a region, or a state of one, such as ``"answer/after reasoning"``.

    Only one thread at a time may feed a scanner: a ``feed`` during another ``feed`` raises ``RuntimeError``. Any thread
    may read ``match``, ``held`` and ``region``: the read waits until a running ``feed`` has ended.

    >>> scanner = StopScanner(["END"])
    >>> scanner.feed("The E"), scanner.held
    ('The ', 'E')
    >>> scanner.feed("ND."), scanner.match, scanner.unused
    ('', StopMatch('END', 4), '.')
    """
    def __new__(
        cls,
        stop: StopSet | str | Iterable[str] | None,
        *,
        include_stop: bool = False,
        start_protected: bool = False,
        region: str | None = None,
    ) -> StopScanner: ...
    @property
    def stops(self) -> StopSet:
        """The ``StopSet`` of the stream."""
    def feed(self, delta: str, /, *, armed: bool = True) -> str:
        """Reads ``delta`` and returns the text that is safe to emit now. If nothing is held, this is the object ``delta``
        itself.

        After a match the text is ``""``. With ``armed=False``, a stop that completes inside ``delta`` does not fire. A
        stop that begins inside ``delta`` and completes in a later delta with ``armed=True`` does fire.

        Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
        error the scanner is as before.

        >>> StopScanner("END").feed("END E", armed=False)
        'END '
        """
    def bypass(self, text: str, /) -> str:
        """Returns the held text and ``text``, joined, without scanning ``text``.

        Use it for text that must not be scanned, such as the arguments of a tool call. The text that was held
        can then no longer become a stop or marker. An open region stays open. After a match the result is
        empty.

        >>> scanner = StopScanner("END")
        >>> scanner.feed("EN"), scanner.bypass("-"), scanner.feed("D")
        ('', 'EN-', 'D')
        """
    def flush(self) -> str:
        r"""Returns the held text, which belongs to the open region. Call ``flush`` at the end of the stream.

        The held text can then no longer become a stop or marker. But a pattern that waits for the next
        character, such as one that ends with ``\b``, may complete here.
        """

@final
class StopStream(_ScanStream[str]):
    """Iterates over deltas and yields non-empty text that is safe to emit. Also a context manager. Made by ``scan``.

    The iterable of deltas is the source. When the source ends, the stream yields the held text. When a stop fires, the
    stream closes the source. When the source raises an error, the stream raises this error, and ``held`` still has the
    withheld text.
    """
    @property
    def stops(self) -> StopSet:
        """The ``StopSet`` of the stream."""

@final
class RewriteSet(_Copied):
    """Keys (the texts to replace) and their replacements, compiled: immutable, hashable, picklable, shared by any number
    of threads and streams.

    The text is read from left to right. If several keys begin at the same place, the longest of them is replaced. The
    search goes on after this key. All other text stays. Replacements are not searched for keys.

    ``RewriteSet(replacements)`` returns ``replacements`` itself if it is a ``RewriteSet``.

    >>> RewriteSet({"<P1>": "Ada", "<P12>": "Grace"}).rewrite("<P12> and <P1>.")
    'Grace and Ada.'
    """
    def __new__(cls, replacements: RewriteSet | Mapping[str, str]) -> Self: ...
    @property
    def replacements(self) -> dict[str, str]:
        """The keys and their replacements, sorted by key. Each call makes a new dict."""
    def rewrite(self, text: str, /) -> str:
        """Returns ``text``, a whole text, with its keys replaced. If nothing is replaced, returns the object ``text``
        itself.
        """
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Rewriter(_Copied):
    """Replaces keys in one stream: give ``feed`` each delta, emit the text that ``feed`` returns, and call ``flush`` at
    the end. The output does not depend on how the text is cut into deltas.

    - ``replacements``: a ``RewriteSet``, or a mapping of keys to their replacements.

    Only one thread at a time may feed a rewriter: a ``feed`` during another ``feed`` raises ``RuntimeError``.

    >>> rewriter = Rewriter({"<P1>": "Ada"})
    >>> rewriter.feed("Dear <P"), rewriter.held, rewriter.feed("1>, <"), rewriter.flush()
    ('Dear ', '<P', 'Ada, ', '<')
    """
    def __new__(cls, replacements: RewriteSet | Mapping[str, str]) -> Self: ...
    @property
    def held(self) -> str:
        """The text that is withheld because it may be the beginning of a key. If it already is a key, a longer key may
        still follow.
        """
    @property
    def set(self) -> RewriteSet:
        """The ``RewriteSet`` of the rewriter."""
    def feed(self, delta: str, /) -> str:
        """Reads ``delta`` and returns the text that is safe to emit now. If nothing is held and nothing is replaced, this
        is the object ``delta`` itself.

        Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
        error the rewriter is as before.
        """
    def flush(self) -> str:
        """Ends the text: returns the held text with its keys replaced. More text may be fed afterwards, but a key
        cannot begin before the flush and end after it.
        """
    def reset(self) -> None:
        """Goes back to the start of the stream. Returns nothing."""
    def copy(self) -> Self:
        """Returns a copy of the stream. The copy and the stream go on independently."""
    def snapshot(self) -> bytes:
        """Returns the state of the stream as bytes. A rewriter with an equal set can ``restore`` it, also in another
        process or on another machine. The bytes do not contain the set.
        """
    def restore(self, snapshot: bytes) -> None:
        """Replaces the state of the stream by the state in ``snapshot``. Returns nothing.

        Raises ``ValueError`` for a snapshot that was made with another set, for damaged bytes, and for an unknown
        version of the format. After an error the stream is as before.
        """

@final
class RewriteStream(_Stream[str]):
    """Iterates over deltas and yields their text, with the keys of a ``RewriteSet`` replaced. Also a context manager. Made
    by ``rewrite``. Never yields an empty string.

    The iterable of deltas is the source. When the source ends, the stream yields the held text with its keys replaced.
    When the source raises an error, the stream raises this error, and ``held`` still has the withheld text.
    """
    @property
    def set(self) -> RewriteSet:
        """The ``RewriteSet`` of the stream."""

def rewrite(deltas: Iterable[str], /, replacements: RewriteSet | Mapping[str, str]) -> RewriteStream:
    """Returns an iterator of the text of ``deltas``, in which each key of ``replacements`` is replaced by its value.

    The iterator has the attributes ``held``, ``set`` and ``closes``. ``replacements`` is the same as in ``Rewriter``.

    >>> list(rewrite(["Dear <", "P1>, ", "<"], {"<P1>": "Ada"}))
    ['Dear ', 'Ada, ', '<']
    """

@disjoint_base
class Vocabulary(_Copied):
    """The bytes of each token id of a tokenizer.

    ``stopscan.tokens.Vocabulary`` reads a tokenizer and calls this class. ``tokens`` is the content of a
    ``tokenizer.json`` as bytes, or a list with one item for each id: a string or bytes for the text of a token, an int
    for a byte token (the value of its byte), ``None`` for an id without a token. If ``tokens`` is ``None``, the
    tokenizer itself decodes.
    """
    def __new__(
        cls,
        tokens: list[str | bytes | int | None] | bytes | None,
        *,
        special: set[int] | None = None,
        firsts: dict[int, str] | None = None,
        strays: str = "parts",
        strip_first_space: bool = False,
        special_ends_character: bool = False,
    ) -> Self: ...
    @property
    def native(self) -> bool:
        """Whether stopscan decodes streams itself, from the bytes of each token. If not, the tokenizer decodes them."""
    def _parts(self) -> tuple[list[Any], dict[str, Any]]:
        """For pickle: returns the argument and the keyword arguments of a call that makes an equal vocabulary."""

@final
class TokenScanner(_OfTokens):
    """Scans one stream of token ids: ``feed`` returns the text that is safe to emit, and ``finish`` says why the
    stream ended.

    The first argument is a tokenizer, or the ``Vocabulary`` of a tokenizer. ``stop``, ``include_stop``,
    ``start_protected`` and ``region`` are the same as in ``StopScanner``.

    - ``stop_token_ids``, ``eos_token_ids``: tokens that end the stream. The text of such a token is not emitted.
    - ``max_tokens``: the number of tokens after which the stream ends.
    - ``min_tokens``: the number of tokens at the start of the stream in which stops and stop tokens are ignored. A
      stop string that begins in these tokens and completes later fires. An EOS among them has no text, and the
      stream goes on.
    - ``eos_ends_early``: whether an EOS among the first ``min_tokens`` tokens ends the stream. Set it for an engine
      that ends the sequence there.
    - ``unknown_ids``: ``"refuse"`` raises ``ValueError`` for an id that the tokenizer lacks. ``"count"`` counts the
      id as a token without text, also in ``prompt_token_ids``. Use it for a model that has more ids than its
      tokenizer.
    - ``prompt_token_ids``: the tokens of the prompt. They decide whether the first token keeps its leading space.
      If the prompt ends inside a character, the stream may complete that character.
    - ``skip_special_tokens``: whether special tokens are left out of the text. The default is true. A stop or a
      marker that is one special token is still found. A marker that has a special token and other text raises
      ``ValueError``: pass ``skip_special_tokens=False``.

    A pickle contains the vocabulary, once for all streams in the pickle. To move a stream to a process that has the
    tokenizer, use ``snapshot``, which does not contain the vocabulary.

    If a token ends the stream for several reasons, ``finish`` reports the first of: stop, stop token, EOS,
    ``max_tokens``. The text equals the tokenizer's ``decode`` of all ids. The text of a stop token or EOS that ends
    the stream is neither scanned nor emitted, but a stop string that is the whole text of this token still fires.
    (The text of the token that reaches ``max_tokens`` is emitted.) If a token's whole text is a marker of the open
    region, no stop fires inside the token.

    >>> scanner = TokenScanner(tokenizer, ["END"], eos_token_ids=2)
    >>> for token_id in generate(prompt):
    ...     print(scanner.feed(token_id), end="")
    ...     if scanner.finish:
    ...         break
    """
    def __new__(
        cls,
        tokenizer_or_vocabulary: Any,
        /,
        stop: StopSet | str | Iterable[str] | None = (),
        *,
        stop_token_ids: int | Iterable[int] | None = (),
        eos_token_ids: int | Iterable[int] | None = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        include_stop: bool = False,
        start_protected: bool = False,
        region: str | None = None,
        skip_special_tokens: bool = True,
        prompt_token_ids: Iterable[int] | None = (),
        unknown_ids: Literal["refuse", "count"] = "refuse",
        eos_ends_early: bool = False,
    ) -> TokenScanner: ...
    @property
    def stops(self) -> StopSet:
        """The ``StopSet`` of the stream."""
    def feed(self, token_id: int, /) -> str:
        """Returns the text that is safe to emit after ``token_id``. After the end of the stream the result is ``""``.

        Raises ``ValueError`` for an id that the tokenizer does not have, and ``TypeError`` for an id that is not an
        integer. After an error the stream is as before. Some ids are accepted even if the tokenizer does not have them:
        an EOS, a stop token that ends the stream, and every id after the end of the stream.
        """
    def feed_many(self, token_ids: Iterable[int], /) -> str:
        """Returns what is safe to emit after all of ``token_ids``: the results of ``feed`` for each id, joined.

        Use ``feed_many`` if a step of the model yields several tokens. Tokens after the end of the stream
        change nothing. If an id is invalid, ``feed_many`` raises the same error as ``feed``, and no id counts.
        """
    def flush(self, reason: EndReason = "eos") -> str:
        """Ends the stream for ``reason`` and returns the rest of its text: the held text, and U+FFFD if the last
        character is incomplete.

        ``reason`` is any reason of ``Finish`` except ``"stop_sequence"`` and ``"stop_token"``, which only the
        stream sets. Other values raise ``ValueError``. After the end of the stream the result is empty, and
        nothing changes.
        """

@final
class TokenSegmenter(_OfTokens):
    """Cuts one stream of token ids into segments: ``feed`` returns the segments that are safe to emit, and ``finish``
    says why the stream ended.

    The first argument is a tokenizer, or the ``Vocabulary`` of a tokenizer. ``segments``, ``region`` and
    ``include_stop`` are the same as in ``Segmenter``. All other arguments are the same as in ``TokenScanner``.

    >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
    >>> segmenter = TokenSegmenter(tokenizer, markers, eos_token_ids=2)
    >>> for token_id in generate(prompt):
    ...     for region, text, part in segmenter.feed(token_id):
    ...         print(region, text)
    >>> reasoning_tokens = segmenter.tokens_in["reasoning"]
    """
    def __new__(
        cls,
        tokenizer_or_vocabulary: Any,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        /,
        *,
        region: str | None = None,
        stop_token_ids: int | Iterable[int] | None = (),
        eos_token_ids: int | Iterable[int] | None = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        include_stop: bool = False,
        skip_special_tokens: bool = True,
        prompt_token_ids: Iterable[int] | None = (),
        unknown_ids: Literal["refuse", "count"] = "refuse",
        eos_ends_early: bool = False,
    ) -> TokenSegmenter: ...
    @property
    def segments(self) -> SegmentSet:
        """The ``SegmentSet`` of the stream."""
    def feed(self, token_id: int, /) -> list[tuple[str, str, int]]:
        """Returns the list of segments that are safe to emit after ``token_id``. After the end of the stream it is empty.

        Raises the errors of ``TokenScanner.feed``. After an error the stream is as before.
        """
    def feed_many(self, token_ids: Iterable[int], /) -> list[tuple[str, str, int]]:
        """Returns what is safe to emit after all of ``token_ids``: the results of ``feed`` for each id, joined.

        Use ``feed_many`` if a step of the model yields several tokens. Tokens after the end of the stream
        change nothing. If an id is invalid, ``feed_many`` raises the same error as ``feed``, and no id counts.
        """
    def flush(self, reason: EndReason = "eos") -> list[tuple[str, str, int]]:
        """Ends the stream for ``reason`` and returns the rest of its text: the held text, and U+FFFD if the last
        character is incomplete.

        ``reason`` is any reason of ``Finish`` except ``"stop_sequence"`` and ``"stop_token"``, which only the
        stream sets. Other values raise ``ValueError``. After the end of the stream the result is empty, and
        nothing changes.
        """

def formats() -> list[tuple[str, str, list[tuple[str, list[tuple[str, str, bool, bool]]]]]]:
    """Returns the known formats of model output, for ``segments.FORMATS``: the name, models and states of each."""

def scan(
    deltas: Iterable[str],
    /,
    stop: StopSet | str | Iterable[str] | None,
    *,
    include_stop: bool = False,
    start_protected: bool = False,
    region: str | None = None,
) -> StopStream:
    """Returns an iterator of the safe text of ``deltas``.

    The iterator has the attributes ``match``, ``held``, ``unused``, ``region``, ``stops`` and ``closes``. As soon as a
    stop fires, the iterator closes ``deltas``. ``stop`` and the options are the same as in ``StopScanner``.

    >>> list(scan(["The E", "ast. EN", "D."], "END"))
    ['The ', 'East. ']
    """

def truncate(
    text: str,
    /,
    stop: StopSet | str | Iterable[str] | None,
    *,
    include_stop: bool = False,
    start_protected: bool = False,
    region: str | None = None,
) -> tuple[str, StopMatch | None]:
    """Returns the text before the stop, and the match. If no stop fires, returns ``text`` itself and ``None``.

    ``include_stop=True`` keeps the stop at the end of the text. ``stop`` and the options are the same as in
    ``StopScanner``.

    >>> truncate("The END.", "END")
    ('The ', StopMatch('END', 4))
    """

@final
class SegmentSet(_Set):
    r"""A compiled set of stops, and of markers that cut a text into segments: immutable, hashable, picklable, shared by
    any number of threads and segmenters.

    - ``markers``: for each region its markers, and for each marker the region to which the marker leads. A stream
      begins in the first region. ``SegmentSet(segments)`` returns ``segments`` itself if it is a ``SegmentSet``.
    - ``stop``, ``visible``, ``patterns``, ``visible_patterns``, ``max_held``, ``repeat``: as in ``StopSet``.
    - ``stop_in``: the regions in which stops fire. The default is all regions.

    Only the markers and stops of the open region are looked for. The one that completes first counts. If several
    complete at the same character, the longest counts.

    A region can have several states, each with markers of its own: ``"tool_call/in reasoning"`` is a state of the
    region ``tool_call``. ``markers`` has the names of states, and a segment has the name of its region. A marker that
    leads to ``keep("tool_call")`` stays in the text, as the beginning of the text of ``tool_call``. A marker that leads
    to ``stay("tool_call/body")`` stays in the text and begins no new part.

    Raises ``ValueError`` for an empty stop or marker, a string that is a stop and a marker, an unknown region, a
    marker that cannot complete because another one ends inside it, over 100 regions, or over 8,000,000 bytes of UTF-8.
    Raises ``TypeError`` for a value that is not a string or mapping, and ``UnicodeEncodeError`` for a lone surrogate.

    >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
    >>> SegmentSet(markers, stop=["END"], stop_in=["answer"]).region_after("<think>\n")
    'reasoning'
    """
    def __new__(
        cls,
        markers: SegmentSet | Mapping[str, Mapping[str, str]],
        stop: str | Iterable[str] | None = None,
        *,
        visible: str | Iterable[str] | None = None,
        patterns: str | Iterable[str] | None = None,
        visible_patterns: str | Iterable[str] | None = None,
        stop_in: Iterable[str] | None = None,
        max_held: int | None = None,
        repeat: Repeat | None = None,
    ) -> SegmentSet: ...
    def find(self, text: str, /, *, region: str | None = None) -> StopMatch | None:
        """Returns the match that a segmenter reports when it reads all of ``text``, or ``None`` if no stop fires.

        >>> SegmentSet({"a": {"<": "b"}, "b": {}}, stop="END", stop_in="b").find("END<END")
        StopMatch('END', 4)
        """
    @property
    def markers(self) -> dict[str, dict[str, str]]:
        """The graph of regions. A key is a region or state, and its value is a dict: from each marker in it to the state
        to which the marker leads. Each call makes a new dict.
        """
    @property
    def regions(self) -> tuple[str, ...]:
        """The names of the regions; a stream begins in the first."""

@final
class Segmenter(_Scanner):
    """Cuts one stream into segments: give ``feed`` each delta, emit the segments that ``feed`` returns, and call ``flush``
    at the end.

    A segment is a tuple: the region, the text, and the part. Markers are taken out of the text. The segments' texts and
    the markers between them, joined in order, are the input.

    The part is a number that distinguishes two tool calls in a row. It is 0 at the start of the stream. A marker adds 1
    if it leads to another region or state, or is kept in the text with ``keep``. A marker with ``stay`` adds nothing.
    Text of one part may come in several segments. Join the text of the reasoning and of the answer by region, and the
    text of calls by part.

    - ``segments``: a ``SegmentSet``, or the markers that make a set.
    - ``region``: where the stream begins. The default is the first region.
    - ``include_stop``: whether every stop stays in the output.

    Only one thread at a time may feed a segmenter: a ``feed`` during another ``feed`` raises ``RuntimeError``. Any
    thread may read ``match``, ``held`` and ``region``: the read waits until a running ``feed`` has ended.

    >>> segmenter = Segmenter({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
    >>> segmenter.feed("<think>5?</thi"), segmenter.held
    ([('reasoning', '5?', 1)], '</thi')
    >>> segmenter.feed("nk>6."), segmenter.region
    ([('answer', '6.', 2)], 'answer')
    """
    def __new__(
        cls,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        /,
        *,
        region: str | None = None,
        include_stop: bool = False,
    ) -> Segmenter: ...
    @property
    def segments(self) -> SegmentSet:
        """The ``SegmentSet`` of the stream."""
    def feed(self, delta: str, /, *, armed: bool = True) -> list[tuple[str, str, int]]:
        """Reads ``delta`` and returns the list of segments that are safe to emit now. No segment is empty, and two
        segments in a row always belong to different parts.

        After a match the list is empty. With ``armed=False``, a stop that completes inside ``delta`` does not fire. A
        stop that begins inside ``delta`` and completes in a later delta with ``armed=True`` does fire. Markers also
        count with ``armed=False``.

        Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
        error the segmenter is as before.
        """
    def bypass(self, text: str, /) -> list[tuple[str, str, int]]:
        """Returns the held text and ``text``, joined, without scanning ``text``.

        Use it for text that must not be scanned, such as the arguments of a tool call. The text that was held
        can then no longer become a stop or marker. An open region stays open. After a match the result is
        empty.

        >>> scanner = StopScanner("END")
        >>> scanner.feed("EN"), scanner.bypass("-"), scanner.feed("D")
        ('', 'EN-', 'D')
        """
    def flush(self) -> list[tuple[str, str, int]]:
        r"""Returns the held text, which belongs to the open region. Call ``flush`` at the end of the stream.

        The held text can then no longer become a stop or marker. But a pattern that waits for the next
        character, such as one that ends with ``\b``, may complete here.
        """

@final
class SegmentStream(_ScanStream[tuple[str, str, int]]):
    """Iterates over deltas and yields segments that are safe to emit. Also a context manager. Made by ``split``.

    The iterable of deltas is the source. When the source ends, the stream yields the held text. When a stop fires, the
    stream closes the source. When the source raises an error, the stream raises this error, and ``held`` still has the
    withheld text.
    """
    @property
    def segments(self) -> SegmentSet:
        """The ``SegmentSet`` of the stream."""

def split(
    deltas: Iterable[str],
    segments: SegmentSet | Mapping[str, Mapping[str, str]],
    /,
    *,
    region: str | None = None,
    include_stop: bool = False,
) -> SegmentStream:
    """Returns an iterator of the segments of ``deltas``.

    The iterator has the attributes ``match``, ``held``, ``unused``, ``region``, ``segments`` and ``closes``. As soon as
    a stop fires, the iterator closes ``deltas``. ``segments`` and the options are the same as in ``Segmenter``.

    >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
    >>> list(split(["<thi", "nk>5?</", "think>6."], markers))
    [('reasoning', '5?', 1), ('answer', '6.', 2)]
    """
