"""Reads ``Repeat``, the stop for text that loops, from a request, a command line or an environment variable.

All adapters use these functions, so that they accept the same values, and refuse other values with the same messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopscan import Repeat

if TYPE_CHECKING:
    import argparse

__all__ = ["add_repeat", "in_environment", "parse_repeat", "read_repeat"]

VALUES = "true, false or [count, max_period, min_length]"


def read_repeat(value: object, default: Repeat | None = None, /, *, name: str = "repeat") -> Repeat | None:
    """Returns the ``Repeat`` of a request's option, or ``default`` if the request does not have the option (``None``).

    ``True`` gives ``Repeat()``. ``False`` gives ``None``: text that loops is not stopped.

    Raises ``ValueError`` for a wrong value. The message begins with ``name``, the name of the option.

    >>> read_repeat([3, 1024, 64])
    Repeat(3, max_period=1024, min_length=64)
    """
    if value is None:
        return default
    if isinstance(value, bool):
        return Repeat() if value else None
    if not isinstance(value, list | tuple) or len(value) != 3 or any(type(number) is not int for number in value):
        raise ValueError(f"{name} must be {VALUES}")
    try:
        return Repeat(value[0], max_period=value[1], min_length=value[2])
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{name}: {str(error).removeprefix('repeat: ')}") from None


def parse_repeat(text: str, /) -> Repeat:
    """Returns the ``Repeat`` of a text ``COUNT,PERIOD,LENGTH``, such as ``4,1024,256``."""
    try:
        count, period, length = map(int, text.split(","))
        return Repeat(count, max_period=period, min_length=length)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{text!r} is not COUNT,PERIOD,LENGTH, such as 4,1024,256: {error}") from None


def in_environment(text: str | None, /) -> Repeat | None:
    """Returns the ``Repeat`` of an environment variable with the value ``text``.

    An unset variable, "" and ``0`` give ``None``: text that loops is not stopped. ``1`` gives ``Repeat()``.
    ``parse_repeat`` reads any other value.
    """
    if text in (None, "", "0"):
        return None
    return Repeat() if text == "1" else parse_repeat(text)


def add_repeat(parser: argparse.ArgumentParser, purpose: str = "end an answer that has fallen into a loop", /) -> None:
    """Adds ``--repeat`` to ``parser``. Its value is a ``Repeat``, or ``None`` if the option is not given."""
    parser.add_argument(
        "--repeat",
        nargs="?",
        const=Repeat(),
        type=_argument,
        metavar="COUNT,PERIOD,LENGTH",
        help=f"{purpose} (without a value: 4,1024,256)",
    )


def _argument(text: str) -> Repeat:
    try:
        return parse_repeat(text)
    except ValueError as error:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(str(error)) from None
