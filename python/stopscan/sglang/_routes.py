"""In the process that answers HTTP: a wrong request is a 400, chat is noted, Anthropic's clients hear of stops."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from types import SimpleNamespace
from typing import Any

from stopscan.sglang._requests import KEY, Requests


class Routes:
    """The hooks of the tokenizer manager and of the routes. With several tokenizer workers, sglang has none of them."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def refuse(self, original: Callable[..., Any], manager: Any, *args: Any, **options: Any) -> Any:
        """Around the making of a request, where a ``ValueError`` is a 400: raises one for what no scanner takes."""
        made = original(manager, *args, **options)
        params = getattr(made, "sampling_params", None)
        if hasattr(params, "stop_strs"):
            try:
                self._check(params, manager.tokenizer)
            except ValueError:
                raise
            except BaseException as error:
                self._requests.circuit.note(error, "goes on")
        return made

    def _check(self, params: Any, tokenizer: Any) -> None:
        spec = self._requests.spec(params, tokenizer, thinks=False, prompt_end=str)
        if spec:
            _ = spec.stops

    async def refuse_stream(self, original: Callable[..., Any], obj: Any, request: Any) -> Any:
        """Around a stream of ``/generate``, in which sglang tells of errors in an event: a 400 before it begins."""
        if obj.stream:
            asked = obj.sampling_params or {}
            try:
                from sglang.srt.entrypoints.http_server import get_global_state

                tokenizer = get_global_state().tokenizer_manager.tokenizer
                for params in asked if isinstance(asked, list) else [asked]:
                    self._check(_as_sglang(params), tokenizer)
            except ValueError as error:
                from fastapi.responses import JSONResponse

                problem = {"message": str(error), "type": "invalid_request_error", "code": 400}
                return JSONResponse({"error": problem}, status_code=400)
            except BaseException as error:
                self._requests.circuit.note(error, "goes on")
        return await original(obj, request)

    def chat(self, original: Callable[..., Any], request: Any, *args: Any, **options: Any) -> Any:
        """Around `to_sampling_params` of the chat routes: notes the route, and the stops that are not the user's."""
        params = original(request, *args, **options)
        try:
            _note_chat(params, set(_listed(params.get("stop"))) - set(_listed(request.stop)))
        except BaseException as error:
            self._requests.circuit.note(error, "goes on")
        return params

    def ollama_chat(self, original: Callable[..., Any], serving: Any, request: Any, *args: Any) -> Any:
        """Around the answers of `/api/chat`."""
        try:
            _note_chat(request.sampling_params, set())
        except BaseException as error:
            self._requests.circuit.note(error, "goes on")
        return original(serving, request, *args)

    def anthropic_answer(self, original: Callable[..., Any], serving: Any, response: Any) -> Any:
        """Around Anthropic's whole answer: names the stop, which sglang leaves out."""
        answer = original(serving, response)
        try:
            matched = response.choices[0].matched_stop if response.choices else None
            if isinstance(matched, str) and answer.stop_reason == "end_turn":
                answer.stop_reason, answer.stop_sequence = "stop_sequence", matched
        except BaseException as error:
            self._requests.circuit.note(error, "goes on")
        return answer

    async def anthropic_stream(
        self, original: Callable[..., Any], serving: Any, request: Any, *args: Any
    ) -> AsyncIterator[str]:
        """Around Anthropic's stream, which is made from the chat stream of the same request."""
        request.stopscan_matched = None
        async for frame in original(serving, request, *args):
            yield self._with_stop(frame, request.stopscan_matched) if request.stopscan_matched else frame

    def chat_stream(self, original: Callable[..., Any], serving: Any, request: Any, *args: Any) -> Any:
        """Around a chat stream: notes the stop if it becomes Anthropic's."""
        made = original(serving, request, *args)
        return self._noting(made, request) if hasattr(request, "stopscan_matched") else made

    async def _noting(self, made: AsyncIterator[str], request: Any) -> AsyncIterator[str]:
        async for line in made:
            if '"matched_stop":"' in line:
                try:
                    request.stopscan_matched = json.loads(line.removeprefix("data: "))["choices"][0]["matched_stop"]
                except BaseException as error:
                    self._requests.circuit.note(error, "goes on")
            yield line

    def _with_stop(self, frame: str, matched: str) -> str:
        if not frame.startswith("event: message_delta\n"):
            return frame
        try:
            head, data = frame.rstrip("\n").split("\ndata: ", 1)
            event = json.loads(data)
            if event["delta"]["stop_reason"] == "end_turn":
                event["delta"] |= {"stop_reason": "stop_sequence", "stop_sequence": matched}
            return f"{head}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"
        except BaseException as error:
            self._requests.circuit.note(error, "goes on")
            return frame


def _note_chat(params: dict[str, Any], own: set[str]) -> None:
    params["custom_params"] = {**(params.get("custom_params") or {}), KEY: sorted(own)}


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _as_sglang(params: Mapping[str, Any]) -> Any:
    """What sglang makes of a request's parameters, as far as a spec reads it."""
    return SimpleNamespace(
        stop_strs=_listed(params.get("stop")),
        stop_regex_strs=_listed(params.get("stop_regex")),
        custom_params=params.get("custom_params"),
        ignore_eos=False,
        stop_token_ids=(),
        no_stop_trim=False,
        skip_special_tokens=True,
    )
