"""What a request to a server says about its stops in fields of its body, and a server's defaults for them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any, cast

from stopscan import Repeat, StopSet
from stopscan._engine.tokens import RequestOptions
from stopscan.regions import read_protect
from stopscan.repeats import add_repeat, requested

STRINGS = ((str, list), "a string or a list of strings")
CHOICE = ((bool,), "true or false")
# By field, the types of its values (a bool is no number here) and how to call them.
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "stop": STRINGS,
    "patterns": STRINGS,
    "max_held": ((int,), "a number of characters"),
    "stop_token_ids": ((list,), "a list of integers"),
    "min_tokens": ((int,), "a number of tokens"),
    "include_stop": CHOICE,
    "protect": ((str, list), "a list of regions"),
    "start_protected": CHOICE,
}
FIELDS = (*KINDS, "repeat")

# Larger numbers are no counts of anything.
MOST = 2**31


def asked(body: Mapping[str, Any], repeat: Repeat | None = None) -> tuple[StopSet, RequestOptions]:
    """The stops of a request and what else it says about them; ``repeat`` is for one that says nothing of it.

    Raises ``ValueError``, or ``TypeError``, that names the field.
    """
    given = {name: body[name] for name in FIELDS if body.get(name) is not None}
    for name, (types, called) in KINDS.items():
        value = given.get(name)
        if value is None:
            continue
        if type(value) not in types or (type(value) is int and not 0 <= value < MOST):
            raise ValueError(f"{name} must be {called}, not {value!r}")
    if any(type(token_id) is not int for token_id in given.get("stop_token_ids", ())):
        raise ValueError("stop_token_ids must be a list of integers")
    read_protect(given.get("protect", ()))
    stops = StopSet(
        given.pop("stop", ()),
        patterns=given.pop("patterns", ()),
        max_held=given.pop("max_held", None),
        repeat=requested(given.pop("repeat", None), repeat),
    )
    return stops, cast("RequestOptions", given)


def wants_stops(body: Mapping[str, Any]) -> bool:
    """Whether the request itself asks for a stop of any kind."""
    return any(body.get(name) for name in ("stop", "patterns", "stop_token_ids", "repeat"))


def server_defaults() -> Namespace:
    """The server's ``protect`` and ``repeat``, taken out of the command line, where the engine's own arguments stay."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, usage="the defaults of requests, and these:")
    parser.add_argument(
        "--protect",
        nargs="*",
        metavar="REGION",
        help="keep stops from firing in these regions, where the model has them: reasoning, tool_call, or an opening "
        "and a closing marker; without it: both names where a route tells them from the answer",
    )
    add_repeat(parser)
    own, sys.argv[1:] = parser.parse_known_args()
    if {"-h", "--help"} & {*sys.argv}:
        parser.print_help()
    try:
        read_protect(own.protect or ())
    except ValueError as error:
        parser.error(str(error))
    return own
