"""Reads the options about stops from a request, a command line or the environment."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from reprlib import Repr
from typing import Any

from stopscan import Repeat, StopSet
from stopscan.regions.shared import NAMES, read_protect
from stopscan.repeats import add_repeat, in_environment, read_repeat
from stopscan.segments import SegmentSet

# The largest number in an option. Engines' token ids have 32 bits, and no answer is long enough for a larger count.
MAX_COUNT = 2**31 - 1

# The most characters of an error message, which goes back to the client and quotes parts of its request.
MAX_MESSAGE = 400

# A route puts this name into the option `default` if no stop but `repeat` may fire in the whole answer. For example, a
# request may require a tool call. The answer then has no content, so there is no text for stops.
ANSWER = "answer"

# Other names that APIs use for the options.
API_NAMES = {
    "stop_sequences": "stop",
    "stop_regex": "patterns",
    "include_stop_str_in_output": "include_stop",
    "no_stop_trim": "include_stop",
}

# The options that are lists of stops. A request may also have stops in a field of the engine. Then the stops of both
# lists count.
LISTS = ("stop", "patterns", "visible_patterns")

_shortened = Repr()
_shortened.maxstring = _shortened.maxother = 60


@dataclass(frozen=True)
class Limits:
    """The limits of one request. ``patterns`` limits the count of patterns and visible patterns together. ``bytes``
    limits the text of all stops together, and separately the text of all markers together."""

    stops: int = 1024
    patterns: int = 64
    bytes: int = 8192
    regions: int = 64


@dataclass(frozen=True)
class Defaults:
    """The operator's values for options that a request does not give.

    If ``protect`` is ``None``, each route has its own default: ``CHAT`` for a route that separates reasoning and tool
    calls from the answer, and ``()`` (no region) for other routes.
    """

    protect: tuple[Any, ...] | None = None
    repeat: Repeat | None = None
    limits: Limits = Limits()

    @classmethod
    def from_environment(cls, name: str) -> Defaults:
        """Reads the defaults from the environment variables ``{name}_PROTECT``, ``{name}_REPEAT`` and
        ``{name}_LIMITS``.

        ``PROTECT`` is the name of a region or a JSON list. ``REPEAT`` is ``1`` or has the form ``4,1024,256``.
        ``LIMITS`` has the form ``stops=1024,patterns=64,bytes=8192,regions=64``.

        Raises ``ValueError`` whose message begins with the name of the variable.
        """

        def read(variable: str, reader: Callable[[str], Any]) -> Any:
            text = os.environ.get(f"{name}_{variable}")
            try:
                return reader(text) if text else None
            except ValueError as error:
                raise ValueError(f"{name}_{variable}: {_message(error)}") from None

        protect = read("PROTECT", lambda text: _protect(text if text in NAMES else json.loads(text), Limits()))
        return cls(protect, read("REPEAT", in_environment), read("LIMITS", _limits) or Limits())

    @classmethod
    def from_arguments(cls, given: Namespace) -> Defaults:
        """Returns the defaults that a command line gives. ``given`` has its parsed options. ``add_defaults`` adds these
        options to a parser.

        Raises ``ValueError`` whose message begins with ``--protect``.
        """
        try:
            protect = None if given.protect is None else _protect(given.protect, Limits())
        except ValueError as error:
            raise ValueError(f"--protect {_message(error)}") from None
        return cls(protect, given.repeat)


def add_defaults(parser: ArgumentParser) -> None:
    """Adds ``--protect`` and ``--repeat`` to the parser of a server's command line."""
    parser.add_argument(
        "--protect",
        nargs="*",
        metavar="REGION",
        help="let no stop fire in these regions, if the model has them: reasoning, tool_call, or an opening and a "
        "closing marker (default: both names, on routes that separate them from the answer)",
    )
    add_repeat(parser)


def switch(name: str) -> str:
    """Returns the value of the environment variable ``name``: ``0``, ``1`` or ``optional``. An unset variable counts as
    ``0``.

    Raises ``ValueError`` for any other value.
    """
    value = os.environ.get(name) or "0"
    if value not in ("0", "1", "optional"):
        raise ValueError(f"{name} must be 0, 1 or optional, not {value!r}")
    return value


@dataclass(frozen=True)
class StopOptions:
    """The options about stops of one request. They are hashable, and can be pickled and sent to other processes.

    - ``stops`` may be a ``SegmentSet``. It has its own regions, and takes no ``protect`` and no ``start_protected``.
    - ``protect``: the regions that the request names. If it is ``None``, no stop fires in those regions of ``default``
      that the model has.
    - ``default``: the regions that the operator protects by default, or else those that the route separates from the
      answer.
    - ``asks`` is whether the request itself has a stop of any kind. A default does not count.
    """

    stops: StopSet | SegmentSet = StopSet()  # noqa: RUF009 - a StopSet is immutable
    protect: tuple[Any, ...] | None = None
    start_protected: bool | None = None
    stop_token_ids: tuple[int, ...] = ()
    min_tokens: int = 0
    include_stop: bool = False
    asks: bool = False
    default: tuple[Any, ...] = ()


def read_options(
    given: object,
    defaults: Defaults = Defaults(),
    *,
    default: Collection[Any] = (),
    prefix: str = "",
    fields: Collection[str] = (),
    own: Mapping[str, Any] | None = None,
) -> StopOptions:
    """Returns the options about stops of a request: ``stop``, ``patterns``, ``visible_patterns``, ``max_held``,
    ``stop_token_ids``, ``min_tokens``, ``include_stop``, ``protect``, ``start_protected`` and ``repeat``. Includes the
    defaults, so that no other code has to read the request.

    - ``given`` is the body of the request, or a flat mapping that also has options of the engine. An option that is
      ``None`` counts as not given. With a ``prefix``, only names with this prefix are read, and each of them must be an
      option. Without a ``prefix``, names that are not options are ignored, and ``stop_sequences`` counts as ``stop``.
    - ``default``: the regions that the route separates from the answer, such as ``CHAT``. No stop fires in them, unless
      the request or the operator names regions. ``"answer"`` stands for the whole answer.
    - ``fields`` are the options that are read from ``given``. The default is all. ``fields`` may also have
      ``"default"``: in this option, one process of an engine tells another which regions the route separates.
    - ``own`` has options that the engine has in other fields of the request. The names may be the engine's:
      ``stop_sequences``, ``stop_regex``, ``include_stop_str_in_output``, ``no_stop_trim``. They add to the stops and
      patterns of ``given``.

    Raises ``ValueError``, and no other error, whatever a client sent. The message begins with the option's name, as the
    client wrote it.

    >>> read_options({"stop": "END", "protect": ["reasoning"], "temperature": 1}).protect
    ('reasoning',)
    >>> read_options({"stopscan_min_tokens": -1}, prefix="stopscan_")
    Traceback (most recent call last):
    ValueError: stopscan_min_tokens must be an integer from 0 to 2147483647, not -1
    """
    if not isinstance(given, Mapping | None):
        raise ValueError(f"the options about stops must be an object, not {_shown(given)}")
    limits, read, name_of = defaults.limits, dict[str, Any](), {field: prefix + field for field in READERS}
    for name, field, value in [
        *_named_values(given or {}, prefix, fields or (OPTIONS if prefix else (*OPTIONS, "stop_sequences"))),
        *((name, API_NAMES.get(name, name), value) for name, value in (own or {}).items() if value is not None),
    ]:
        try:
            part = READERS[field](value, limits)
        except ValueError as error:
            raise ValueError(f"{name} {_message(error)}") from None
        if part != ():  # error messages name the option; an empty list causes no error
            name_of[field] = name
        read[field] = (*read.get(field, ()), *part) if field in LISTS else part
    stop, patterns, visible = (read.pop(field, ()) for field in LISTS)
    held = read.pop("max_held", None)
    asks = bool(stop or patterns or visible or read.get("stop_token_ids") or read.get("repeat"))
    for field, count, most, size in (
        ("stop", len(stop), limits.stops, _size(stop)),
        ("patterns", len(patterns), limits.patterns, _size(stop, patterns)),
        ("visible_patterns", len(patterns) + len(visible), limits.patterns, _size(stop, patterns, visible)),
    ):
        if count > most:
            together = f" together with {name_of['patterns']}" if field == "visible_patterns" and patterns else ""
            raise ValueError(f"{name_of[field]} has {count} entries{together}; the limit is {most}")
        if size > limits.bytes:
            raise ValueError(f"{name_of[field]} has {size} bytes of text; the limit is {limits.bytes}")
    try:
        stops = _stop_set(stop, patterns, visible, held, read.pop("repeat", defaults.repeat))
    except ValueError as error:
        valid = _is_valid(stop) + (_is_valid(stop) and _is_valid(stop, patterns, held))
        raise ValueError(f"{name_of[LISTS[valid]]} is malformed: {_message(error)}") from None
    set_apart = read.pop("default", tuple(default))
    options = StopOptions(stops, asks=asks, default=set_apart if defaults.protect is None else defaults.protect, **read)
    if options.start_protected and not (options.default if options.protect is None else options.protect):
        raise ValueError(f"{name_of['start_protected']} needs a region in {name_of['protect']}")
    return options


def _named_values(given: Mapping[Any, Any], prefix: str, fields: Collection[str]) -> Iterator[tuple[str, str, Any]]:
    """Yields a tuple for each option in ``given``: the key in ``given``, the name of the option, and the value.

    Raises ``ValueError`` for a key that begins with ``prefix`` and is not an option.
    """
    for name, value in given.items():
        if isinstance(name, str) and name.startswith(prefix):
            field = name.removeprefix(prefix)
            if field not in fields and prefix:
                options = ", ".join(prefix + each for each in fields)
                short = _encodable(name[:MAX_MESSAGE])
                raise ValueError(f"{short} is not an option of stopscan; the options are {options}")
            if field in fields and value is not None:
                yield name, API_NAMES.get(field, field), value


@lru_cache(maxsize=64)
def _stop_set(
    stop: tuple[str, ...],
    patterns: tuple[str, ...],
    visible_patterns: tuple[str, ...],
    held: int | None,
    repeat: Repeat | None,
) -> StopSet:
    """Returns the set of these stops. It is cached, because patterns take milliseconds to compile."""
    return StopSet(stop, patterns=patterns, visible_patterns=visible_patterns, max_held=held, repeat=repeat)


def _is_valid(stop: tuple[str, ...], patterns: tuple[str, ...] = (), held: int | None = None) -> bool:
    try:
        StopSet(stop, patterns=patterns, max_held=held)
    except ValueError:
        return False
    return True


def _shown(value: object) -> str:
    """Returns a short ``repr`` of ``value`` for a message, or its type if a client has nested it too deeply."""
    try:
        return _shortened.repr(value)
    except (RecursionError, ValueError):  # an int may have too many digits
        return f"a {type(value).__name__}"


def _message(error: ValueError) -> str:
    """Returns the message of ``error`` without the option's name at its beginning, and cut to ``MAX_MESSAGE``."""
    text = _encodable(str(error)).removeprefix("protect").removeprefix("repeat").lstrip(": ")
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} …"


def _encodable(text: str) -> str:
    """Returns ``text`` with lone surrogates escaped. Otherwise the message could not be encoded as UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def _size(*lists: tuple[str, ...]) -> int:
    return sum(len(text.encode(errors="surrogatepass")) for texts in lists for text in texts)


def _limits(text: str) -> Limits:
    known = [field.name for field in fields(Limits)]
    read = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if name not in known or not number.isdecimal():
            raise ValueError(
                f"{part!r} is not a limit: write NAME=NUMBER, such as stops=1024; the names are {', '.join(known)}"
            )
        read[name] = int(number)
    return Limits(**read)


def _strings(value: object, _: Limits) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"must be a string or a list of strings, not {_shown(value)}")
    return tuple(texts)


def _count(value: object, _: Limits) -> int:
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"must be an integer from 0 to {MAX_COUNT}, not {_shown(value)}")
    return value


def _ids(value: object, limits: Limits) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not all(type(each) is int and 0 <= each <= MAX_COUNT for each in value):
        raise ValueError(f"must be a list of token ids, not {_shown(value)}")
    if len(value) > limits.stops:
        raise ValueError(f"has {len(value)} entries; the limit is {limits.stops}")
    return tuple(value)


def _flag(value: object, _: Limits) -> bool:
    if value not in (0, 1):  # 0 and 1 are accepted: some engines' mappings cannot have booleans
        raise ValueError(f"must be true or false, not {_shown(value)}")
    return bool(value)


def _protect(value: object, limits: Limits, regions: Sequence[str] = NAMES) -> tuple[Any, ...]:
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list | tuple) or not all(map(_is_region_or_pair, entries)):
        raise ValueError(f"must be a list of names of regions or pairs of markers, not {_shown(value)}")
    names, pairs = read_protect(entries, regions)
    if len(names) + len(pairs) > limits.regions:
        raise ValueError(f"has {len(names) + len(pairs)} regions; the limit is {limits.regions}")
    size = _size(*pairs)
    if size > limits.bytes:
        raise ValueError(f"has {size} bytes of text; the limit is {limits.bytes}")
    StopSet(protect=pairs)  # raises `ValueError` for markers that a set refuses
    return (*names, *pairs)


def _is_region_or_pair(entry: object) -> bool:
    return isinstance(entry, str) or (isinstance(entry, list | tuple) and all(isinstance(mark, str) for mark in entry))


def _repeat(value: object, _: Limits) -> Repeat | None:
    return read_repeat(bool(value) if value in (0, 1) else value)


READERS: dict[str, Callable[[Any, Limits], Any]] = {
    "stop": _strings,
    "patterns": _strings,
    "visible_patterns": _strings,
    "max_held": _count,
    "stop_token_ids": _ids,
    "min_tokens": _count,
    "include_stop": _flag,
    "protect": _protect,
    "start_protected": _flag,
    "repeat": _repeat,
    "default": lambda value, limits: _protect(value, limits, (*NAMES, ANSWER)),
}
OPTIONS = tuple(name for name in READERS if name != "default")
