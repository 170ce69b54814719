"""``python -m stopscan.mlx_lm.server``: mlx_lm.server, with its own arguments and routes, and exact stops.

A request may have the options of ``stopscan.engines.read_options`` as fields. ``--protect`` and ``--repeat`` are
defaults; without the first no stop fires in the reasoning and the calls of chats (``"protect": []`` is for stops
everywhere). If a stop ended it, the last choice has a ``matched_stop``; the usage of chats has ``reasoning_tokens``.
"""

from __future__ import annotations

import json
import logging
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http.server import ThreadingHTTPServer
from itertools import compress
from socket import MSG_DONTWAIT, MSG_PEEK, socket
from typing import Any

from mlx_lm import server

from stopscan import StopSet
from stopscan.command_line import own_arguments
from stopscan.engines import CHAT, Defaults, Failures, StopOptions, add_defaults, read_options
from stopscan.finish import to_openai
from stopscan.mlx_lm._row import BatchRow, RowScanner, checkpoint_of, of_model
from stopscan.mlx_lm._versions import SERVER, require
from stopscan.regions import described

require("server", SERVER)

failures: Failures = Failures(logging.getLogger("stopscan.mlx_lm"))


class _Row(RowScanner):
    """A row that also ends when its client has gone, and counts the tokens of its regions."""

    left = failed = False

    def __init__(self, tokenizer: Any, stops: _Stops, prompt: Any, *, inside: bool) -> None:
        checkpoint = checkpoint_of(tokenizer)
        default = _told_apart(tokenizer) if stops.default is None else stops.default
        options = of_model(tokenizer, {"inside": inside})
        scanner = checkpoint.scanner(stops.options.stops, prompt, default=default, **options, **stops.options.row)
        BatchRow.__init__(self, scanner)
        self.counter: Any = scanner
        if "reasoning" in checkpoint.graph and "reasoning" not in self.tokens_in:
            # A set in which nothing is protected has no regions to count.
            self.counter = checkpoint.scanner(StopSet(), prompt, **options)

    def advance(self, token_id: int, /) -> bool:
        try:
            if self.counter is not self.scanner:
                self.counter.feed(token_id)
            return super().advance(token_id) or self.left
        except BaseException as error:  # in the thread that makes all answers
            failures.note(error, "ended with an error")
            self.failed = True
            return True


@dataclass
class _Stops:
    """What a request asks, and its row. It travels in the place of mlx-lm's stop words."""

    options: StopOptions
    # For a request without `protect`; `None`: the regions that mlx-lm tells from the answer.
    default: tuple[Any, ...] | None
    connection: socket | None = None
    row: _Row | None = None

    def __reduce__(self) -> Any:  # mlx-lm sends each request to the other machines of a distributed model
        return _Stops, (self.options, self.default)


class _RequestError(Exception):
    """What is wrong with a request, in the thread that makes all answers."""


class _Refused(BaseException):
    """The same in the request's own thread, where mlx_lm.server answers every ``Exception`` with a 404."""


class _ResponseGenerator(server.ResponseGenerator):
    _logged: Any = None

    def _tokenize(self, tokenizer: Any, request: Any, args: Any) -> Any:
        # Here, because this is where mlx-lm expects errors of a request; anywhere later they would end its thread.
        tokenized, stops = super()._tokenize(tokenizer, request, args), args.stop_words
        asked = stops.options
        if failures.off and (not asked.asks or asked == StopOptions(StopSet(asked.stops.stop), asks=True)):
            return tokenized  # mlx-lm's own stops do
        try:
            if tokenizer is not self._logged:
                self._logged, regions = tokenizer, described(checkpoint_of(tokenizer).graph)
                logging.info("stopscan finds the stops; the regions that it knows, and what begins them: %s", regions)
            if failures.off:
                raise ValueError("stopscan failed repeatedly and is switched off; only `stop` still works")
            stops.row = _Row(tokenizer, stops, tokenized[0], inside=tokenized[3] == "reasoning")
        except (TypeError, ValueError) as error:
            # A tokenizer that cannot be scanned is a TypeError, and serves requests without stops.
            if asked.asks or isinstance(error, ValueError):
                raise _RequestError(str(error)) from error
        except BaseException as error:
            failures.note(error, "was refused")
            raise RuntimeError("stopscan failed in this request") from error
        return tokenized

    def _make_state_machine(self, model_key: Any, tokenizer: Any, stops: Any) -> Any:
        words = stops.options.stops.stop if stops.row is None else ()
        stop_sequences, text_machine = super()._make_state_machine(model_key, tokenizer, words)
        return stops.row or stop_sequences, text_machine

    def generate(self, request: Any, generation_args: Any, progress_callback: Any = None) -> Any:
        stops = generation_args.stop_words
        try:
            context, responses = super().generate(request, generation_args, progress_callback)
        except _RequestError as error:
            raise _Refused(str(error)) from error
        return context, responses if stops.row is None else _safe(responses, stops.row, stops.connection)


def _told_apart(tokenizer: Any) -> tuple[str, ...]:
    """The regions that mlx-lm tells from the answer of a chat."""
    parts = {to for edges in getattr(tokenizer, "response_transitions", {}).values() for _, to in edges}
    told = [tokenizer.has_thinking or "reasoning" in parts, tokenizer.has_tool_calling or "tool" in parts]
    return tuple(compress(CHAT, told))


def _safe(responses: Any, row: _Row, connection: socket) -> Iterator[Any]:
    for response in responses:
        with suppress(BlockingIOError):
            # Raises if the client has reset the connection: mlx-lm writes a whole answer only at its end. A client that
            # has closed its own half may still read.
            connection.recv(1, MSG_PEEK | MSG_DONTWAIT)
        if row.failed:
            raise RuntimeError("stopscan failed in this request")
        # At a "stop", mlx-lm drops the last text and what it still withholds.
        yield replace(response, text=row.text(response), finish_reason=response.finish_reason and "length")


class _Handler(server.APIHandler):
    defaults: Defaults
    _stops: _Stops

    def handle_completion(self, request: Any, stop_words: Any) -> None:
        try:
            self._stops = stops = self._read_stops(request)
        except ValueError as error:
            self._end_with(400, error)
            return
        # mlx-lm asks for this field of it after the last chunk.
        told = self.body.get("stream_options")
        self.stream_options = {"include_usage": isinstance(told, dict) and bool(told.get("include_usage"))}
        self._called_tool = False
        try:
            super().handle_completion(request, stops)
        except _Refused as error:
            self._end_with(400, error)
        except RuntimeError as error:  # a fault of ours, or of mlx-lm's thread
            self._end_with(500, error)
        except ConnectionError:
            self.close_connection = True  # the client has gone
        finally:
            # Nobody reads the row any more, and it ends with its next token; mlx-lm looks only twice a second. Several
            # machines of one model must do the same, so that no row ends early there.
            if stops.row is not None and not self.response_generator._is_distributed:
                stops.row.left = True

    def _read_stops(self, request: Any) -> _Stops:
        options, default = read_options(self.body, self.defaults), self.defaults.protect
        if default is None and request.request_type != "chat":
            default = ()
        if options.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens must be at most max_tokens, {self.max_tokens}")
        tokenizer = self.response_generator.model_provider.tokenizer
        if tokenizer is not None:
            # Compiles the set here, and not in the thread in which all answers wait for it.
            with suppress(ValueError):  # the request may be for another model, which has the region
                told = _told_apart(tokenizer) if default is None else default
                checkpoint_of(tokenizer).stops(options.stops, options.protect, told)
        return _Stops(options, default, self.connection)

    def _end_with(self, status: int, error: BaseException) -> None:
        """Answers with an error. A stream that has begun gets it as an event."""
        kind = "invalid_request_error" if status == 400 else "server_error"
        body = json.dumps({"error": {"message": str(error), "type": kind, "param": None, "code": None}}).encode()
        if status != 400 and self.stream:
            self.wfile.write(b"data: " + body + b"\n\n")
            return
        self._headers_buffer: list[bytes] = []  # a whole answer's, which are not sent before it is complete
        self._set_completion_headers(status)
        self.end_headers()
        self.wfile.write(body)

    def generate_response(self, text: str, finish_reason: str | None, *counts: Any, **parts: Any) -> Any:
        """mlx-lm's chunk or whole response; the last one says what ended the generation."""
        self._called_tool |= bool(parts.get("tool_calls"))
        row = self._stops.row
        if finish_reason is None or row is None or row.finish is None:
            return super().generate_response(text, finish_reason, *counts, **parts)
        ending = to_openai(row.finish)
        if self._called_tool and ending["finish_reason"] == "stop":
            ending["finish_reason"] = "tool_calls"
        if row.finish.matched_stop is not None:
            for name in {"tokens", "token_logprobs", "top_tokens"} & parts.keys():
                parts[name] = parts[name][: row.tokens_kept]
        response = super().generate_response(text, finish_reason, *counts, **parts)
        response["choices"][0].update(ending)
        return self._with_reasoning(response)

    def completion_usage_response(self, *counts: Any, **options: Any) -> Any:
        """mlx-lm's chunk with the usage, which names itself as the others of its stream do."""
        response = super().completion_usage_response(*counts, **options)
        return self._with_reasoning({**response, "object": self.object_type})

    def _with_reasoning(self, response: Any) -> Any:
        """``response`` with the number of its reasoning tokens in its usage, if it is a chat and has one."""
        tokens = self._stops.row.counter.tokens_in if self._stops.row is not None else {}
        if "reasoning" in tokens and "usage" in response and self.object_type != "text_completion":
            response["usage"]["completion_tokens_details"] = {"reasoning_tokens": tokens["reasoning"]}
        return response


class _HTTPServer(ThreadingHTTPServer):
    # With mlx-lm's 5, many clients that connect at once are turned away.
    request_queue_size = 1024


def main() -> None:
    """Serves until it is interrupted. Changes mlx_lm.server for the whole process."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, usage="mlx_lm.server's options, and these:")
    add_defaults(parser)
    own = own_arguments(parser)
    try:
        handler = type("Handler", (_Handler,), {"defaults": Defaults.from_arguments(own)})
    except ValueError as error:
        parser.error(str(error))
    server.ResponseGenerator = _ResponseGenerator
    server._run_http_server = partial(server._run_http_server, server_class=_HTTPServer, handler_class=handler)
    server.main()


if __name__ == "__main__":
    main()
