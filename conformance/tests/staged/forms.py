"""The wire formats of the APIs. Each class reads the requests of an API, and writes the answers as a whole or as
events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Any, ClassVar

from staged.generation import CHECKPOINT, Generation
from staged.request import Ask, right_limit, right_options

Data = dict[str, Any]
DONE = "[DONE]"
SSE, LINES = "text/event-stream", "application/x-ndjson"

OPENAI_WORDS = {"length": "length"}
ANTHROPIC_WORDS = {"stop_sequence": "stop_sequence", "length": "max_tokens"}


class Form:
    path: str
    media = SSE
    stop = "stop"
    named = False  # whether events have names

    def read(self, body: Data, stops: Any) -> Ask:
        right_options(body)
        return Ask(
            prompt=self.prompt(body),
            stream=body.get("stream") is True,
            max_tokens=right_limit(body.get("max_completion_tokens", body.get("max_tokens"))),
            stops=stops(body.get(self.stop, [])),
            stop_token_ids=body.get("stop_token_ids") or [],
            rows=body.get("n") or 1,
            body=body,
        )

    def prompt(self, body: Data) -> str:
        return text_of(body["messages"][-1]["content"])

    async def whole(self, made: Generation) -> Data:
        raise NotImplementedError

    def events(self, made: Generation) -> AsyncIterator[Data | str]:
        raise NotImplementedError

    def error(self, message: str) -> Data:
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def text_of(content: Any) -> str:
    """Returns the text of a message, whose content may be a list of parts."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


async def joined(made: Generation) -> tuple[str, str]:
    """Returns the whole answer and the whole reasoning."""
    parts = [part async for part in made]
    return tuple("".join(text for kind, text in parts if kind == one) for one in ("answer", "reasoning"))  # type: ignore[return-value]


class Chat(Form):
    path = "/v1/chat/completions"
    kind = "chat.completion"

    def read(self, body: Data, stops: Any) -> Ask:
        ask = super().read(body, stops)
        ask.usage = (body.get("stream_options") or {}).get("include_usage") is True
        return ask

    def head(self, made: Generation, kind: str) -> Data:
        return {
            "id": made.id,
            "object": kind,
            "created": made.created,
            "model": made.staged.told_model or made.staged.model,
        }

    async def whole(self, made: Generation) -> Data:
        choices = []
        for index, row in enumerate(made.rows):
            answer, reasoning = await joined(row)
            logprobs = self.logprobs(row.spelled, 0) if made.ask.body.get("logprobs") else None
            choices.append({"index": index, **self.answer(answer, reasoning), "logprobs": logprobs, **self.end(row)})
        return {**self.head(made, self.kind), "choices": choices, "usage": self.used(made)}

    def answer(self, text: str, reasoning: str) -> Data:
        thought = {"reasoning_content": reasoning} if reasoning else {}
        return {"message": {"role": "assistant", "content": text, **thought}}

    def logprobs(self, tokens: list[str], offset: int) -> Data:
        return {"content": [{"token": token, "logprob": 0.0, "bytes": None, "top_logprobs": []} for token in tokens]}

    def piece(self, kind: str, text: str) -> Data:
        return {"delta": {"content" if kind == "answer" else "reasoning_content": text}}

    first: ClassVar[Data | None] = {"delta": {"role": "assistant", "content": ""}}
    last: ClassVar[Data] = {"delta": {}}
    chunk = "chat.completion.chunk"

    async def events(self, made: Generation) -> AsyncIterator[Data | str]:
        head = self.head(made, self.chunk)

        def chunk(index: int, content: Data, **end: Any) -> Data:
            return {**head, "choices": [{"index": index, **content, "finish_reason": None, **end}]}

        for index, row in enumerate(made.rows):
            if self.first is not None:
                yield chunk(index, self.first)
            known = offset = 0
            async for kind, text in row:
                tokens, known = row.spelled[known:], len(row.spelled)
                more = {"logprobs": self.logprobs(tokens, offset)} if made.ask.body.get("logprobs") else {}
                offset += sum(map(len, tokens))
                yield chunk(index, self.piece(kind, text), **more)
            yield chunk(index, self.last, **self.end(row))
        if made.ask.usage:
            yield {**head, "choices": [], "usage": self.used(made)}
        yield DONE

    def end(self, made: Generation) -> Data:
        reason, matched = made.told
        named = {} if matched is None else {"matched_stop": matched}
        return {"finish_reason": OPENAI_WORDS.get(reason, "stop"), **named}

    def used(self, made: Generation) -> Data:
        prompt, tokens = made.prompt_tokens, sum(row.counted for row in made.rows)
        return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}


class Completions(Chat):
    path = "/v1/completions"
    kind = chunk = "text_completion"
    first = None
    last: ClassVar[Data] = {"text": ""}

    def read(self, body: Data, stops: Any) -> Ask:
        ask = super().read(body, stops)
        ask.apart = False
        ask.prompts = self.texts(body["prompt"])[1:] and self.texts(body["prompt"])
        return ask

    def prompt(self, body: Data) -> str:
        return self.texts(body["prompt"])[0]

    def texts(self, prompt: Any) -> list[str]:
        """Returns the prompts of a request: a text, a list of texts, token ids, or a list of lists of token ids."""
        prompts = prompt if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]
        return [
            one if isinstance(one, str) else b"".join(CHECKPOINT.tokens[token] for token in one).decode()
            for one in prompts
        ]

    def logprobs(self, tokens: list[str], offset: int) -> Data:
        offsets = [offset + sum(map(len, tokens[:index])) for index in range(len(tokens))]
        return {"tokens": tokens, "token_logprobs": [0.0] * len(tokens), "text_offset": offsets, "top_logprobs": None}

    def answer(self, text: str, reasoning: str) -> Data:
        return {"text": text}

    def piece(self, kind: str, text: str) -> Data:
        return {"text": text}


class Messages(Form):
    path = "/v1/messages"
    stop = "stop_sequences"
    named = True

    def error(self, message: str) -> Data:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def head(self, made: Generation) -> Data:
        return {
            "id": made.id,
            "type": "message",
            "role": "assistant",
            "model": made.staged.told_model or made.staged.model,
        }

    def block(self, kind: str, text: str) -> Data:
        if kind == "answer":
            return {"type": "text", "text": text}
        return {"type": "thinking", "thinking": text, "signature": ""}

    def end(self, made: Generation) -> Data:
        reason, matched = made.told
        sequence = matched if reason == "stop_sequence" else None
        return {"stop_reason": ANTHROPIC_WORDS.get(reason, "end_turn"), "stop_sequence": sequence}

    async def whole(self, made: Generation) -> Data:
        answer, reasoning = await joined(made)
        blocks = [self.block(kind, text) for kind, text in (("reasoning", reasoning), ("answer", answer)) if text]
        return {**self.head(made), "content": blocks, **self.end(made), "usage": self.used(made, made.counted)}

    async def events(self, made: Generation) -> AsyncIterator[Data | str]:
        unended = {"stop_reason": None, "stop_sequence": None, "usage": self.used(made, 0)}
        yield {"type": "message_start", "message": {**self.head(made), "content": [], **unended}}
        index, last = -1, None
        async for kind, text in made:
            if kind != last:
                if last is not None:
                    yield {"type": "content_block_stop", "index": index}
                index, last = index + 1, kind
                yield {"type": "content_block_start", "index": index, "content_block": self.block(kind, "")}
                yield {"type": "ping"}
            name = "text" if kind == "answer" else "thinking"
            delta = {"type": f"{name}_delta", name: text}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if last is not None:
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": self.end(made), "usage": {"output_tokens": made.counted}}
        yield {"type": "message_stop"}

    def used(self, made: Generation, tokens: int) -> Data:
        return {"input_tokens": made.prompt_tokens, "output_tokens": tokens}


class Ollama(Form):
    media = LINES

    def read(self, body: Data, stops: Any) -> Ask:
        options = body.get("options") or {}
        limit = {"max_tokens": options.get("num_predict")}
        ask = super().read({**body, **options, **limit}, stops)
        ask.stream = body.get("stream") is not False
        return ask

    def error(self, message: str) -> Data:
        return {"error": message}

    def content(self, text: str, reasoning: str) -> Data:
        thought = {"thinking": reasoning} if reasoning else {}
        return {"message": {"role": "assistant", "content": text, **thought}}

    def head(self, made: Generation) -> Data:
        return {
            "model": made.staged.told_model or made.staged.model,
            "created_at": datetime.now(timezone.utc).isoformat(),
        }

    def end(self, made: Generation) -> Data:
        counts = {"prompt_eval_count": made.prompt_tokens, "eval_count": made.counted, "total_duration": 1}
        return {"done": True, "done_reason": OPENAI_WORDS.get(made.told[0], "stop"), **counts}

    async def whole(self, made: Generation) -> Data:
        return {**self.head(made), **self.content(*await joined(made)), **self.end(made)}

    async def events(self, made: Generation) -> AsyncIterator[Data | str]:
        async for kind, text in made:
            content = self.content(text, "") if kind == "answer" else self.content("", text)
            yield {**self.head(made), **content, "done": False}
        yield {**self.head(made), **self.content("", ""), **self.end(made)}


class OllamaChat(Ollama):
    path = "/api/chat"


class OllamaGenerate(Ollama):
    path = "/api/generate"

    def prompt(self, body: Data) -> str:
        return body["prompt"]

    def content(self, text: str, reasoning: str) -> Data:
        return {"response": text, **({"thinking": reasoning} if reasoning else {})}


class Generate(Form):
    path = "/generate"

    def read(self, body: Data, stops: Any) -> Ask:
        sampling = body["sampling_params"]
        ask = super().read({**body, **sampling, "max_tokens": sampling.get("max_new_tokens")}, stops)
        ask.apart = False
        return ask

    def prompt(self, body: Data) -> str:
        return body["text"]

    def info(self, made: Generation, reason: Data | None) -> Data:
        return {
            "id": made.id,
            "finish_reason": reason,
            "prompt_tokens": made.prompt_tokens,
            "completion_tokens": made.counted,
        }

    def end(self, made: Generation) -> Data:
        reason, matched = made.told
        return {"type": OPENAI_WORDS.get(reason, "stop"), "matched": matched}

    async def whole(self, made: Generation) -> Data:
        text, _ = await joined(made)
        return {"text": text, "meta_info": self.info(made, self.end(made))}

    async def events(self, made: Generation) -> AsyncIterator[Data | str]:
        said = ""
        async for _, text in made:
            said += text
            yield {"text": said, "meta_info": self.info(made, None)}
        yield {"text": said, "meta_info": self.info(made, self.end(made))}
        yield DONE
