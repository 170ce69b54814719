"""Streams for the adapter's test of itself, and vLLM's own classes to run them through."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stopscan.engines.selftest import Tokenizer

WORDS = ["This", " is", " E", "ND", "END", " x", " a", "<think>", "</think>", "Hello"]
SPECIAL = ["<|eos|>", "<|mark|>"]
NAME = "stopscan-self-test"


@dataclass(frozen=True)
class Stream:
    """The pieces of each step, how the stream ends, what it asks for; ``expected`` is what vLLM alone cannot give."""

    name: str
    steps: Sequence[str | bytes | Sequence[str | bytes]]
    finish: str | None = "length"  # `None`: the client leaves
    kind: str = "delta"
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
    for kind in ("delta", "whole", "final"):
        streams += [
            Stream(f"a stop over two tokens, {kind}", text, kind=kind, params={**stop, "logprobs": 1}),
            Stream(f"text held at EOS, {kind}", ["This", " E", "<|eos|>"], "stop", kind=kind, params=long),
            Stream(f"two answers, {kind}", text, kind=kind, n=2, params=stop),
        ]
    streams += [Stream(f"text held at the end by {name}", ["This", " E"], name, params=long) for name in _finishes()]
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


def _finishes() -> list[str]:
    from vllm.v1.engine import FinishReason

    return [reason.name.lower() for reason in FinishReason]


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
        from transformers import PreTrainedTokenizerFast
        from vllm.sampling_params import RequestOutputKind, SamplingParams
        from vllm.v1 import engine
        from vllm.v1.engine import output_processor, parallel_sampling

        self.streams = _streams()
        self._tokenizer = Tokenizer(WORDS, SPECIAL)
        self._fast = PreTrainedTokenizerFast(tokenizer_object=self._tokenizer.backend, eos_token="<|eos|>")
        self._slow = Slow(self._fast)
        self._kinds = {"delta": RequestOutputKind.DELTA, "whole": RequestOutputKind.CUMULATIVE,
                       "final": RequestOutputKind.FINAL_ONLY}  # fmt: skip
        self._params = SamplingParams
        self._request = _filled(engine.EngineCoreRequest)
        self._output = _filled(engine.EngineCoreOutput)
        self._processor = _filled(output_processor.OutputProcessor)
        self._queue = output_processor.RequestOutputCollector
        self._parent = parallel_sampling.ParentRequest
        self._reasons = engine.FinishReason

    def run(self, stream: Stream, interfere: Callable[[Any], None] | None = None) -> Outcome:
        """What comes of ``stream``; ``interfere`` gets the first answer's detokenizer after the first step."""
        params = self._params(
            n=stream.n,
            output_kind=self._kinds[stream.kind],
            max_tokens=64,
            temperature=float(stream.n > 1),
            **stream.params,
        )
        tokenizer = self._fast if stream.fast else self._slow
        processor = self._processor(tokenizer=tokenizer, log_stats=False, stream_interval=stream.interval)
        queue = self._queue(params.output_kind, NAME)
        names = self._add(stream, params, processor, queue)
        outcome, aborted = Outcome(), []
        for number, step in enumerate(stream.steps, 1):
            last = number == len(stream.steps)
            outputs = [self._step(name, step, stream, last) for name in names]
            aborted += processor.process_outputs(outputs).reqs_to_abort
            if _take(queue.get_nowait(), outcome, stream):
                break
            if number == 1 and interfere is not None:
                interfere(processor.request_states[names[0]].detokenizer)
        else:
            aborted += processor.abort_requests(names, internal=True)
            _take(queue.get_nowait(), outcome, stream)
        outcome.left = (aborted, processor.get_num_unfinished_requests())
        return outcome

    def _add(self, stream: Stream, params: Any, processor: Any, queue: Any) -> list[str]:
        prompt = self._tokenizer.ids(["Hello"])
        common = {"external_req_id": NAME, "prompt_token_ids": prompt, "arrival_time": 0.0}
        request = self._request(request_id=NAME, sampling_params=params, **common)
        if stream.n == 1:
            processor.add_request(request, None, queue=queue)
            return [NAME]
        parent, names = self._parent(request), []
        for index in range(stream.n):
            name, child = parent.get_child_info(index)
            request = self._request(request_id=name, sampling_params=child, **common)
            processor.add_request(request, None, parent, index, queue)
            names.append(name)
        return names

    def _step(self, name: str, step: Any, stream: Stream, last: bool) -> Any:
        ids = self._tokenizer.ids([step] if isinstance(step, str | bytes) else step)
        finish = self._reasons[stream.finish.upper()] if last and stream.finish else None
        reason = ids[-1] if last and stream.stop_token else None
        scores = logprobs(ids) if stream.params.get("logprobs") else None
        return self._output(
            request_id=name, new_token_ids=ids, finish_reason=finish, stop_reason=reason, new_logprobs=scores
        )


def _filled(cls: Callable[..., Any]) -> Callable[..., Any]:
    """``cls`` with ``None`` for each required argument that a call leaves out."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(cls).parameters.values()
    required = {one.name: None for one in parameters if one.default is one.empty and one.kind in kinds}
    return lambda **known: cls(**{**required, **known})


def logprobs(ids: Sequence[int]) -> Any:
    import numpy as np
    from vllm.v1.outputs import LogprobsLists

    sampled = np.array(ids, dtype=int).reshape(-1, 1)
    ranks = np.ones(len(ids), dtype=int)
    return LogprobsLists(np.hstack([sampled, sampled + 1]), np.hstack([-sampled / 1024, -1 - sampled / 1024]), ranks)


def _take(output: Any, outcome: Outcome, stream: Stream) -> bool:
    """Adds what a step gave to ``outcome``; whether the request has finished."""
    if output is None:
        for texts in outcome.texts.values():
            texts.append("")
        return False
    for answer in output.outputs:
        texts = outcome.texts.setdefault(answer.index, [])
        before = "".join(texts)
        ids, scores = list(answer.token_ids), len(answer.logprobs or ())
        if stream.kind == "delta":
            texts.append(answer.text)
            old = outcome.ends.get(answer.index, ([], None, None, None, 0))
            ids, scores = old[0] + ids, old[4] + scores
        else:
            texts.append(answer.text.removeprefix(before) if answer.text.startswith(before) else f"<{answer.text}>")
        total = answer.cumulative_logprob
        outcome.ends[answer.index] = (
            ids, answer.finish_reason, answer.stop_reason, total if total is None else round(total, 6), scores
        )  # fmt: skip
    return bool(output.finished)
