"""``python -m stopscan.mlx_lm.server``: mlx_lm.server, with its own arguments and routes, and exact stops.

A request may have ``patterns``, ``max_held``, ``stop_token_ids``, ``min_tokens``, ``include_stop``, ``protect``,
``start_protected`` and ``repeat``, as in ``StopSet`` and ``RowScanner``. ``--protect`` and ``--repeat`` are defaults;
without the first no stop fires in the reasoning and the calls of chats (``"protect": []`` is for stops everywhere). If
a stop ended it, the last choice has a ``matched_stop``; the usage of chats has ``reasoning_tokens``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from http.server import ThreadingHTTPServer
from socket import MSG_DONTWAIT, MSG_PEEK, socket
from typing import Any

from mlx_lm import server
from mlx_lm.models.cache import can_trim_prompt_cache, trim_prompt_cache

from stopscan import Repeat, StopSet
from stopscan._engine.request import asked, server_defaults, wants_stops
from stopscan._engine.tokens import RequestOptions
from stopscan.finish import to_openai
from stopscan.mlx_lm._limits import check_body, check_ids, check_text_prompt
from stopscan.mlx_lm._row import RowScanner, RowSegmenter
from stopscan.mlx_lm._versions import SERVER, require
from stopscan.regions import NAMES, graph_of, known

require("server", SERVER)


class _Row(RowScanner):
    """A row that also ends when its client has gone: mlx-lm looks only every half second whether it is to stop one. It
    keeps its ids, to count those of the reasoning."""

    left = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.ids: list[int] = []

    def advance(self, token_id: int, /) -> bool:
        self.ids.append(token_id)
        return super().advance(token_id) or self.left


@dataclass
class _Stops:
    """What a request says about stops, and its scanner. It travels in the place of mlx-lm's stop words."""

    stop: StopSet
    options: RequestOptions
    # Whether the request itself asks for a stop.
    wanted: bool
    # The default, of which a model need not have every region.
    protect: Sequence[str]
    connection: socket
    row: _Row | None = None
    # What counts the tokens of the reasoning, if the model has any.
    regions: RowSegmenter | None = None
    refused: bool = False

    def begin(self, tokenizer: Any, prompt: Any) -> None:
        """Makes the scanner. There is none for a tokenizer that cannot be scanned, if the request asks for no stop."""
        graph = graph_of(tokenizer) or {}
        try:
            options = {"protect": known(graph, self.protect), **self.options}
            self.row = _Row(tokenizer, self.stop, prompt=prompt, **options)
            if "reasoning" in graph:
                self.regions = RowSegmenter(tokenizer, graph, prompt=prompt)
        except TypeError:
            if self.wanted:
                raise

    def count_reasoning(self, usage: dict[str, Any]) -> None:
        """Says in the ``usage`` how many tokens of the emitted text are reasoning."""
        if self.row is None or self.regions is None:
            return
        self.regions.reset()
        self.regions.feed_many(self.row.ids[: self.row.tokens_kept])
        usage["completion_tokens_details"] = {"reasoning_tokens": self.regions.tokens_in["reasoning"]}


class _ResponseGenerator(server.ResponseGenerator):
    def __init__(self, model_provider: Any, prompt_cache: Any) -> None:
        # Before super's, which starts the thread that asks the cache.
        prompt_cache.fetch_nearest_cache = partial(_fetch, prompt_cache.fetch_nearest_cache)
        super().__init__(model_provider, prompt_cache)

    def _tokenize(self, tokenizer: Any, request: Any, args: Any) -> Any:
        # Here, because this is where mlx-lm expects errors of a request; anywhere later they would end its thread.
        try:
            tokenized = super()._tokenize(tokenizer, request, args)
            check_ids(self.model_provider.model, tokenizer, tokenized[0], args.logits.logit_bias)
            args.stop_words.begin(tokenizer, tokenized[0])
        except Exception:
            args.stop_words.refused = True
            raise
        return tokenized

    def _make_state_machine(self, model_key: Any, tokenizer: Any, stop_words: Any) -> Any:
        stop_sequences, text_machine = super()._make_state_machine(model_key, tokenizer, ())
        return stop_words.row or stop_sequences, text_machine

    def generate(self, request: Any, generation_args: Any, progress_callback: Any = None) -> Any:
        context, responses = super().generate(request, generation_args, progress_callback)
        stops = generation_args.stop_words
        return context, responses if stops.row is None else _safe(responses, stops.row, stops.connection)


def _fetch(fetch: Any, model: Any, tokens: list[int]) -> tuple[Any, list[int]]:
    """What the cache has of the prompt, and the tokens that are left: one at least. A prompt of which nothing is left
    ends mlx-lm's generation thread."""
    cache, rest = fetch(model, tokens)
    if rest:
        return cache, rest
    if not can_trim_prompt_cache(cache):
        return None, tokens
    trim_prompt_cache(cache, 1)
    return cache, tokens[-1:]


def _safe(responses: Generator[Any, None, None], row: _Row, connection: socket) -> Iterator[Any]:
    with closing(responses):
        try:
            for response in responses:
                # mlx-lm writes a whole answer only at its end, and would notice only then.
                if _left(connection):
                    raise ConnectionResetError("the client has gone")
                # At a "stop", mlx-lm drops the last text and what it still withholds.
                yield replace(response, text=row.text(response), finish_reason=response.finish_reason and "length")
        finally:
            row.left = True


def _left(connection: socket) -> bool:
    """Whether the client has closed its end; what else may come is its next request."""
    try:
        return not connection.recv(1, MSG_PEEK | MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


class _HTTPServer(ThreadingHTTPServer):
    # With mlx-lm's 5, many clients that connect at once are turned away.
    request_queue_size = 1024


class _Handler(server.APIHandler):
    _stops: _Stops | None = None

    def __init__(self, *args: Any, protect: list[str] | None, repeat: Repeat | None, **options: Any) -> None:
        self._protect, self._repeat = protect, repeat
        super().__init__(*args, **options)  # which serves the request

    def do_POST(self) -> None:  # noqa: N802 - its name
        try:
            if self.headers.get("Content-Length", "").startswith("-"):
                raise ValueError("Content-Length is negative")
            super().do_POST()
        except (AssertionError, ValueError, RecursionError, OverflowError) as error:
            # Of the body alone: it is not UTF-8, is too deep or too long, or mlx-lm 0.32.0 asserts what it must have.
            # What comes later is caught there.
            self._refuse(400, error)

    def handle_completion(self, request: Any, stop_words: Any) -> None:
        try:
            # Stops are for the answer: chat routes tell it from reasoning and calls.
            default: Sequence[str] = NAMES if request.request_type == "chat" else ()
            self._stops = self._read_stops(default if self._protect is None else self._protect)
            self._called_tool = False
            check_body(self.body)
            if request.request_type == "text":
                check_text_prompt(self.body)
        except (TypeError, ValueError) as error:
            self._refuse(400, error)
            return
        try:
            super().handle_completion(request, self._stops)
        except ConnectionError:
            raise  # the client has gone
        except Exception as error:
            logging.exception("the generation failed")
            self._end_with(error)

    def _refuse(self, status: int, error: Exception) -> None:
        self._headers_buffer: list[bytes] = []  # a whole answer's are not sent before it is complete
        self._set_completion_headers(status)
        self.end_headers()
        self.wfile.write(json.dumps({"error": str(error)}).encode())

    def _end_with(self, error: Exception) -> None:
        """Ends the answer of a generation that failed; a stream has its status already, and gets an event."""
        if not self.stream:
            self._refuse(500, error)
            return
        self.wfile.write(f"data: {json.dumps({'error': {'message': str(error), 'type': 'server_error'}})}\n\n".encode())
        self.wfile.flush()

    def _read_stops(self, protect: Sequence[str]) -> _Stops:
        stops, options = asked(self.body, self._repeat)
        if options.get("min_tokens", 0) > self.max_tokens:
            raise ValueError(f"min_tokens must be at most max_tokens, {self.max_tokens}")
        return _Stops(stops, options, wants_stops(self.body), protect, self.connection)

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
        if "usage" in response:
            self._count_reasoning(response["usage"])
        return response

    def completion_usage_response(self, *counts: Any, **options: Any) -> Any:
        """mlx-lm's chunk with the usage, which names itself as the others of its stream do."""
        response = {**super().completion_usage_response(*counts, **options), "object": self.object_type}
        self._count_reasoning(response["usage"])
        return response

    def _count_reasoning(self, usage: dict[str, Any]) -> None:
        if self._stops is not None and self.object_type != "text_completion":
            self._stops.count_reasoning(usage)


def main() -> None:
    """Serves until it is interrupted. Changes mlx_lm.server for the whole process."""
    own = server_defaults()
    server.ResponseGenerator = _ResponseGenerator
    handler = partial(_Handler, protect=own.protect, repeat=own.repeat)
    server._run_http_server = partial(server._run_http_server, server_class=_HTTPServer, handler_class=handler)
    server.main()


if __name__ == "__main__":
    main()
