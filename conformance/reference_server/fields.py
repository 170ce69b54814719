"""The fields that requests of several APIs share. If a field is neither in the pydantic model of a request nor in
its table `taken`, the request is refused with an error that names the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from stopscan.engines import Defaults, StopOptions, read_options

MAX_STOPS = 64
T = TypeVar("T")
# Only the first wrong item is reported: reporting a thousand would hold the GIL, and the event loop would wait.
Many = Annotated[list[T], Field(fail_fast=True)]


def listed(value: Any) -> Any:
    """Returns a bare string as a list of one item, and null as an empty list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def parts(value: Any) -> Any:
    """Returns a list of content parts: a bare string becomes one text part, and null an empty list."""
    if value is None:
        return []
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


String = Annotated[str, Field(min_length=1, max_length=4096)]
Strings = Annotated[Many[String], Field(max_length=MAX_STOPS), BeforeValidator(listed)]
Protect = Annotated[
    Annotated[Many[String], Field(max_length=MAX_STOPS)] | None,
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
]
Ids = Annotated[Many[Annotated[int, Field(ge=0, lt=2**32)]], Field(max_length=MAX_STOPS), BeforeValidator(listed)]
Limit = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
TopP = Annotated[float, Field(gt=0, le=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]

# Fields that ordinary clients send and that do nothing here, with the values that are accepted; ANY accepts all
# values. Any other value would have to change the answer, so the request is refused.
ANY = object()
Taken = Mapping[str, Any]


def anything(names: str) -> Taken:
    return dict.fromkeys(names.split(), ANY)


SAMPLING: Taken = {"frequency_penalty": (0,), "presence_penalty": (0,), "n": (1,)}
LOGPROBS: Taken = {"logprobs": (False,), "top_logprobs": (0,)}
OPENAI: Taken = {
    **anything("metadata prompt_cache_key safety_identifier seed service_tier user"),
    **anything("include reasoning reasoning_effort verbosity"),  # how much to think; what to send besides text
    **SAMPLING, **LOGPROBS, "best_of": (1,), "echo": (False,), "logit_bias": ({},), "modalities": (["text"],),
    "parallel_tool_calls": (True,), "response_format": ({"type": "text"},), "store": (False,), "suffix": ("",),
    "text": ({"format": {"type": "text"}}, {}), "truncation": ("disabled",),
}  # fmt: skip
ANTHROPIC: Taken = {**anything("metadata service_tier"), "container": (), "mcp_servers": ([],)}
OLLAMA: Taken = {
    **anything("keep_alive"),  # the model always stays loaded
    **anything("metadata num_predict"),  # Open WebUI sends these, and Ollama also ignores them
    **LOGPROBS, "context": ([],), "format": ("",), "images": ([],), "options": ({},), "suffix": ("",),
    "template": ("",), "truncate": (True,),
}  # fmt: skip
OLLAMA_OPTIONS: Taken = {
    # Options that say how Ollama loads a model. They change nothing here: the context length is always the model's.
    **anything("f16_kv low_vram main_gpu num_batch num_ctx num_gpu num_keep num_thread"),
    **anything("numa use_mlock use_mmap vocab_only"),
    # The seed is ignored. The other options belong to `mirostat` and `repeat_penalty`, which must be off.
    **anything("mirostat_eta mirostat_tau penalize_newline repeat_last_n seed"),
    **SAMPLING, "mirostat": (0,), "repeat_penalty": (1,), "tfs_z": (1,), "typical_p": (1,),
}  # fmt: skip
SGLANG: Taken = {**anything("rid return_text_in_logprobs"), "image_data": ([],), "return_logprob": (False,)}
SGLANG_SAMPLING: Taken = {**SAMPLING, "repetition_penalty": (1,), "skip_special_tokens": (False,)}


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    taken: ClassVar[Taken] = {}

    @model_validator(mode="before")
    @classmethod
    def without_taken(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        kept: dict[str, Any] = {}
        strange: dict[str, Any] = {}
        for name, value in data.items():
            if name in cls.model_fields and (value is not None or name not in cls.taken):
                kept[name] = value
            elif name not in cls.taken:
                strange = strange or {name: value}  # keep only one: pydantic makes an error for each unknown field
            elif value is not None and cls.taken[name] is not ANY and value not in cls.taken[name]:
                raise PydanticCustomError("taken", "{message}", {"message": refusal(name, cls.taken[name])})
        return kept | strange


class Streamed(Strict):
    """The fields that a request has in every API."""

    model: str | None = None
    stream: bool | None = None


def refusal(name: str, values: tuple[Any, ...]) -> str:
    default = f"; leave it out or send {values[0]!r}" if values else ""
    return f"{name}: this server does not support it{default}"


class Lenient(BaseModel):
    """An object whose unknown fields are ignored: a client's next request repeats whole answers, with all fields."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Sampling(Strict):
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: Count | None = None
    min_p: Share | None = None

    def sampling(self) -> dict[str, Any]:
        """The options of mlx-lm's sampler."""
        options = {"temp": self.temperature, "top_p": self.top_p, "top_k": self.top_k, "min_p": self.min_p}
        return {name: value for name, value in options.items() if value}


class Stopping(Sampling):
    """The options of sampling and of stops. The fields of this class, which all APIs share, are extensions, except
    `stop`."""

    stop: Strings = []
    patterns: Strings = []
    max_held: Count | None = None
    stop_token_ids: Ids = []
    min_tokens: Count | None = None
    include_stop: bool | None = None
    protect: Protect = None  # null: the server's or the route's default
    repeat: Any = None  # `read_options` checks the value
    start_protected: bool | None = None

    def options(self, defaults: Defaults) -> StopOptions:
        """Returns the options about stops. Raises `ValueError` if they do not make a valid set of stops."""
        return read_options(self.model_dump(include={*Stopping.model_fields} - {*Sampling.model_fields}), defaults)


class Text(Lenient):
    type: Literal["text", "input_text", "output_text"] = "text"
    text: str


Content = Annotated[Many[Text], BeforeValidator(parts)]


def joined(content: list[Text]) -> str:
    return "".join(part.text for part in content)


class Function(Lenient):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None

    def given(self) -> dict[str, Any]:
        """The tool in the form that chat templates expect."""
        return tool(self.name, self.description, self.parameters or {})


class Tool(Lenient):
    """A tool in a chat request to OpenAI's or Ollama's API."""

    type: Literal["function"] = "function"
    function: Function


class CalledFunction(Lenient):
    name: str
    arguments: dict[str, Any] | str = {}


class ToolCall(Lenient):
    id: str | None = None
    function: CalledFunction


class Message(Lenient):
    """A message in a chat request to OpenAI's or Ollama's API."""

    role: Literal["system", "developer", "user", "assistant", "tool", "thinking"]
    content: Content = []
    tool_calls: Many[ToolCall] | None = None
    tool_call_id: str | None = None
    images: Annotated[list[str], Field(max_length=0)] | None = None

    def given(self) -> dict[str, Any]:
        """The message in the form that chat templates expect."""
        message: dict[str, Any] = {"role": self.role, "content": joined(self.content)}
        if self.tool_calls:
            uses = [(call.function.name, call.function.arguments, call.id) for call in self.tool_calls]
            message["tool_calls"] = [called(*use) for use in uses]
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        return message


def given(messages: list[Message]) -> list[dict[str, Any]]:
    """The messages in the form that chat templates expect. Templates expect no earlier reasoning, so it is left out."""
    return [message.given() for message in messages if message.role != "thinking"]


def tool(name: str, description: str | None, parameters: dict[str, Any]) -> dict[str, Any]:
    """A tool in the form that chat templates expect."""
    return {
        "type": "function",
        "function": {"name": name, "description": description or "", "parameters": parameters},
    }


def called(name: str, arguments: dict[str, Any] | str, call_id: str | None) -> dict[str, Any]:
    """A tool call in the form that chat templates expect. Arguments that are not JSON stay a string."""
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    return {"type": "function", "id": call_id or "", "function": {"name": name, "arguments": arguments}}
