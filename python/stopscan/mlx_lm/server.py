"""``python -m stopscan.mlx_lm.server``: mlx_lm.server, with its own arguments and routes, and exact stops.

A request may have the options of ``stopscan.engines``: ``stop``, ``patterns``, ``max_held``, ``stop_token_ids``,
``min_tokens``, ``include_stop``, ``protect``, ``start_protected`` and ``repeat``. If a stop ended it, the last choice
has a ``matched_stop``; the usage of chats has ``reasoning_tokens``.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from socket import MSG_DONTWAIT, MSG_PEEK, socket
from typing import Any

from mlx_lm import server

from stopscan.engines import CHAT, Defaults, StopOptions, add_defaults, read_options
from stopscan.finish import to_openai
from stopscan.mlx_lm._row import RowScanner


class _Row(RowScanner):
    """A row that also ends when its client has gone."""

    left = False

    def advance(self, token_id: int, /) -> bool:
        return super().advance(token_id) or self.left


class _Stops:
    """What a request asks, and its row. It travels in the place of mlx-lm's stop words."""

    row: _Row | None = None
    connection: socket | None = None
    refused = False

    def __init__(self, options: StopOptions, default: tuple[Any, ...]) -> None:
        self.options, self.default = options, default

    def __reduce__(self) -> Any:  # mlx-lm sends each request to the other machines of a distributed model
        return _Stops, (self.options, self.default)


class _ResponseGenerator(server.ResponseGenerator):
    def _tokenize(self, tokenizer: Any, request: Any, args: Any) -> Any:
        # Here, because this is where mlx-lm expects errors of a request; anywhere later they would end its thread.
        tokenized, stops = super()._tokenize(tokenizer, request, args), args.stop_words
        inside = tokenized[3] == "reasoning"
        try:
            stops.row = _Row(
                tokenizer, stops.options.stops, prompt=tokenized[0], default=stops.default, inside=inside,
                **stops.options.row,
            )  # fmt: skip
        except (TypeError, ValueError) as error:
            # A tokenizer that cannot be scanned is a TypeError, and serves requests without stops.
            stops.refused = stops.options.asks or isinstance(error, ValueError)
            if stops.refused:
                raise
        return tokenized

    def _make_state_machine(self, model_key: Any, tokenizer: Any, stops: Any) -> Any:
        stop_sequences, text_machine = super()._make_state_machine(model_key, tokenizer, ())
        return stops.row or stop_sequences, text_machine

    def generate(self, request: Any, generation_args: Any, progress_callback: Any = None) -> Any:
        context, responses = super().generate(request, generation_args, progress_callback)
        stops = generation_args.stop_words
        return context, responses if stops.row is None else self._safe(responses, stops.row, stops.connection)

    def _safe(self, responses: Any, row: _Row, connection: socket) -> Iterator[Any]:
        with closing(responses):
            try:
                for response in responses:
                    if _has_left(connection):  # mlx-lm writes a whole answer only at its end
                        raise ConnectionResetError("the client has gone")
                    # At a "stop", mlx-lm drops the last text and what it still withholds.
                    yield replace(response, text=row.text(response), finish_reason=response.finish_reason and "length")
            finally:
                # Sooner than mlx-lm, which looks twice a second; but all machines of a model must do the same.
                row.left = not self._is_distributed


def _has_left(connection: socket) -> bool:
    """Whether the client has closed its end."""
    try:
        return not connection.recv(1, MSG_PEEK | MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


class _Handler(server.APIHandler):
    _stops: _Stops | None = None

    def __init__(self, *args: Any, defaults: Defaults, **options: Any) -> None:
        self._defaults = defaults
        super().__init__(*args, **options)  # which serves the request

    def handle_completion(self, request: Any, stop_words: Any) -> None:
        default = CHAT if request.request_type == "chat" else ()
        try:
            options = read_options(self.body, self._defaults)
            if options.min_tokens > self.max_tokens:
                raise ValueError(f"min_tokens must be at most max_tokens, {self.max_tokens}")
        except ValueError as error:
            self._set_completion_headers(400)
            self.end_headers()
            answer = {"error": {"message": str(error), "type": "invalid_request_error"}}
            self.wfile.write(json.dumps(answer).encode())
            return
        self._stops = _Stops(options, default if self._defaults.protect is None else self._defaults.protect)
        self._stops.connection = self.connection
        self._called_tool = False
        try:
            super().handle_completion(request, self._stops)
        except ConnectionError:
            self.close_connection = True  # the client has gone

    def _set_completion_headers(self, status_code: int = 200) -> None:
        # mlx-lm answers with a 404 whatever goes wrong before the first token.
        refused = status_code == 404 and self._stops is not None and self._stops.refused
        super()._set_completion_headers(400 if refused else status_code)

    def generate_response(self, text: str, finish_reason: str | None, *counts: Any, **parts: Any) -> Any:
        """mlx-lm's chunk or whole response; the last one says what ended the generation."""
        self._called_tool |= bool(parts.get("tool_calls"))
        row = self._stops.row if self._stops is not None else None
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
        return self._with_reasoning(super().completion_usage_response(*counts, **options))

    def _with_reasoning(self, response: Any) -> Any:
        """``response`` with the number of its reasoning tokens in its usage, if it has one."""
        row = self._stops.row if self._stops is not None else None
        if row is not None and "usage" in response and "reasoning" in row.tokens_in:
            response["usage"]["completion_tokens_details"] = {"reasoning_tokens": row.tokens_in["reasoning"]}
        return response


def main() -> None:
    """Serves until it is interrupted. Changes mlx_lm.server for the whole process."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, usage="the defaults of requests, and these:")
    add_defaults(parser)
    own, sys.argv[1:] = parser.parse_known_args()
    if {"-h", "--help"} & {*sys.argv}:
        parser.print_help()
    try:
        defaults = Defaults.from_arguments(own)
    except ValueError as error:
        parser.error(str(error))
    server.ResponseGenerator = _ResponseGenerator
    server._run_http_server = partial(server._run_http_server, handler_class=partial(_Handler, defaults=defaults))
    server.main()


if __name__ == "__main__":
    main()
