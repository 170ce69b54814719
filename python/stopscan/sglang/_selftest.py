"""Tests whether stopscan works with this sglang: runs streams through sglang's own scheduler and detokenizer code.

Needs no engine, no model and no HTTP server. Uses a tokenizer that is made here, sglang's classes for requests and
messages, and one function of sglang's detokenizer.
"""

from __future__ import annotations

import asyncio
import pickle
import re
from array import array
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from inspect import iscoroutinefunction, signature
from logging import Logger
from pkgutil import resolve_name
from typing import Any, NamedTuple
from unittest.mock import MagicMock, Mock, patch

from sglang.srt.disaggregation.utils import DisaggregationMode
from sglang.srt.managers import io_struct, schedule_batch
from sglang.srt.managers.detokenizer_manager import DetokenizerManager, LimitedCapacityDict
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.managers.scheduler_components import output_streamer
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from transformers import PreTrainedTokenizerFast

from stopscan.engines import Failures
from stopscan.engines.selftest import Tokenizer, source_of
from stopscan.sglang._requests import SET_APART

WORDS = ["hello", " world", " END", "STO", "P", "ND", "<think>", "</think>", " x"]
SPECIAL = ["<|eos|>", "<|mark|>"]


class Case(NamedTuple):
    """One stream: its pieces (the text or the bytes of each token), its sampling parameters, the expected text, and the
    expected stop. The stop is `None` if `max_new_tokens` ends the stream, and -1 if the EOS ends it."""

    pieces: Sequence[str | bytes]
    params: dict[str, Any]
    text: str
    matched: str | int | None


# The answer of the routes' requests.
ANSWER = ["<think>", " END", "</think>", " x", " END"]
BETWEEN = {"stop": ["ND"], "custom_params": {"stopscan_protect": ["<think>", "</think>"]}}
CASES = [
    Case(["hello", " world", " ", "4"], {"stop": ["world", "hello world"]}, "", "hello world"),
    Case(["hello", " world", " ", "4"], {"stop_regex": ["w[a-z]+d"]}, "hello ", "w[a-z]+d"),
    Case([bytes([byte]) for byte in "你好、世界".encode()], {"stop": ["、世"]}, "你好", "、世"),
    Case(["x", "STO", "P", "y"], {"stop": ["STOP"], "no_stop_trim": True}, "xSTOP", "STOP"),
    Case(["x", "STO", "P", "y"], {"stop": ["OPy"], "max_new_tokens": 3}, "xSTOP", None),
    Case(["x", "S", "T", "x"], {"stop": ["STOP"]}, "xSTx", -1),
    Case(["w", "w", "o", "d"], {"stop_regex": [r"w\[a-z\]\+d"]}, "wwod", -1),
    Case(["x", " END", " x"], {"stop": ["ND"], "custom_params": {"stopscan_patterns": ["E[A-Z]D"]}}, "x ", "E[A-Z]D"),
    Case(["<think>", " END", "</think>", " END"], BETWEEN, "<think> END</think> E", "ND"),
    Case(["x", " END"], {"stop_regex": [r"END\b"], "max_new_tokens": 2}, "x ", r"END\b"),
    Case(["hello", " world"], {}, "hello world", -1),
]


ENTRY = "sglang.srt.entrypoints."
GENERATE = f"{ENTRY}http_server.serve_generate_request"
# The self-test itself calls the functions that the hooks wrap, so it would pass even if a new release of sglang no
# longer called them. So it also searches the source of each module in this list for a call that matches the pattern.
CALLS = [
    ("srt.managers.tokenizer_manager", r"sampling_params\.normalize\("),
    ("srt.managers.scheduler", r"self\._add_request_to_queue\("),
    ("srt.managers.detokenizer_manager", r"self\._decode_batch_token_id_output\("),
    ("srt.entrypoints.http_server", r"await serve_generate_request\("),
    ("srt.entrypoints.openai.serving_responses", r"request\.to_sampling_params\("),
]


class Host:
    """The parts of sglang's scheduler and detokenizer that make text, with one tokenizer."""

    def __init__(self) -> None:
        made = Tokenizer(WORDS, SPECIAL)
        self.ids = made.ids
        self.tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=made.backend, eos_token="<|eos|>")
        self.tokenizer.additional_stop_token_ids = None
        self.tokenizer.chat_template = "{{ messages[-1].content }}{# <think> </think> #}"
        self.detokenizer = object.__new__(DetokenizerManager)
        vars(self.detokenizer).update(
            tokenizer=self.tokenizer,
            vocab_size=len(self.tokenizer),
            decode_status=LimitedCapacityDict(capacity=1 << 16),
            disable_tokenizer_batch_decode=False,
            is_tool_call_parser_gpt_oss=False,
            tool_close_token_ids=set(),
        )

    def run(
        self, streams: Mapping[str, tuple[Sequence[int], dict[str, Any]]], step: int = 1
    ) -> dict[str, tuple[list[str], dict[str, Any], int]]:
        """Runs all streams in one batch with ``step`` tokens a step. Returns the texts, the finish reason and the
        number of tokens of each stream."""
        rows = [(self._request(rid, params), ids) for rid, (ids, params) in streams.items()]
        came: dict[str, tuple[list[str], dict[str, Any], int]] = {rid: ([], {}, 0) for rid in streams}
        done = 0
        while live := [(req, ids) for req, ids in rows if not req.finished()]:
            for req, ids in live:
                new = ids[done : done + step] or [self.tokenizer.eos_token_id]
                req.output_ids.extend(new)
                req.update_finish_state(len(new))
            done += step
            message = self._message([req for req, _ in live])
            if message is not None:
                texts = self.detokenizer._decode_batch_token_id_output(message)
                for rid, text, reason, kept in zip(
                    message.rids, texts, message.finished_reasons, message.completion_tokens, strict=True
                ):
                    came[rid] = ([*came[rid][0], text], reason or {}, kept)
        return came

    def _request(self, rid: str, params: dict[str, Any]) -> Any:
        sampling = SamplingParams(**{"max_new_tokens": 1000, **params})
        sampling.normalize(self.tokenizer)
        size = len(self.tokenizer)
        req = schedule_batch.Req(rid, "", array("q", [1]), sampling, stream=True, vocab_size=size, eos_token_ids=None)
        req.tokenizer = self.tokenizer
        queue = Mock(disaggregation_mode=DisaggregationMode.NULL)
        Scheduler._add_request_to_queue(queue, req)
        return req

    def _message(self, reqs: Sequence[Any]) -> Any:
        made = output_streamer._GenerationStreamAccumulator(
            **{f"return_{name}": False for name in ("logprob", "hidden_states", "routed_experts", "indexer_topk")},
            spec_algorithm=SpeculativeAlgorithm.NONE,
            disaggregation_mode=DisaggregationMode.NULL,
            default_stream_interval=1,
            default_force_stream_interval=50,
            get_cached_tokens_details=lambda req: None,
            is_request_level_customized_info_key=lambda key: False,
            current_weight_version="default",
        )
        for req in reqs:
            made.accept(req=req)
        message = made.to_payload(dp_rank=0, is_idle_batch=False)
        if message is None or io_struct._USE_PICKLE_IPC:
            return pickle.loads(pickle.dumps(message))
        return io_struct.msgpack_decode(io_struct.msgpack_encode(message))


@contextmanager
def installed(hooks: dict[str, Any]) -> Iterator[None]:
    """Installs the hooks while a ``with`` block runs, in the same way as sglang's registry."""
    with ExitStack() as stack:
        for target, hook in hooks.items():
            owner, _, name = target.rpartition(".")
            container = resolve_name(owner)
            original = vars(container)[name]
            ours = wraps(original)(lambda *args, hook=hook, original=original, **more: hook(original, *args, **more))
            stack.enter_context(patch.object(container, name, ours))
        yield


def misfits(targets: Collection[str]) -> list[str]:
    """Returns a text for each problem with sglang's functions. The function of `/generate` must be asynchronous and
    have a parameter `obj`. Each module in `CALLS` must have the call that is listed for it."""
    wrong = []
    if GENERATE in targets:
        function = resolve_name(GENERATE)
        if not iscoroutinefunction(function) or "obj" not in signature(function).parameters:
            wrong.append(f"{GENERATE} has no obj, or runs otherwise")
    for module, call in CALLS:
        if (source := source_of(f"sglang.{module}")) and not re.search(call, source):
            wrong.append(f"sglang.{module} does not call {call}")
    return wrong


class Manager(MagicMock):
    """Stands for sglang's ``TokenizerManager``: its ``host`` makes the answer ``ANSWER``."""

    async def generate_request(self, request: Any, raw_request: Any = None) -> AsyncIterator[dict[str, Any]]:
        ids = self.host.ids(ANSWER)
        texts, reason, _ = self.host.run({"r": (ids, request.sampling_params)})["r"]
        for count in range(1, len(texts) + 1) if request.stream else [len(texts)]:
            meta = {"id": "r", "prompt_tokens": 1, "completion_tokens": count, "weight_version": ""}
            meta["finish_reason"] = reason if count == len(texts) else None
            yield {"text": "".join(texts[:count]), "output_ids": ids[:count], "index": 0, "meta_info": meta}


async def route_problems(host: Host) -> list[str]:
    """Makes the parameters of a request to Responses, and sends requests through sglang's routes for chats and for
    Anthropic's messages, with a reasoning parser. Returns a text for each wrong result."""
    from sglang.srt.entrypoints.anthropic.protocol import AnthropicMessagesRequest
    from sglang.srt.entrypoints.anthropic.serving import AnthropicServing
    from sglang.srt.entrypoints.openai import protocol, serving_chat

    wrong = []
    params: Any = protocol.ResponsesRequest(model="m", input="x", stop=["END"]).to_sampling_params(64, {})
    if not isinstance(params, dict) or SET_APART not in (params.get("custom_params") or {}):
        wrong.append(f"a request to Responses has the parameters {params!r}")
    manager = Manager(host=host, tokenizer=host.tokenizer, config_value={"reasoning_parser": "qwen3"}.get)
    manager.model_config.configure_mock(is_multimodal=False, **{"get_default_sampling_params.return_value": {}})
    manager.request_logger.log_requests = False
    template = MagicMock(chat_template_name=None, jinja_template_content_format="string", reasoning_config=None)
    with patch.multiple(serving_chat, get_serving=_Settings, get_model=_Settings):
        chat = serving_chat.OpenAIServingChat(manager, template)
        for stream in (True, False):
            body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": stream}
            openai = protocol.ChatCompletionRequest(**body, stop=["END"], max_completion_tokens=64)
            anthropic = AnthropicMessagesRequest(**body, stop_sequences=["END"], max_tokens=64)
            for name, answer in (
                ("matched_stop", await chat.handle_request(openai, None)),
                ("stop_sequence", await AnthropicServing(chat).handle_messages(anthropic, None)),
            ):
                text = await _text(answer)
                # A right answer has the stop twice: in the reasoning, and in `matched_stop` or `stop_sequence`.
                if text.count("END") != 2 or f'"{name}":"END"' not in text:
                    wrong.append(f"a chat with stream={stream} is answered with {text}")
    return wrong


class _Settings:
    """The server's settings, all ``None``."""

    def __getattr__(self, name: str) -> None:
        return None


async def _text(answer: Any) -> str:
    """Returns the JSON of an answer or of the events of a stream, without spaces."""
    if hasattr(answer, "body_iterator"):
        text = "".join([event async for event in answer.body_iterator])
    else:
        text = answer.body.decode() if hasattr(answer, "body") else answer.model_dump_json()
    return text.replace(" ", "")


def problems(hooks: Callable[[Failures], dict[str, Any]]) -> list[str]:
    """Runs ``CASES`` with these ``hooks``. Returns a text for each wrong result. The list is empty if stopscan
    works."""
    failures, wrong = Failures(Logger("stopscan self-test", 99)), []
    try:
        placed = hooks(failures)
        wrong += misfits(placed)
        host = Host()
        streams = {str(number): (host.ids(case.pieces), case.params) for number, case in enumerate(CASES)}
        with installed(placed):
            if GENERATE in placed:  # this process serves HTTP
                wrong += asyncio.run(route_problems(host))
            for step in (1, 2, 5):
                for case, (texts, reason, _) in zip(CASES, host.run(streams, step).values(), strict=True):
                    matched = host.tokenizer.eos_token_id if case.matched == -1 else case.matched
                    came = "".join(texts), reason.get("matched")
                    if came != (case.text, matched):
                        wrong.append(f"{case.pieces} with {case.params} gives {came} at {step} tokens a step")
    except Exception as error:
        return [f"the self-test failed: {error!r}"]
    return [*wrong, *["stopscan failed in a stream"] * bool(failures.count)]
