"""The command-line options for stops, shared by `stopscan`, `stopscan.mlx_lm.generate` and `stopscan_clients.proxy`."""

from __future__ import annotations

import sys
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from stopscan import StopSet
from stopscan.repeats import add_repeat

__all__ = ["add_pairs", "add_stops", "own_arguments", "stop_set", "unescaped"]


def add_stops(parser: ArgumentParser, loops: str = "end an answer that has fallen into a loop") -> None:
    """Adds the options for stops to ``parser``. ``loops`` is the help text of ``--repeat``."""
    stop: dict[str, Any] = {"action": AddStop, "default": [], "metavar": "S"}
    parser.add_argument("--stop", **stop, help="a stop that is cut from the output")
    parser.add_argument("--visible", **stop, help="a stop that stays in the output")
    parser.add_argument("--pattern", **stop, help="a regular expression; its match is cut from the output")
    parser.add_argument("--visible-pattern", **stop, help="a regular expression; its match stays in the output")
    parser.add_argument(
        "--max-held",
        type=int,
        metavar="N",
        help="give up a match of a --pattern that is still incomplete after N characters",
    )
    add_repeat(parser, loops)
    parser.add_argument("--include-stop", action="store_true", help="keep every stop in the output")
    parser.add_argument(
        "--escapes",
        action="store_true",
        help=r"interpret \n, \t, \\, \x1b, \u2028 and the like in stops and markers as Python's string literals do",
    )


def add_pairs(parser: ArgumentParser) -> None:
    """Adds ``--protect OPEN CLOSE`` to ``parser``."""
    parser.add_argument(
        "--protect",
        action="append",
        default=[],
        nargs=2,
        metavar=("OPEN", "CLOSE"),
        help="markers between which no stop fires",
    )


def own_arguments(parser: ArgumentParser) -> Namespace:
    """Returns the parsed options that ``parser`` knows, and removes them from ``sys.argv``.

    The engine's command later parses the rest of ``sys.argv``. If the rest has ``-h`` or ``--help``, the command prints
    its help, so this function prints the help of ``parser`` before it.
    """
    own, sys.argv[1:] = parser.parse_known_args()
    if {"-h", "--help"} & {*sys.argv}:
        parser.print_help()
    return own


class AddStop(Action):
    """Appends one string to the option's list. Also restores the value ``--`` of ``--stop=--``, which argparse drops
    before Python 3.13."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=1, **options)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        (stop,) = values or ["--"]
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), stop])


def stop_set(options: Namespace, pairs: Sequence[Sequence[str]] = ()) -> StopSet:
    """Returns the ``StopSet`` of the parsed options. ``pairs`` are pairs of markers, between which no stop fires.

    Raises ``ValueError`` for stops or markers that ``StopSet`` refuses, and for an invalid escape sequence.
    """
    convert = unescaped if options.escapes else str
    return StopSet(
        map(convert, options.stop),
        patterns=options.pattern,
        visible_patterns=options.visible_pattern,
        max_held=options.max_held,
        visible=map(convert, options.visible),
        protect=[(convert(opening), convert(closing)) for opening, closing in pairs],
        repeat=options.repeat,
    )


def unescaped(text: str) -> str:
    """Returns ``text`` with its escape sequences replaced as in a Python string literal.

    Raises ``ValueError`` for an invalid escape sequence.
    """
    try:
        return text.encode("ascii", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError as error:
        raise ValueError(f"{text!r}: {error.reason}") from None
