from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from transformers.cli.serving import utils

from stopscan._engine.tokens import RowOptions
from stopscan.finish import Finish
from stopscan.transformers._stops import Stops
from stopscan.transformers.continuous import RowScanner
from stopscan.transformers.serve._request import Asked, current, refusing


class Streamer(utils.DirectStreamer):
    """Puts safe text, or what the model's parser makes of it, into the queue that the server sends from."""

    # To be set: what ends the generation, and what came of it, with the number of tokens.
    cancel: Callable[[], None]
    outcome: Callable[[], tuple[Finish | None, int]]

    def __init__(self, processor: Any, parser: Any) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue()
        super().__init__(_tokenizer(processor), asyncio.get_running_loop(), self.queue, response_parser=parser)
        self._asked = current.get()

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        if text:
            items = [text] if self._parser is None else utils.response_events_to_chunks(self._parser.feed(text))
            for item in items:
                self._enqueue(item)
        if stream_end:
            self._asked.finish, self.total_tokens = self.outcome()
            self.end()

    def fail(self, error: object) -> None:
        self._enqueue(utils._StreamError(str(error)))


class GenerateManager(utils.GenerateManager):
    """One request at a time, with ``Stops``."""

    def generate_streaming(
        self, model: Any, processor: Any, inputs: Any, gen_config: Any, request_id: str, response_parser: Any = None
    ) -> tuple[Any, Streamer]:
        streamer = Streamer(processor, response_parser)
        stops = _stops(processor, inputs, gen_config, raw=response_parser is not None, streamer=streamer)
        streamer.cancel = stops.close
        streamer.outcome = lambda: (stops.finishes[0], stops.tokens_seen[0])

        def run() -> None:
            try:
                model.generate(**_arguments(model, inputs, gen_config, stops))
            except Exception as error:
                streamer.fail(error)

        self.submit(run)
        return streamer.queue, streamer

    async def generate_non_streaming(
        self, model: Any, processor: Any, inputs: Any, gen_config: Any, request_id: str
    ) -> tuple[str, int, list[int]]:
        asked = current.get()
        raw = utils.get_response_template(processor, model) is not None
        stops = _stops(processor, inputs, gen_config, raw=raw)
        try:
            sequences = await self.async_submit(model.generate, **_arguments(model, inputs, gen_config, stops))
        except asyncio.CancelledError:
            stops.close()
            raise
        (asked.text,), (asked.finish,), (tokens,) = stops.texts, stops.finishes, stops.tokens_seen
        length = inputs["input_ids"].shape[-1]
        return asked.text, length, sequences[0, length : length + tokens].tolist()


class CBGenerateManager(utils.CBGenerateManager):
    """Continuous batching, with a ``RowScanner`` for each request."""

    def generate_streaming(
        self, model: Any, processor: Any, inputs: Any, gen_config: Any, request_id: str, response_parser: Any = None
    ) -> tuple[Any, Streamer]:
        streamer, asked = Streamer(processor, response_parser), current.get()
        row = _row(processor, inputs, gen_config, raw=response_parser is not None)

        def take(output: Any) -> None:
            try:
                text, over = row.text(output), output.is_finished()
                streamer.outcome = lambda: (row.finish, len(output.generated_tokens))
                asked.token_ids = lambda: output.generated_tokens[: row.tokens_kept]
                streamer.on_finalized_text(text, over and output.error is None)
                if output.error is not None:
                    streamer.fail(output.error)
            except Exception as error:
                streamer.fail(error)

        engine_id = self._add(row, inputs, gen_config, request_id, take, streaming=True)
        streamer.cancel = lambda: self._cb.cancel_request(engine_id)
        return streamer.queue, streamer

    async def generate_non_streaming(
        self, model: Any, processor: Any, inputs: Any, gen_config: Any, request_id: str
    ) -> tuple[str, int, list[int]]:
        asked, outputs = current.get(), asyncio.get_running_loop().create_future()
        row = _row(processor, inputs, gen_config, raw=utils.get_response_template(processor, model) is not None)

        def take(output: Any) -> None:
            if not outputs.done():
                outputs.set_result(output)

        engine_id = self._add(row, inputs, gen_config, request_id, take, streaming=False)
        try:
            output = await outputs
        except asyncio.CancelledError:
            self._cb.cancel_request(engine_id)
            raise
        if output.error is not None:
            self._check_alive(request_id)
            raise RuntimeError(f"continuous batching failed for {request_id}: {output.error}")
        asked.text, asked.finish = row.text(output), row.finish
        asked.token_ids = lambda: output.generated_tokens[: row.tokens_kept]
        return asked.text, len(inputs["input_ids"]), output.generated_tokens

    def _add(
        self,
        row: RowScanner,
        inputs: Any,
        gen_config: Any,
        request_id: str,
        take: Callable[[Any], None],
        **options: Any,
    ) -> str:
        """The id of the request for the engine: clients choose theirs, and may choose one twice."""
        self._check_alive(request_id)
        engine_id = f"{request_id}-{uuid4().hex}"
        # Before the request is added: its first output must not find nobody there.
        self._cb.register_result_handler(engine_id, take)
        limit = gen_config.max_new_tokens
        self._cb.add_request(inputs["input_ids"], engine_id, max_new_tokens=limit, eos_token_id=row, **options)
        return engine_id


def _stops(processor: Any, inputs: Any, gen_config: Any, *, raw: bool, streamer: Any = None) -> Stops:
    request, (prompt,) = current.get(), inputs["input_ids"].tolist()
    with refusing():
        stops = Stops(
            processor, request.stop, streamer=streamer, **_options(request, processor, prompt, gen_config, raw=raw)
        )
    request.token_ids = lambda: stops.kept_ids[0]
    return stops


def _row(processor: Any, inputs: Any, gen_config: Any, *, raw: bool) -> RowScanner:
    request, prompt = current.get(), inputs["input_ids"]
    with refusing():
        return RowScanner(
            processor,
            request.stop,
            prompt_token_ids=prompt,
            **_options(request, processor, prompt, gen_config, raw=raw),
        )


def _options(request: Asked, processor: Any, prompt: Sequence[int], gen_config: Any, *, raw: bool) -> RowOptions:
    own: RowOptions = {"eos_token_ids": gen_config.eos_token_id, "skip_special_tokens": not raw}
    return {**own, **request.options_for(getattr(processor, "tokenizer", processor), prompt)}


def _arguments(model: Any, inputs: Any, gen_config: Any, stops: Stops) -> dict[str, Any]:
    # Models that can speak would; the server sends text.
    mode = {"generation_mode": "text"} if hasattr(model, "has_talker") else {}
    return {**inputs, **mode, "generation_config": gen_config, "stopping_criteria": [stops], "streamer": stops}


def _tokenizer(processor: Any) -> Any:
    return getattr(processor, "tokenizer", processor)._tokenizer
