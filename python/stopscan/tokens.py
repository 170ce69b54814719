"""Token ids in, safe text out: ``StopScanner`` behind the tokenizers library's incremental decoder."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import takewhile
from operator import eq, index
from typing import Any, get_args

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from stopscan._stopscan import StopScanner, StopSet
from stopscan.finish import EndReason, Finish

__all__ = ["TokenScanner"]

# How many of the prompt's last tokens the decoder sees at least, so that a leading space or the second half of a
# character comes out right.
PROMPT_TOKENS = 16

# The tokenizers library takes ids of 32 bits.
ID_LIMIT = 2**32

# What the decoders make of half a character.
REPLACEMENT = "\ufffd"


class TokenScanner:
    """Scans one stream of token ids: ``feed`` returns the text that is safe to emit, ``finish`` says why it ended.

    ``tokenizer`` is a ``tokenizers.Tokenizer`` or anything that carries one as ``backend_tokenizer``. ``stop``,
    ``include_stop`` and ``start_protected`` are those of ``StopScanner``. The stream ends at a stop, at a token of
    ``stop_token_ids`` or ``eos_token_ids`` (their text is not emitted), or at ``max_tokens`` tokens; of those that
    come with one token, the first of this list is reported. None of the first three counts in the first ``min_tokens``
    tokens; a stop string that completes later counts although it began there. ``prompt_token_ids`` are what the text
    continues: their end decides on a leading space.

    ``tokens_seen`` counts the tokens fed. ``tokens_kept`` counts those up to the last that contributed to the text
    emitted so far, and is where to cut ids and logprobs. With ``skip_special_tokens``, special tokens have no text, so
    that no stop or marker spelled by one is found.

    The text is that of the tokenizer's ``decode``, with one exception: where stray bytes follow a character spelled by
    byte-fallback tokens, ``decode`` turns the character into U+FFFD, too, but here it was emitted before.

    >>> scanner = TokenScanner(tokenizer, ["END"], eos_token_ids=[2])
    >>> for token_id in generate(prompt):
    ...     print(scanner.feed(token_id), end="")
    ...     if scanner.finish:
    ...         break
    """

    def __init__(
        self,
        tokenizer: Any,
        stop: StopSet | str | Iterable[str] | None = (),
        /,
        *,
        stop_token_ids: Iterable[int] = (),
        eos_token_ids: Iterable[int] = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        include_stop: bool = False,
        start_protected: bool = False,
        skip_special_tokens: bool = True,
        prompt_token_ids: Sequence[int] = (),
    ) -> None:
        if min_tokens < 0 or (max_tokens is not None and max_tokens < min_tokens):
            raise ValueError(f"min_tokens {min_tokens} is not between 0 and max_tokens {max_tokens}")
        self.finish: Finish | None = None
        self.tokens_seen = 0
        self.tokens_kept = 0
        self._scanner = StopScanner(stop, include_stop=include_stop, start_protected=start_protected)
        self._decoder = _Decoder(_backend(tokenizer), skip_special_tokens, prompt_token_ids)
        self._stop_token_ids = _token_ids("stop_token_ids", stop_token_ids)
        self._end_token_ids = self._stop_token_ids | _token_ids("eos_token_ids", eos_token_ids)
        self._min_tokens = min_tokens
        self._max_tokens = max_tokens
        # In code points, and counted only while text is held: what was read and emitted of the text, and where that of
        # each token begins that is not kept yet.
        self._read = 0
        self._emitted = 0
        self._starts: deque[int] = deque()
        if max_tokens == 0:
            self.finish = Finish("length")

    def feed(self, token_id: int, /) -> str:
        """The text that is safe to emit now that ``token_id`` was read; ``""`` once the stream is over.

        Raises ``ValueError`` for an id that the tokenizer does not have and ``TypeError`` for what is no integer; the
        stream is then as before.
        """
        if self.finish is not None:
            return ""
        token_id = index(token_id)
        armed = self.tokens_seen >= self._min_tokens
        if armed and token_id in self._end_token_ids:
            return self._end(token_id)
        text = self._decoder.step(token_id)
        self.tokens_seen += 1
        safe = ""
        if text:
            scanner = self._scanner
            safe = scanner.feed(text) if armed else scanner.feed(text, armed=False)  # a keyword costs as much as a scan
            if safe is text and self._read == self._emitted and scanner.match is None:
                self.tokens_kept = self.tokens_seen
            else:
                self._settle(text, safe)
        return safe + self.close("length") if self.tokens_seen == self._max_tokens else safe

    def close(self, reason: EndReason = "eos") -> str:
        """The rest of the text, when the stream ends for another ``reason``: half a character, and the held text.

        The half character comes out as U+FFFD. ``reason`` is one of ``Finish`` that needs no stop or token id.
        """
        if reason not in get_args(EndReason):
            raise ValueError(f"reason must be one of {', '.join(get_args(EndReason))}, not {reason!r}")
        if self.finish is not None:
            return ""
        return self._close(Finish(reason), armed=self.tokens_seen > self._min_tokens)

    def _end(self, token_id: int) -> str:
        """Ends the stream at a stop token or EOS, unless its text completes a stop: then the stop ends it."""
        with_token = self._scanner.copy()
        with_token.feed(self._decoder.tail(token_id))
        if with_token.match is not None:
            self._decoder.pending.append(token_id)
            self.tokens_seen += 1
            return self._scan(self._decoder.tail(), armed=True)
        is_stop = token_id in self._stop_token_ids
        safe = self._close(Finish("stop_token", token_id) if is_stop else Finish("eos"), armed=True)
        self.tokens_seen += 1
        return safe

    def _close(self, finish: Finish, *, armed: bool) -> str:
        safe = self._scan(self._decoder.tail(), armed=armed)
        if self.finish is None:
            self.finish = finish
            safe += self._keep(self._scanner.flush())
        return safe

    def _scan(self, text: str, *, armed: bool) -> str:
        safe = self._scanner.feed(text, armed=armed)
        self._settle(text, safe)
        return safe

    def _settle(self, text: str, safe: str) -> None:
        """Accounts for the newest ``text``, of which ``safe`` and what was held before is emitted."""
        if text:
            tokens = self.tokens_seen - self.tokens_kept - len(self._starts)
            starts = self._decoder.starts(text, tokens) if tokens > 1 else [0]
            self._starts.extend([self._read + start for start in starts])
            self._read += len(text)
        self._keep(safe)
        match = self._scanner.match
        if match is not None:
            self.finish = Finish("stop_sequence", match.sequence, match.offset)

    def _keep(self, safe: str) -> str:
        self._emitted += len(safe)
        while self._starts and self._starts[0] < self._emitted:
            self._starts.popleft()
            self.tokens_kept += 1
        return safe


class _Decoder:
    """A ``DecodeStream`` that survives its faults and knows what it has not given out yet."""

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool, prompt_token_ids: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._skip_special_tokens = skip_special_tokens
        self._stream = DecodeStream(skip_special_tokens=skip_special_tokens)
        self._context: tuple[int, ...] = ()  # the tokens of the last text
        self.pending: list[int] = []  # the tokens since: halves of a character, or without text
        self._prompt = self._cut = ""
        for token_id in self._end_of(prompt_token_ids):
            self.step(token_id)
        self._prompt = self.tail()  # not to be given out with the text that completes it

    def _end_of(self, prompt: Sequence[int]) -> list[int]:
        """As much of the prompt as the decoder needs: it begins with a character."""
        size = PROMPT_TOKENS
        while True:
            ids = [*map(index, prompt[-size:])]
            for token_id in ids:
                self._check(token_id)
            if size >= len(prompt) or self._decode(ids)[:1] not in ("", REPLACEMENT):
                return ids
            size *= 2

    def step(self, token_id: int) -> str:
        """The text that ``token_id`` completes, ``""`` if none."""
        try:
            text = self._stream.step(self._tokenizer, token_id)
        except Exception as error:  # the library raises no narrower class
            self._check(token_id)
            if "prefix" not in str(error).lower():
                raise
            text = self._restart(token_id)
        if not text:
            self._check(token_id)
            self.pending.append(token_id)
            return ""
        if self.pending:
            self._context, self.pending = (*self.pending, token_id), []
        else:
            self._context = (token_id,)
        if self._prompt:
            text, self._prompt = self._own(text), ""
        return text

    def tail(self, *more: int) -> str:
        """The text of the tokens that completed none, and ``more``; half characters come out as U+FFFD."""
        pending = (*self.pending, *more)
        before, whole = self._decode(self._context), self._decode((*self._context, *pending))
        return self._own(whole[len(before) :] if whole.startswith(before) else self._decode(pending))

    def starts(self, text: str, tokens: int) -> list[int]:
        """Where in ``text``, the last that was given out, that of each of its ``tokens`` begins."""
        group = self.pending or self._context
        of_prompt = len(group) - tokens
        cut = self._cut if of_prompt else ""
        return [_start(self._decode(group[:count]), cut + text) - len(cut) for count in range(of_prompt, len(group))]

    def _own(self, text: str) -> str:
        """``text`` without what the prompt's own tokens say of it."""
        self._cut = text[: _common(self._prompt, text)]
        return text[len(self._cut) :]

    def _restart(self, token_id: int) -> str:
        # Bytes that continue no character make the byte-fallback decoder take back, as U+FFFD, the whole characters
        # before them, which the stream has given out; it calls that an invalid prefix and would for ever.
        self._stream = DecodeStream(skip_special_tokens=self._skip_special_tokens)
        pending = [*self.pending, token_id]
        return "".join(self._stream.step(self._tokenizer, token_id) or "" for token_id in pending)

    def _has(self, token_id: int) -> bool:
        return 0 <= token_id < ID_LIMIT and self._tokenizer.id_to_token(token_id) is not None

    def _check(self, token_id: int) -> None:
        if not self._has(token_id):
            raise ValueError(f"token id {token_id} is not in the tokenizer's vocabulary") from None

    def _decode(self, token_ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(token_ids, skip_special_tokens=self._skip_special_tokens)
        return text


def _start(before: str, text: str) -> int:
    # Several tokens may share the U+FFFD that ends the stream.
    return _common(before.rstrip(REPLACEMENT) if before == text else before, text)


def _common(text: str, other: str) -> int:
    return sum(takewhile(bool, map(eq, text, other)))


def _token_ids(name: str, token_ids: Iterable[int]) -> frozenset[int]:
    unique = frozenset(map(index, token_ids))
    for token_id in unique:
        if not 0 <= token_id < ID_LIMIT:
            raise ValueError(f"{name}: {token_id} is no token id")
    return unique


def _backend(tokenizer: Any) -> Tokenizer:
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not isinstance(backend, Tokenizer):
        raise TypeError(
            f"tokenizer: expected a tokenizers.Tokenizer or what carries one, got {type(tokenizer).__name__}"
        )
    return backend
