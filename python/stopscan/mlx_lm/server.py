"""``python -m stopscan.mlx_lm.server`` is mlx_lm.server with exact stops. It has the same arguments and routes.

A request may have the options of ``stopscan.engines.read_options`` as fields. ``--protect`` and ``--repeat`` set the
defaults of requests. Without ``--protect``, no stop fires in the reasoning and the tool calls of a chat. If a request
has ``"protect": []``, its stops fire everywhere. If a stop ended an answer, ``matched_stop`` is beside the finish
reason of the answer. The usage of chats has ``reasoning_tokens``.
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
from stopscan.mlx_lm._selftest import require_server
from stopscan.mlx_lm._versions import require
from stopscan.regions.shared import describe

require("server")

failures: Failures = Failures(logging.getLogger("stopscan.mlx_lm"))


class _Row(RowScanner):
    """A row that also ends when its client has left, and that counts the tokens of its regions."""

    departed = failed = False

    def __init__(self, tokenizer: Any, stops: _Stops, prompt: Any, *, inside: bool) -> None:
        checkpoint, options = checkpoint_of(tokenizer), of_model(tokenizer, {"inside": inside})
        scanner = checkpoint.scanner(stops.of(tokenizer), prompt, **options)
        BatchRow.__init__(self, scanner)
        self.counter: Any = scanner
        if "reasoning" in checkpoint.graph and "reasoning" not in self.tokens_in:
            # The usage reports the count of reasoning tokens. The row's scanner does not count them, because no region
            # is protected, so a second scanner counts them.
            self.counter = checkpoint.scanner(StopSet(), prompt, **options)

    def advance(self, token_id: int, /) -> bool:
        try:
            if self.counter is not self.scanner:
                self.counter.feed(token_id)
            return super().advance(token_id) or self.departed
        except BaseException as error:  # an exception here would end the thread that makes all answers
            failures.note(error, "ended with an error", "advance")
            self.failed = True
            return True


@dataclass
class _Stops:
    """The options of a request, and the row of its answer. mlx-lm treats this object as the request's `stop_words`, and
    passes it from function to function."""

    options: StopOptions
    # Whether the request is a chat, and the server has no `--protect`. If so, the method `of` sets the regions that are
    # protected by default: those that mlx-lm separates from the answer of this model.
    chat: bool
    connection: socket | None = None
    # Whether the client sent `Connection: close`. It then sends no further request, so it may close its half of the
    # connection and still read the answer.
    half_closes: bool = False
    row: _Row | None = None

    def check_client(self) -> None:
        """Raises ``ConnectionError`` if the client has left. mlx-lm itself would notice it only when it writes the
        whole answer."""
        with suppress(BlockingIOError):
            if self.connection and not self.connection.recv(1, MSG_PEEK | MSG_DONTWAIT) and not self.half_closes:
                raise ConnectionAbortedError("the client has left")

    def __reduce__(self) -> Any:  # mlx-lm pickles a request for the other machines of a distributed model
        return _Stops, (self.options, self.chat)

    def of(self, tokenizer: Any) -> StopOptions:
        """Returns the options of the request. If ``chat`` is true, ``default`` is set to the regions that mlx-lm
        separates from the answer for this model."""
        return replace(self.options, default=_separated(tokenizer)) if self.chat else self.options


class _RequestError(Exception):
    """Raised for a wrong request, in the thread that makes all answers."""


class _Refused(BaseException):
    """Raised for a wrong request in the thread of its connection. It is not a subclass of ``Exception``, because
    mlx_lm.server would answer an ``Exception`` with a 404."""


class _ResponseGenerator(server.ResponseGenerator):
    _logged: Any = None

    def __init__(self, model_provider: Any, prompt_cache: Any) -> None:
        prompt_cache.fetch_nearest_cache = partial(_nearest, prompt_cache.fetch_nearest_cache)
        super().__init__(model_provider, prompt_cache)

    def _tokenize(self, tokenizer: Any, request: Any, args: Any) -> Any:
        # Check the request and make its row here: mlx-lm catches the errors of a request only in `_tokenize`. A later
        # error would end the thread that makes all answers.
        tokenized, stops = super()._tokenize(tokenizer, request, args), args.stop_words
        options = stops.options
        plain = StopOptions(StopSet(options.stops.stop), asks=True, default=options.default)
        if failures.off and (not options.asks or options == plain):
            return tokenized  # mlx-lm's own stops are enough
        try:
            if tokenizer is not self._logged:
                self._logged, regions = tokenizer, describe(checkpoint_of(tokenizer).graph)
                logging.info("stopscan finds the stops; known regions and their opening markers: %s", regions)
            if failures.off:
                raise ValueError("stopscan failed repeatedly and is switched off; only `stop` still works")
            stops.row = _Row(tokenizer, stops, tokenized[0], inside=tokenized[3] == "reasoning")
        except ValueError as error:
            raise _RequestError(str(error)) from error
        except BaseException as error:
            failures.note(error, "was refused", "_tokenize")
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
        return context, responses if stops.row is None else _safe(responses, stops.row, stops)


def _separated(tokenizer: Any) -> tuple[str, ...]:
    """Returns the regions that mlx-lm separates from the answer of a chat."""
    parts = {to for edges in getattr(tokenizer, "response_transitions", {}).values() for _, to in edges}
    flags = [tokenizer.has_thinking or "reasoning" in parts, tokenizer.has_tool_calling or "tool" in parts]
    return tuple(compress(CHAT, flags))


def _safe(responses: Any, row: _Row, stops: _Stops) -> Iterator[Any]:
    for response in responses:
        stops.check_client()
        try:
            text = row.text(response) if not row.failed else ""
        except BaseException as error:
            failures.note(error, "ended with an error", "generate")
            row.failed = True
        if row.failed:
            raise RuntimeError("stopscan failed in this request")
        # Report every end as "length", so that mlx-lm sends all text. After "stop" it would drop the text of the last
        # response, and the text that it has held back.
        yield replace(response, text=text, finish_reason=response.finish_reason and "length")


def _nearest(fetch: Any, model: Any, tokens: list[int]) -> Any:
    """Calls ``fetch`` of mlx-lm's prompt cache. Returns the cache of a prompt, and the tokens that are not in it.

    If the cache has all tokens of the prompt, leaves the last token out of the cache. Otherwise mlx-lm's generation
    thread would end, because no token is left to feed. Agents send prompts of this kind: an earlier prompt, its answer
    and its stop.
    """
    cache, rest = fetch(model, tokens)
    if not rest:
        cache, rest = fetch(model, tokens[:-1]) if len(tokens) > 1 else (None, [])
        rest = [*rest, *tokens[-1:]]
    return cache, rest


class _Handler(server.APIHandler):
    defaults: Defaults
    _stops: _Stops

    def handle_completion(self, request: Any, stop_words: Any) -> None:
        try:
            self._stops = stops = self._read_stops(request)
        except ValueError as error:
            self._end_with(400, error)
            return
        # mlx-lm reads `include_usage` only after the last chunk. A `stream_options` of a wrong type would raise an
        # error at that time, so replace it now.
        streaming = self.body.get("stream_options")
        self.stream_options = {"include_usage": isinstance(streaming, dict) and bool(streaming.get("include_usage"))}
        self._called_tool = False
        try:
            super().handle_completion(request, stops)
        except _Refused as error:
            self._end_with(400, error)
        except RuntimeError as error:  # stopscan failed, or mlx-lm's thread did
            self._end_with(500, error)
        except ConnectionError:
            self.close_connection = True  # the client has left
        finally:
            # Nobody reads the answer any more. `departed` ends its row at the next token, sooner than mlx-lm, which
            # removes abandoned rows only twice a second. If several machines run one model, they must all end a row at
            # the same token, so `departed` is not set.
            if stops.row is not None and not self.response_generator._is_distributed:
                stops.row.departed = True

    def _read_stops(self, request: Any) -> _Stops:
        if not isinstance(request.prompt, str):  # a list may end the thread of mlx-lm that makes all answers
            raise ValueError("prompt must be a string")
        chat = request.request_type == "chat" and self.defaults.protect is None
        options = read_options(self.body, self.defaults, default=CHAT if chat else ())
        stops = _Stops(options, chat, self.connection, self.headers.get("Connection", "").lower() == "close")
        if options.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens must be at most max_tokens, {self.max_tokens}")
        tokenizer = self.response_generator.model_provider.tokenizer
        if tokenizer is not None:
            # Compile the set in this thread, so that the thread that makes all answers does not wait for it.
            with suppress(ValueError):  # the request's model may have a region that the loaded model lacks
                checkpoint_of(tokenizer).stops(stops.of(tokenizer))
        return stops

    def _end_with(self, status: int, error: BaseException) -> None:
        """Answers with an error: as an event if the stream has begun, otherwise as a response with ``status``."""
        kind = "invalid_request_error" if status == 400 else "server_error"
        body = json.dumps({"error": {"message": str(error), "type": kind, "param": None, "code": None}}).encode()
        if status != 400 and self.stream:
            self.wfile.write(b"data: " + body + b"\n\n")
            return
        # An answer that is not a stream has its headers here, not sent yet. Drops them.
        self._headers_buffer: list[bytes] = []
        self._set_completion_headers(status)
        self.end_headers()
        self.wfile.write(body)

    def generate_response(self, text: str, finish_reason: str | None, *counts: Any, **parts: Any) -> Any:
        """Returns a chunk or a whole response, made by mlx-lm. To the last chunk and to a whole response, adds why the
        answer ended, and the stop if one fired."""
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
        """Returns the chunk that reports the usage, made by mlx-lm. Sets its field ``object`` to the value in the other
        chunks of the stream."""
        response = super().completion_usage_response(*counts, **options)
        return self._with_reasoning({**response, "object": self.object_type})

    def _with_reasoning(self, response: Any) -> Any:
        """Returns ``response``. If it belongs to a chat and reports the usage, adds the number of reasoning tokens."""
        tokens = self._stops.row.counter.tokens_in if self._stops.row is not None else {}
        if "reasoning" in tokens and "usage" in response and self.object_type != "text_completion":
            response["usage"]["completion_tokens_details"] = {"reasoning_tokens": tokens["reasoning"]}
        return response


class _HTTPServer(ThreadingHTTPServer):
    # How many new connections may wait. With the default of 5, connections would be refused when many clients connect
    # at once.
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
    require_server(_ResponseGenerator, _Handler, failures)
    server.ResponseGenerator = _ResponseGenerator
    server._run_http_server = partial(server._run_http_server, server_class=_HTTPServer, handler_class=handler)
    server.main()


if __name__ == "__main__":
    main()
