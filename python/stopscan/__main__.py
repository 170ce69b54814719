"""The command ``stopscan``, a filter for pipes: copies standard input to standard output up to a stop.

With ``--replace FROM=TO`` it writes ``TO`` in place of ``FROM``.
"""

from __future__ import annotations

import argparse
import codecs
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from stopscan import Rewriter, StopMatch, StopScanner
from stopscan.command_line import add_pairs, add_stops, stop_set, unescaped

if sys.platform == "win32":
    import msvcrt

FIRED, NONE_FIRED, BAD_INPUT = 0, 1, 2
STDIN, STDOUT = 0, 1  # file descriptors, because `sys.stdin` and `sys.stdout` are buffered, and are `None` if closed
READ_BYTES = 65536


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the filter. Its exit status is like grep's: 0 if a stop fired, 1 if none, 2 for a usage or input error."""
    parser = argument_parser()
    options = parser.parse_args(arguments)
    try:
        stops, rewriter = stop_set(options, options.protect), Rewriter(replacements(options))
    except ValueError as error:
        parser.error(str(error))
    if not len(stops) and not len(rewriter.set):
        parser.error("give a stop or a replacement")
    scanner = StopScanner(stops, include_stop=options.include_stop)
    if sys.platform == "win32":
        for fd in (STDIN, STDOUT):
            msvcrt.setmode(fd, os.O_BINARY)  # text mode translates line ends
    else:
        # If the reader closes the pipe, the process ends without a traceback, as cat does.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        copy(scanner, rewriter)
    except (ValueError, OSError) as error:
        note(f"stopscan: {error}")
        return BAD_INPUT
    report(scanner.match, as_json=options.json)
    return NONE_FIRED if scanner.match is None else FIRED


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stopscan",
        description="Copy standard input to standard output up to a stop, and replace keys.",
        epilog="Exit status: 0 a stop fired, 1 none did, 2 a usage or input error.",
    )
    add_stops(parser, "stop at the end of text that loops; the loop stays in the output")
    add_pairs(parser)
    parser.add_argument(
        "--replace",
        action="append",
        default=[],
        metavar="FROM=TO",
        help="put TO in the place of FROM; the first = divides",
    )
    parser.add_argument("--json", action="store_true", help="report the match as a JSON object, nulls if none fired")
    parser.add_argument("--version", action="version", version=f"stopscan {version('stopscan')}")
    return parser


def replacements(options: argparse.Namespace) -> dict[str, str]:
    """Returns the keys and replacements of the options ``--replace FROM=TO`` as a dict. Raises ``ValueError`` for an
    option without ``=``, and for a key with two different replacements."""
    convert = unescaped if options.escapes else str
    pairs: dict[str, str] = {}
    for given in options.replace:
        key, equals, value = given.partition("=")
        if not equals:
            raise ValueError(f"--replace: expected FROM=TO, got {given!r}")
        if pairs.setdefault(convert(key), convert(value)) != convert(value):
            raise ValueError(f"--replace: {key!r} has two replacements")
    return pairs


def copy(scanner: StopScanner, rewriter: Rewriter) -> None:
    """Copies standard input to standard output up to a stop. ``rewriter`` replaces the keys of ``--replace``. Each
    piece of text is written as soon as it is safe."""
    try:
        for delta in read_deltas(STDIN):
            write(rewriter.feed(scanner.feed(delta)))
            if scanner.match is not None:
                return
    finally:
        write(rewriter.feed(scanner.flush()) + rewriter.flush())


def read_deltas(fd: int) -> Iterator[str]:
    """Yields the text of ``fd`` as it arrives. An incomplete character is kept until the rest of it arrives.

    For invalid UTF-8, first yields the text before the bad byte, then raises ``ValueError`` with the byte's offset in
    the whole input.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0  # the number of bytes decoded so far
    while True:
        data = os.read(fd, READ_BYTES)
        kept = len(decoder.getstate()[0])
        try:
            delta = decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            yield error.object[: error.start].decode()
            raise ValueError(f"invalid UTF-8 at byte offset {offset + error.start}: {error.reason}") from None
        yield delta
        if not data:
            return
        offset += kept + len(data) - len(decoder.getstate()[0])


def write(text: str) -> None:
    """Writes all of ``text``, unbuffered. Loops, because one ``os.write`` may write only a part of the text."""
    data = memoryview(text.encode())
    while data:
        data = data[os.write(STDOUT, data) :]


def report(match: StopMatch | None, *, as_json: bool) -> None:
    if as_json:
        fields = {name: getattr(match, name, None) for name in ("sequence", "offset", "end")}
        for name in ("pattern", "period"):
            if getattr(match, name, None) is not None:
                fields[name] = getattr(match, name)
        note(json.dumps(fields))
    elif match is not None and match.period is not None:
        note(f"stopscan: loop with period {match.period} at {match.offset}")
    elif match is not None:
        note(f"stopscan: stop {match.sequence!r} at {match.offset}")


def note(line: str) -> None:
    if sys.stderr is not None:  # `sys.stderr` is `None` if it is closed; print would then write to standard output
        print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
