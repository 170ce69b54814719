"""The hooks of the process that answers HTTP. They refuse wrong requests. In answers of the Anthropic API, they report
the stop that fired. To each request of the chat API and of the Responses API, they add an option: the regions that the
route separates from the content.

With several tokenizer workers, sglang loads no plugins in the process that answers HTTP. Then these hooks do not run.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from stopscan.sglang._guard import Guard, Refused
from stopscan.sglang._requests import SET_APART, STOP, Requests, client_stops, listed, serving

# sglang makes a chat request from each Anthropic request. The hooks add an attribute with this name to the chat
# request. Its value is the stop that ended the stream.
NAMED = "stopscan_named"


class Routes:
    """The hooks around functions of sglang's HTTP routes, and around `SamplingParams.normalize`, which sglang calls for
    each request."""

    def __init__(self, requests: Requests, guard: Guard | None = None) -> None:
        self._requests, self._guard = requests, guard or Guard(requests.failures)

    def normalize(self, params: Any, tokenizer: Any) -> Generator[None, Any, None]:
        """Wraps `SamplingParams.normalize`. Checks the request, because sglang answers errors of `normalize` with a
        400. Hides the stops from `normalize`, which would compile the patterns with Python's `re`, and refuse more than
        32 stops."""
        if tokenizer is None:  # the server makes no text
            yield
            return
        self._requests.check(params, tokenizer)
        stops, patterns = client_stops(params), listed(params.stop_regex_strs)
        added = [stop for stop in listed(params.stop_strs) if stop not in stops]
        params.stop_strs, params.stop_regex_strs = added, None
        yield
        params.stop_strs, params.stop_regex_strs = [*params.stop_strs, *stops], patterns
        # If the request is left to sglang, sglang needs the length of its longest stop in tokens. The length in bytes
        # is large enough, because a text has at most as many tokens as bytes.
        params.stop_str_max_len = max((len(text.encode(errors="replace")) for text in params.stop_strs), default=0)

    def generate(self, obj: Any, request: Any) -> Generator[None, Any, None]:
        """Wraps `/generate`. Switches `stream` off in a wrong request, so that sglang answers with a 400. In a stream,
        sglang would report the error as an event."""
        if obj.stream:
            from sglang.srt.entrypoints.http_server import get_global_state
            from sglang.srt.sampling.sampling_params import SamplingParams

            tokenizer, given = get_global_state().tokenizer_manager.tokenizer, obj.sampling_params or {}
            try:
                for params in filter(None, given if isinstance(given, list) else [given]):
                    self._requests.check(SamplingParams(**params), tokenizer)
            except (Refused, TypeError):  # TypeError: sglang itself refuses the parameters
                obj.stream = False
        yield

    def chat(self, route: Any, request: Any, *args: Any, **options: Any) -> Generator[None, Any, None]:
        """Wraps `_convert_to_internal_request` of chats. Adds an option to the request: the regions that the route
        separates from the content."""
        adapted, _ = yield
        reads = route._encoding_output() is not None
        reasons = reads or bool(route.reasoning_parser and request.separate_reasoning)
        calls = reads or route._tool_call_parsing_active(request)
        _add_regions(adapted.sampling_params, request, reasons=reasons, calls=calls)

    def responses(self, request: Any, *args: Any, **options: Any) -> Generator[None, Any, None]:
        """Wraps `to_sampling_params` of requests of the Responses API. Adds an option to the request: the regions that
        the route separates from the content."""
        params = yield
        calls = bool(serving("tool_call_parser") and request.tools and request.tool_choice != "none")
        _add_regions(params, request, reasons=bool(serving("reasoning_parser")), calls=calls)

    def chat_chunks(self, route: Any, *args: Any, **options: Any) -> Generator[None, Any, Any]:
        """Wraps the function that makes the chunks of one step of a chat. If a step has logprobs but no text, sglang
        makes no chunk, and the logprobs are lost. The hook then adds a chunk with the logprobs. It also stores the stop
        that ended the request, so that Anthropic's stream can report it."""
        made = yield
        request, content, scores = (options[name] for name in ("request", "content", "choice_logprobs"))
        matched = (content["meta_info"].get("finish_reason") or {}).get("matched")
        if NAMED in vars(request) and isinstance(matched, str):
            vars(request)[NAMED] = matched
        if scores is None or not (request.stop or request.stop_regex or request.custom_params):
            return None

        def last(count: int) -> str:
            from sglang.srt.entrypoints.openai.sse_utils import build_sse_content

            if count:
                return ""
            same = {"chunk_id": content["meta_info"]["id"], "created": options["created"], "model": request.model}
            return str(build_sse_content(**same, index=options["index"], content="", logprobs=scores))

        return self._guard.stream(made, last=last)

    def anthropic(self, route: Any, response: Any) -> Generator[None, Any, None]:
        """Wraps the function that makes an answer of the Anthropic API without streaming. Adds the stop that fired,
        which sglang leaves out."""
        answer = yield
        matched = response.choices[0].matched_stop if response.choices else None
        if isinstance(matched, str) and answer.stop_reason == "end_turn":
            answer.stop_reason, answer.stop_sequence = "stop_sequence", matched

    def anthropic_stream(self, route: Any, adapted: Any, request: Any, *args: Any) -> Generator[None, Any, Any]:
        """Wraps the function that makes Anthropic's stream from a chat stream. Adds the stop that fired."""
        vars(request)[NAMED] = None
        made = yield
        return self._guard.stream(made, each=lambda frame: _with_stop(frame, vars(request)[NAMED]))


def _with_stop(frame: str, matched: str | None) -> str:
    if matched is None or not frame.startswith("event: message_delta\n"):
        return frame
    head, data = frame.rstrip("\n").split("\ndata: ", 1)
    event = json.loads(data)
    if event["delta"]["stop_reason"] == "end_turn":
        event["delta"] |= {"stop_reason": "stop_sequence", "stop_sequence": matched}
    return f"{head}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"


def _add_regions(params: dict[str, Any], request: Any, *, reasons: bool, calls: bool) -> None:
    """Adds an option to a request: the regions that the route separates from the content.

    sglang adds stops of its own to some requests. Such a request also gets an option with the list of the client's
    stops. stopscan then looks only for the stops in this list. sglang looks for the stops that it added, because they
    must fire in all regions.
    """
    given, stop = params.get("custom_params"), listed(request.stop)
    if isinstance(given, dict | None):
        options = {SET_APART: ["reasoning"] * reasons + ["tool_call"] * calls}
        if listed(params.get("stop")) != stop:
            options[STOP] = stop
        params["custom_params"] = {**(given or {}), **options}
