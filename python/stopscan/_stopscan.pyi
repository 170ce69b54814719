from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Literal, TypeVar, final, type_check_only

from typing_extensions import Self, disjoint_base

from stopscan.finish import EndReason, Finish

__all__ = [
    "Repeat",
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
    "formats",
    "scan",
    "split",
    "truncate",
]

# What several classes have in common. The compiled module has no such bases.

_Out = TypeVar("_Out", covariant=True)

@type_check_only
class _Copied:
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...

@type_check_only
class _Set(_Copied):
    @property
    def stop(self) -> tuple[str, ...]: ...
    @property
    def visible(self) -> tuple[str, ...]: ...
    @property
    def patterns(self) -> tuple[str, ...]: ...
    @property
    def max_held(self) -> int | None: ...
    @property
    def stop_in(self) -> tuple[str, ...]: ...
    @property
    def repeat(self) -> Repeat | None: ...
    def region_after(self, prefix: str, /) -> str: ...

@type_check_only
class _Scanner(_Copied):
    @property
    def region(self) -> str: ...
    @property
    def match(self) -> StopMatch | None: ...
    @property
    def held(self) -> str: ...
    def reset(self) -> None: ...
    def copy(self) -> Self: ...
    def snapshot(self) -> bytes: ...
    def restore(self, snapshot: bytes) -> None: ...

@type_check_only
class _OfTokens(_Scanner):
    @property
    def finish(self) -> Finish | None: ...
    @property
    def tokens_seen(self) -> int: ...
    @property
    def tokens_kept(self) -> int: ...
    @property
    def tokens_in(self) -> dict[str, int]: ...

@type_check_only
class _Stream(Iterator[_Out]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Out: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def close(self) -> None: ...
    @property
    def match(self) -> StopMatch | None: ...
    @property
    def held(self) -> str: ...
    @property
    def unused(self) -> str: ...

@final
class StopMatch:
    __match_args__: ClassVar[tuple[Literal["sequence"], Literal["offset"]]]
    def __new__(
        cls, sequence: str, offset: int, pattern: str | None = None, period: int | None = None
    ) -> StopMatch: ...
    @property
    def sequence(self) -> str: ...
    @property
    def pattern(self) -> str | None: ...
    @property
    def period(self) -> int | None: ...
    @property
    def offset(self) -> int: ...
    @property
    def end(self) -> int: ...
    def __lt__(self, other: StopMatch, /) -> bool: ...
    def __le__(self, other: StopMatch, /) -> bool: ...
    def __gt__(self, other: StopMatch, /) -> bool: ...
    def __ge__(self, other: StopMatch, /) -> bool: ...

@final
class Repeat(_Copied):
    def __new__(cls, count: int = 4, *, max_period: int = 1024, min_length: int = 256) -> Repeat: ...
    @property
    def count(self) -> int: ...
    @property
    def max_period(self) -> int: ...
    @property
    def min_length(self) -> int: ...

@final
class StopSet(_Set):
    def __new__(
        cls,
        stop: StopSet | str | Iterable[str] | None = None,
        /,
        *,
        patterns: str | Iterable[str] | None = None,
        visible: str | Iterable[str] | None = None,
        protect: Iterable[tuple[str, str]] | None = None,
        regions: Mapping[str, Mapping[str, str]] | None = None,
        stop_in: Iterable[str] | None = None,
        max_held: int | None = None,
        repeat: Repeat | None = None,
    ) -> StopSet: ...
    @property
    def protect(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def regions(self) -> dict[str, dict[str, str]] | None: ...
    def find(self, text: str, /, *, start_protected: bool = False, region: str | None = None) -> StopMatch | None: ...
    def truncate(
        self, text: str, /, *, include_stop: bool = False, start_protected: bool = False, region: str | None = None
    ) -> tuple[str, StopMatch | None]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class StopScanner(_Scanner):
    def __new__(
        cls,
        stop: StopSet | str | Iterable[str] | None,
        /,
        *,
        include_stop: bool = False,
        start_protected: bool = False,
        region: str | None = None,
    ) -> StopScanner: ...
    @property
    def stops(self) -> StopSet: ...
    @property
    def unused(self) -> str: ...
    def feed(self, delta: str, /, *, armed: bool = True) -> str: ...
    def bypass(self, text: str, /) -> str: ...
    def flush(self) -> str: ...

@final
class StopStream(_Stream[str]): ...

@disjoint_base
class Vocabulary(_Copied):
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
    def native(self) -> bool: ...
    def _parts(self) -> tuple[list[Any], dict[str, Any]]: ...

@final
class TokenScanner(_OfTokens):
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
    def feed(self, token_id: int, /) -> str: ...
    def feed_many(self, token_ids: Iterable[int], /) -> str: ...
    def flush(self, reason: EndReason = "eos") -> str: ...

@final
class TokenSegmenter(_OfTokens):
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
    def feed(self, token_id: int, /) -> list[tuple[str, str, int]]: ...
    def feed_many(self, token_ids: Iterable[int], /) -> list[tuple[str, str, int]]: ...
    def flush(self, reason: EndReason = "eos") -> list[tuple[str, str, int]]: ...

def formats() -> list[tuple[str, str, list[tuple[str, list[tuple[str, str, bool]]]]]]: ...
def scan(
    deltas: Iterable[str],
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    start_protected: bool = False,
    region: str | None = None,
) -> StopStream: ...
def truncate(
    text: str,
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    start_protected: bool = False,
    region: str | None = None,
) -> tuple[str, StopMatch | None]: ...

@final
class SegmentSet(_Set):
    def __new__(
        cls,
        markers: SegmentSet | Mapping[str, Mapping[str, str]],
        /,
        *,
        stop: str | Iterable[str] | None = None,
        visible: str | Iterable[str] | None = None,
        patterns: str | Iterable[str] | None = None,
        stop_in: Iterable[str] | None = None,
        max_held: int | None = None,
        repeat: Repeat | None = None,
    ) -> SegmentSet: ...
    @property
    def markers(self) -> dict[str, dict[str, str]]: ...
    @property
    def regions(self) -> tuple[str, ...]: ...

@final
class Segmenter(_Scanner):
    def __new__(
        cls,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        /,
        *,
        region: str | None = None,
        include_stop: bool = False,
    ) -> Segmenter: ...
    @property
    def segments(self) -> SegmentSet: ...
    @property
    def unused(self) -> str: ...
    def feed(self, delta: str, /, *, armed: bool = True) -> list[tuple[str, str, int]]: ...
    def flush(self) -> list[tuple[str, str, int]]: ...

@final
class SegmentStream(_Stream[tuple[str, str, int]]):
    @property
    def region(self) -> str: ...

def split(
    deltas: Iterable[str],
    segments: SegmentSet | Mapping[str, Mapping[str, str]],
    /,
    *,
    region: str | None = None,
    include_stop: bool = False,
) -> SegmentStream: ...
