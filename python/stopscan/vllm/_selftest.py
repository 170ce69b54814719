"""Whether vLLM's texts with stopscan are what they must be: streams through vLLM's own output processor, both ways.

No engine, no model, no configuration: a tokenizer that is made on the spot, and what an engine core would send, by
hand. What is equal without and with stopscan proves little if vLLM no longer asks stopscan, so some streams have an
answer that vLLM alone cannot give.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from logging import Logger
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason, parallel_sampling
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector
from vllm.v1.outputs import LogprobsLists

from stopscan.engines import Defaults, Failures
from stopscan.engines.selftest import Tokenizer
from stopscan.vllm._adapter import Adapter

WORDS = ["This", " is", " E", "ND", "END", " x", " a", "<think>", "</think>", "Hello"]
SPECIAL = ["<|eos|>", "<|mark|>"]
NAME = "stopscan-self-test"
DELTA, WHOLE, FINAL = RequestOutputKind.DELTA, RequestOutputKind.CUMULATIVE, RequestOutputKind.FINAL_ONLY


def problems(standing: Callable[[Adapter], AbstractContextManager[None]]) -> list[str]:
    """Returns what is wrong with stopscan in this vLLM; nothing if all is right. ``standing`` puts it there."""
    streams, host, wrong = _streams(), Host(), []
    alone = {stream.name: host.run(stream) for stream in streams if stream.expected is None}
    silent = Logger("stopscan self-test")
    silent.disabled = True
    failures = Failures(silent)
    failures.LIMIT, failures.strict = len(streams), False  # two streams fail on purpose
    with standing(Adapter(Defaults(), failures)):
        for stream in streams:
            try:
                ours, theirs = host.run(stream, breaks=stream.breaks), alone.get(stream.name)
                if problem := ours.against(theirs) if theirs else ours.as_expected(stream):
                    wrong.append(f"{stream.name}: {problem}")
            except Exception as error:
                wrong.append(f"{stream.name}: {error!r}")
    if failures.count != sum(stream.breaks for stream in streams):
        wrong.append("stopscan failed in a stream and was replaced by vLLM")
    return wrong


@dataclass(frozen=True)
class Stream:
    """The pieces of each step, how the stream ends, what it asks for; ``expected`` is what vLLM alone cannot give."""

    name: str
    steps: Sequence[str | bytes | Sequence[str | bytes]]
    finish: str | None = "length"  # `None`: the client leaves
    kind: Any = DELTA
    n: int = 1
    interval: int = 1
    fast: bool = True
    stop_token: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    expected: tuple[str, str, str | None] | None = None
    at_once: bool = False
    breaks: bool = False


@dataclass
class Outcome:
    """What came of a stream: the text of each step by answer, how each answer ended, and what vLLM was left with."""

    texts: dict[int, list[str]] = field(default_factory=dict)
    ends: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    left: tuple[Any, ...] = ()

    def against(self, theirs: Outcome) -> str | None:
        """What differs from vLLM's own outcome; the text may come sooner."""
        for index, texts in theirs.texts.items():
            mine = self.texts.get(index, [])
            if "".join(mine) != "".join(texts):
                return f"the text {''.join(mine)!r} instead of {''.join(texts)!r}"
            if any(len("".join(mine[:step])) < len("".join(texts[:step])) for step in range(len(texts))):
                return f"the text comes as {mine}, later than {texts}"
        if (self.ends, self.left) != (theirs.ends, theirs.left):
            return f"it ends with {(self.ends, self.left)} instead of {(theirs.ends, theirs.left)}"
        return None

    def as_expected(self, stream: Stream) -> str | None:
        """What differs from what ``stream`` expects."""
        came = ("".join(self.texts.get(0, [])), *self.ends.get(0, (None, None, None))[1:3])
        if came != stream.expected:
            return f"{came} instead of {stream.expected}"
        if stream.at_once and self.texts[0] != list(stream.steps):
            return f"the text comes as {self.texts[0]} instead of {stream.steps}"
        return None

    def take(self, output: Any, stream: Stream) -> bool:
        """Adds what a step gave; whether the request has finished."""
        if output is None:
            for texts in self.texts.values():
                texts.append("")
            return False
        for answer in output.outputs:
            texts = self.texts.setdefault(answer.index, [])
            before = "".join(texts)
            ids, scores = list(answer.token_ids), len(answer.logprobs or ())
            if stream.kind is DELTA:
                texts.append(answer.text)
                old = self.ends.get(answer.index, ([], None, None, None, 0))
                ids, scores = old[0] + ids, old[4] + scores
            else:
                texts.append(answer.text.removeprefix(before) if answer.text.startswith(before) else f"<{answer.text}>")
            total = answer.cumulative_logprob
            self.ends[answer.index] = (
                ids, answer.finish_reason, answer.stop_reason, total if total is None else round(total, 6), scores
            )  # fmt: skip
        return bool(output.finished)


def _streams() -> list[Stream]:
    text, stop = ["This", " is", " E", "ND", " x", " a"], {"stop": ["END"]}
    long, included = {"stop": ["ENDX"]}, {"include_stop_str_in_output": True}
    streams = [
        Stream("text that comes at once", ["This", " is", " x"], params={"stop": ["En" * 9]}, at_once=True,
               expected=("This is x", "length", None)),
        Stream("a pattern", ["This", " is", " x", " a"], params={"extra_args": {"stopscan_patterns": ["i[rs] [xy]"]}},
               expected=("This ", "stop", "is x")),
        Stream("a pattern that the end confirms", ["This", " is", "<|eos|>"], "stop",
               params={"extra_args": {"stopscan_patterns": [r"\bis\b"]}}, expected=("This ", "stop", "is")),
        Stream("a stop in a region", ["<think>", "END", "</think>", " a", "END"],
               params={**stop, "extra_args": {"stopscan_protect": ["<think>", "</think>"]}},
               expected=("<think>END</think> a", "stop", "END")),
        Stream("a failure of stopscan", text, params=stop, breaks=True),
        Stream("a failure of stopscan with a pattern", text, breaks=True, expected=("This", "error", None),
               params={"extra_args": {"stopscan_patterns": ["EN[D]"]}}),
    ]  # fmt: skip
    for kind in (DELTA, WHOLE, FINAL):
        streams += [
            Stream(f"a stop over two tokens, {kind.name}", text, kind=kind, params={**stop, "logprobs": 1}),
            Stream(f"text held at EOS, {kind.name}", ["This", " E", "<|eos|>"], "stop", kind=kind, params=long),
            Stream(f"two answers, {kind.name}", text, kind=kind, n=2, params=stop),
        ]
    streams += [
        Stream(f"text held at the end by {name}", ["This", " E"], name.lower(), params=long)
        for name in FinishReason.__members__
    ]
    streams += [
        Stream("text held when the client leaves", ["This", " E"], None, params=long),
        Stream("several tokens a step", [["This", " is"], [" E", "ND", " x", " a"]], params={**stop, "logprobs": 1}),
        Stream("a stop with the last token", text[:4], params=stop),
        Stream("two stops at one character", text, params={"stop": ["D", "END"]}),
        Stream("a stop included", text, params={**stop, **included}),
        Stream("an EOS included", ["This", "<|eos|>"], "stop", params={**stop, **included}),
        Stream("a stop token", ["This", " x"], "stop", stop_token=True, params=stop),
        Stream("a stop token included", ["This", " x"], "stop", stop_token=True, params={**stop, **included}),
        Stream("min_tokens", ["END", "END", "This", "END", " x"], params={**stop, "min_tokens": 2}),
        Stream("min_tokens in a step", [["END", "END"], ["This", "END", " x"]], params={**stop, "min_tokens": 3}),
        Stream("half characters", [b"\xe4", b"\xbd", b"\xa0", "END"], params={"stop": ["\u4f60E", "ND"]}),
        Stream("half a character at the end", ["This", b"\xe4", b"\xbd"], params=stop),
        Stream("a special token left out", ["This", "<|mark|>", " E", "ND"], params=stop),
        Stream("a special token shown", ["This", "<|mark|>", " E", "ND"],
               params={"stop": ["k|> E"], "skip_special_tokens": False}),
        Stream("an output for each three tokens", [*text[:3], " x", " a", " x"], interval=3, params=stop),
        Stream("a step without a token", ["This", [], " E", "ND"], params=stop),
        Stream("a slow tokenizer", text, fast=False, params=stop),
        Stream("no detokenizer", text[:3], params={"detokenize": False}),
        Stream("no stop", text),
    ]  # fmt: skip
    return streams


class Slow:
    """A tokenizer that vLLM takes for one without a fast backend."""

    def __init__(self, fast: Any) -> None:
        self._fast = fast

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fast, name)

    def __len__(self) -> int:
        return len(self._fast)


class Host:
    """vLLM's own classes, with ``None`` for whatever a new release requires that stopscan does not know."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer(WORDS, SPECIAL)
        fast = PreTrainedTokenizerFast(tokenizer_object=self._tokenizer.backend, eos_token="<|eos|>")
        self._tokenizers = {True: fast, False: Slow(fast)}

    def run(self, stream: Stream, *, breaks: bool = False) -> Outcome:
        """What comes of ``stream``; with ``breaks``, stopscan fails in its second step."""
        params = SamplingParams(
            n=stream.n, output_kind=stream.kind, max_tokens=64, temperature=float(stream.n > 1), **stream.params
        )
        processor = _filled(
            OutputProcessor, tokenizer=self._tokenizers[stream.fast], log_stats=False, stream_interval=stream.interval
        )
        queue = RequestOutputCollector(params.output_kind, NAME)
        names = self._add(stream, params, processor, queue)
        outcome, aborted = Outcome(), []
        for number, step in enumerate(stream.steps, 1):
            outputs = [self._step(name, step, stream, number == len(stream.steps)) for name in names]
            aborted += processor.process_outputs(outputs).reqs_to_abort
            if outcome.take(queue.get_nowait(), stream):
                break
            if number == 1 and breaks:
                _break(processor.request_states[names[0]].detokenizer)
        else:
            aborted += processor.abort_requests(names, internal=True)
            outcome.take(queue.get_nowait(), stream)
        outcome.left = (aborted, processor.get_num_unfinished_requests())
        return outcome

    def _add(self, stream: Stream, params: Any, processor: Any, queue: Any) -> list[str]:
        def request(name: str, params: Any) -> Any:
            prompt = self._tokenizer.ids(["Hello"])
            return _filled(EngineCoreRequest, request_id=name, sampling_params=params, external_req_id=NAME,
                           prompt_token_ids=prompt, arrival_time=0.0)  # fmt: skip

        first = request(NAME, params)
        if stream.n == 1:
            processor.add_request(first, None, queue=queue)
            return [NAME]
        parent = parallel_sampling.ParentRequest(first)
        children = [parent.get_child_info(index) for index in range(stream.n)]
        for index, child in enumerate(children):
            processor.add_request(request(*child), None, parent, index, queue)
        return [name for name, _ in children]

    def _step(self, name: str, step: Any, stream: Stream, last: bool) -> Any:
        ids = self._tokenizer.ids([step] if isinstance(step, str | bytes) else step)
        finish = FinishReason[stream.finish.upper()] if last and stream.finish else None
        scores = logprobs(ids) if stream.params.get("logprobs") else None
        return _filled(EngineCoreOutput, request_id=name, new_token_ids=ids, finish_reason=finish,
                       stop_reason=ids[-1] if last and stream.stop_token else None, new_logprobs=scores)  # fmt: skip


def _break(detokenizer: Any) -> None:
    """Makes stopscan fail in the stream's next step."""
    if not hasattr(detokenizer, "scanner"):
        raise TypeError(f"vLLM has {type(detokenizer).__name__} in the place of stopscan's detokenizer")
    detokenizer.scanner = object()


def _filled(cls: Callable[..., Any], **known: Any) -> Any:
    """Makes an object of ``cls`` with ``None`` for each required argument that is not known."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(cls).parameters.values()
    required = {one.name: None for one in parameters if one.default is one.empty and one.kind in kinds}
    return cls(**{**required, **known})


def logprobs(ids: Sequence[int]) -> Any:
    sampled = np.array(ids, dtype=int).reshape(-1, 1)
    ranks = np.ones(len(ids), dtype=int)
    return LogprobsLists(np.hstack([sampled, sampled + 1]), np.hstack([-sampled / 1024, -1 - sampled / 1024]), ranks)
