"""Tests whether stopscan works with this vLLM. Runs the same streams through vLLM's output processor twice: without
stopscan, and with it.

Needs no engine and no model: the tokenizer and the outputs of an engine core are made here. For some streams, the
expected result is one that vLLM alone cannot give. These streams show that vLLM still calls stopscan. If it did not,
the two results of every other stream would be equal anyway.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from logging import Logger
from types import SimpleNamespace
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.parser import ParserManager
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason, parallel_sampling
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector
from vllm.v1.outputs import LogprobsLists

from stopscan.engines import Defaults, Failures
from stopscan.engines.selftest import Tokenizer, source_of
from stopscan.vllm._adapter import Adapter

WORDS = ["This", " is", " E", "ND", "END", " x", " a", "<think>", "</think>", "Hello"]
SPECIAL = ["<|eos|>", "<|mark|>"]
NAME = "stopscan-self-test"

# The self-test makes most of these calls itself, so it would pass even if a new release of vLLM no longer made them. So
# it also searches the source of each module in this list for a call that matches the pattern.
CALLS = [
    ("entrypoints.openai.chat_completion.serving", r"\w\.to_sampling_params\("),
    ("entrypoints.openai.chat_completion.serving", r"\w\.to_beam_search_params\("),
    ("entrypoints.openai.chat_completion.serving", r"\bParserManager\.get_parser\("),
    ("entrypoints.openai.chat_completion.serving", r"\w\.generate\("),
    ("entrypoints.openai.completion.serving", r"\w\.to_beam_search_params\("),
    ("entrypoints.openai.completion.serving", r"\w\.generate\("),
    ("entrypoints.openai.responses.serving", r"\w\.to_sampling_params\("),
    ("v1.engine.async_llm", r"\bInputProcessor\("),
    ("v1.engine.output_processor", r"\bRequestState\.from_new_request\("),
]


def problems(standing: Callable[[Adapter], AbstractContextManager[None]]) -> list[str]:
    """Runs streams with stopscan. Returns a text for each wrong result. The list is empty if stopscan works.
    ``standing(adapter)`` installs stopscan while a ``with`` block runs."""
    streams, host, wrong = _streams(), Host(), []
    alone = {stream.name: host.run(stream) for stream in streams if stream.expected is None}
    failures = Failures(Logger("stopscan self-test", 99))
    failures.LIMIT, failures.strict = len(streams), False  # two streams fail on purpose
    adapter = Adapter(Defaults(), failures)
    adapter._log_regions = lambda engine: None  # type: ignore[method-assign] # log only the server's engine
    with standing(adapter):
        try:
            streams += host.chats(adapter)
        except Exception as error:
            wrong.append(f"a chat: {error!r}")
        for stream in streams:
            try:
                ours = host.run(stream, breaks=stream.breaks)
                if (
                    problem := ours.as_expected(stream.expected)
                    if stream.expected
                    else ours.against(alone[stream.name])
                ):
                    wrong.append(f"{stream.name}: {problem}")
            except Exception as error:
                wrong.append(f"{stream.name}: {error!r}")
    for module, call in CALLS:
        if (source := source_of(f"vllm.{module}")) and not re.search(call, source):
            wrong.append(f"vllm.{module} does not call {call}")
    if failures.count != (expected := sum(stream.breaks for stream in streams)):
        wrong.append(f"stopscan failed in {failures.count} streams instead of {expected}")
    return wrong


@dataclass(frozen=True)
class Stream:
    """One stream of the test: the texts of the tokens in each step, the sampling parameters, and how the stream ends.

    ``expected`` is a result that vLLM alone cannot give: the texts of the steps joined with ``|``, the finish reason
    and the stop reason.
    """

    name: str
    steps: Sequence[str | bytes | Sequence[str | bytes]]
    params: dict[str, Any] = field(default_factory=dict)
    finish: str | None = "length"  # `None`: the client leaves
    expected: tuple[str, str, str | None] | None = None
    interval: int = 1
    fast: bool = True
    breaks: bool = False


@dataclass
class Outcome:
    """The result of a stream. ``texts``: for each answer, its text after each step. ``ends``: for each answer, how it
    ended. ``remaining``: the aborted requests, and the count of requests that vLLM still has."""

    texts: dict[int, list[str]] = field(default_factory=dict)
    ends: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    remaining: tuple[Any, ...] = ()

    def against(self, reference: Outcome) -> str | None:
        """Compares with ``reference``, the outcome of vLLM alone. Returns a difference, or ``None``. It does not count
        as a difference if text comes sooner than in ``reference``."""
        for index, texts in reference.texts.items():
            received = self.texts.get(index, [""])
            if received[-1] != texts[-1] or not all(map(received[-1].startswith, received)):
                return f"the text {received[-1]!r} instead of vLLM's {texts[-1]!r}"
            if any(len(ours) < len(text) for ours, text in zip(received, texts, strict=False)):
                return f"the text comes in {received}, later than vLLM's {texts}"
        if (self.ends, self.remaining) != (reference.ends, reference.remaining):
            return (
                f"the answers end with {(self.ends, self.remaining)} instead of {(reference.ends, reference.remaining)}"
            )
        return None

    def as_expected(self, expected: tuple[str, str, str | None]) -> str | None:
        """Returns a difference from the ``expected`` result of a stream, or ``None``."""
        pieces = (text.removeprefix(before) for before, text in pairwise(self.texts.get(0, [])))
        came = ("|".join(pieces), *self.ends.get(0, (None, None))[-2:])
        return None if came == expected else f"{came} instead of {expected}"

    def take(self, output: Any, *, delta: bool) -> bool:
        """Adds the output of a step. Returns whether the request has finished."""
        for texts in self.texts.values() if output is None else ():
            texts.append(texts[-1])
        for answer in output.outputs if output else ():
            texts = self.texts.setdefault(answer.index, [""])
            texts.append((texts[-1] if delta else "") + answer.text)
            ids, scores = self.ends.get(answer.index, ([], 0))[:2] if delta else ([], 0)
            total = answer.cumulative_logprob
            counts = [*ids, *answer.token_ids], scores + len(answer.logprobs or ()), total and round(total, 6)
            self.ends[answer.index] = (*counts, answer.finish_reason, answer.stop_reason)
        return bool(output and output.finished)


def _streams() -> list[Stream]:
    text, stop = ["This", " is", " E", "ND", " x", " a"], {"stop": ["END"]}
    long, included, held = {"stop": ["ENDX"]}, {**stop, "include_stop_str_in_output": True}, ["This", " E"]
    between = {**stop, "extra_args": {"stopscan_protect": ["<think>", "</think>"]}}

    def by(pattern: str) -> dict[str, Any]:
        return {"extra_args": {"stopscan_patterns": [pattern]}}

    streams = [
        Stream("text that comes at once", ["This", " is", " x"], {"stop": ["En" * 9]},
               expected=("This| is| x", "length", None)),
        Stream("a pattern", ["This", " is", " x", " a"], by("i[rs] [xy]"), expected=("Th|is |", "stop", "is x")),
        Stream("a pattern that the end confirms", ["This", " is", "<|eos|>"], by(r"\bis\b"), "stop",
               ("This| |", "stop", "is")),
        Stream("a stop in a region", ["<think>", "END", "</think>", " a", "END"], between,
               expected=("<think>|END|</think>| a|", "stop", "END")),
        Stream("a failure of stopscan", text, stop, breaks=True),
        Stream("a failure with a pattern", text, by("EN[D]"), breaks=True, expected=("This|", "error", None)),
    ]  # fmt: skip
    for kind in RequestOutputKind:
        streams += [
            Stream(f"a stop over two tokens, {kind.name}", text, {**stop, "logprobs": 1, "output_kind": kind}),
            Stream(f"text held at EOS, {kind.name}", [*held, "<|eos|>"], {**long, "output_kind": kind}, "stop"),
            Stream(f"two answers, {kind.name}", text, {**stop, "n": 2, "output_kind": kind}),
        ]
    for name in FinishReason.__members__:
        streams.append(Stream(f"text held at the end by {name}", held, long, name.lower()))
    return [
        *streams,
        Stream("text held when the client leaves", held, long, None),
        Stream("several tokens a step", [["This", " is"], [" E", "ND", " x", " a"]], {**stop, "logprobs": 1}),
        Stream("a stop with the last token", text[:4], stop),
        Stream("two stops at one character", text, {"stop": ["D", "END"]}),
        Stream("a stop included", text, included),
        Stream("an EOS included", ["This", "<|eos|>"], included, "stop"),
        Stream("a stop token", ["This", " x"], stop, "stop token"),
        Stream("a stop token included", ["This", " x"], included, "stop token"),
        Stream("min_tokens", ["END", "END", "This", "END", " x"], {**stop, "min_tokens": 2}),
        Stream("min_tokens in a step", [["END", "END"], ["This", "END", " x"]], {**stop, "min_tokens": 3}),
        Stream("half characters", [b"\xe4", b"\xbd", b"\xa0", "END"], {"stop": ["\u4f60E", "ND"]}),
        Stream("half a character at the end", ["This", b"\xe4", b"\xbd"], stop),
        Stream("a special token left out", ["This", "<|mark|>", " E", "ND"], stop),
        Stream("a special token shown", ["This", "<|mark|>", " E"], {"stop": ["k|> E"], "skip_special_tokens": False}),
        Stream("an output for each three tokens", [*text[:3], " x", " a", " x"], stop, interval=3),
        Stream("a step without a token", ["This", [], " E", "ND"], stop),
        Stream("a slow tokenizer", text, stop, fast=False),
        Stream("no detokenizer", text[:3], {"detokenize": False}),
        Stream("no stop", text),
    ]


class Slow:
    """Wraps a fast tokenizer, so that vLLM treats it as a tokenizer without a fast backend."""

    def __init__(self, fast: Any) -> None:
        self._fast = fast

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fast, name)

    def __len__(self) -> int:
        return len(self._fast)


class Host:
    """Runs streams through vLLM's own classes. If a new release of vLLM requires further arguments for these classes,
    ``None`` is passed for them."""

    def __init__(self) -> None:
        made = Tokenizer(WORDS, SPECIAL)
        self._ids = made.ids
        fast = PreTrainedTokenizerFast(tokenizer_object=made.backend, eos_token="<|eos|>")
        self._tokenizers = {True: fast, False: Slow(fast)}

    def run(self, stream: Stream, *, breaks: bool = False) -> Outcome:
        """Returns the outcome of ``stream``. With ``breaks``, stopscan is made to fail in the second step."""
        params = SamplingParams(**{"max_tokens": 64, "output_kind": RequestOutputKind.DELTA, **stream.params})
        delta = params.output_kind is RequestOutputKind.DELTA
        processor = _filled(
            OutputProcessor, tokenizer=self._tokenizers[stream.fast], log_stats=False, stream_interval=stream.interval
        )
        queue = RequestOutputCollector(params.output_kind, NAME)
        names = self._add(params, processor, queue)
        outcome, aborted = Outcome(), []
        for number, step in enumerate(stream.steps, 1):
            outputs = [self._step(name, step, stream, number == len(stream.steps)) for name in names]
            aborted += processor.process_outputs(outputs).reqs_to_abort
            if outcome.take(queue.get_nowait(), delta=delta):
                break
            if number == 1 and breaks:
                processor.request_states[names[0]].detokenizer.scanner = object()
        else:
            aborted += processor.abort_requests(names, internal=True)
            outcome.take(queue.get_nowait(), delta=delta)
        outcome.remaining = (aborted, processor.get_num_unfinished_requests())
        return outcome

    def chats(self, adapter: Adapter) -> list[Stream]:
        """Returns streams whose parameters are made by two chat routes of a server with a reasoning parser."""
        config = SimpleNamespace(structured_outputs_config=SimpleNamespace(reasoning_parser="qwen3"))
        self._processor = SimpleNamespace(tokenizer=self._tokenizers[True])
        adapter.engine_made(None, self._processor, config)
        ParserManager.get_parser(reasoning_parser_name="qwen3")
        made: dict[str, Any] = {
            "a chat": ChatCompletionRequest(model="", messages=[{"role": "user", "content": "x"}], stop=["END"]),
            "an answer of Responses": ResponsesRequest(model="", input="x", stop=["END"]),
        }
        streams = []
        for name, request in made.items():
            params = request.to_sampling_params(64, {})
            AsyncLLM.generate(self, "x", params, NAME)  # makes a generator, which never runs
            given = {"stop": params.stop, "extra_args": params.extra_args}
            pieces = ["<think>", "END", "</think>", " a", "END"]
            streams.append(Stream(name, pieces, given, expected=("<think>|END|</think>| a|", "stop", "END")))
        return streams

    def _add(self, params: Any, processor: Any, queue: Any) -> list[str]:
        def request(name: str, params: Any) -> Any:
            return _filled(EngineCoreRequest, request_id=name, sampling_params=params, external_req_id=NAME,
                           prompt_token_ids=self._ids(["Hello"]), arrival_time=0.0)  # fmt: skip

        parent = parallel_sampling.ParentRequest(request(NAME, params)) if params.n > 1 else None
        children = [parent.get_child_info(index) for index in range(params.n)] if parent else [(NAME, params)]
        for index, each in enumerate(children):
            processor.add_request(request(*each), None, parent, index, queue)
        return [name for name, _ in children]

    def _step(self, name: str, step: Any, stream: Stream, last: bool) -> Any:
        ids = self._ids([step] if isinstance(step, str | bytes) else step)
        finish = FinishReason[stream.finish.split()[0].upper()] if last and stream.finish else None
        stop_reason = ids[-1] if last and stream.finish == "stop token" else None
        scores = logprobs(ids) if stream.params.get("logprobs") else None
        return _filled(EngineCoreOutput, request_id=name, new_token_ids=ids, finish_reason=finish,
                       stop_reason=stop_reason, new_logprobs=scores)  # fmt: skip


def _filled(cls: Callable[..., Any], **known: Any) -> Any:
    """Returns an object of ``cls``, with ``None`` for each required argument that is not in ``known``."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(cls).parameters.values()
    required = {one.name: None for one in parameters if one.default is one.empty and one.kind in kinds}
    return cls(**{**required, **known})


def logprobs(ids: Sequence[int]) -> Any:
    sampled = np.array(ids, dtype=int).reshape(-1, 1)
    ranks = np.ones(len(ids), dtype=int)
    return LogprobsLists(np.hstack([sampled, sampled + 1]), np.hstack([-sampled / 1024, -1 - sampled / 1024]), ranks)
