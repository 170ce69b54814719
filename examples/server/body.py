"""What requests of all APIs have in common. What is not named in a model is refused by its name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MAX_STOPS = 64


def listed(value: Any) -> Any:
    """A bare string is a list of one, null an empty one."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def parts(value: Any) -> Any:
    """A bare string is one part of text, null none."""
    if value is None:
        return []
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


Strings = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MAX_STOPS), BeforeValidator(listed)]
Ids = Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], Field(max_length=MAX_STOPS), BeforeValidator(listed)]
Protect = Annotated[list[Literal["reasoning", "tool_calls"]], BeforeValidator(listed)]
Limit = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
TopP = Annotated[float, Field(gt=0, le=1)]
Nothing = Literal[False, 0, ""] | None  # of what is there, but cannot be asked for

Zero = Annotated[float, Field(ge=0, le=0)] | None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Lenient(BaseModel):
    """For what clients send back to us: it has more than we read."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Stopping(Strict):
    """The stops. All but `stop` are extensions, with the same names in all APIs."""

    stop: Strings = []
    patterns: Strings = []
    stop_token_ids: Ids = []
    protect: Protect = ["reasoning", "tool_calls"]
    start_protected: bool | None = None

    def stopping(self) -> Stopping:
        return Stopping.model_construct(**{name: getattr(self, name) for name in Stopping.model_fields})


class Text(Lenient):
    type: Literal["text", "input_text", "output_text"] = "text"
    text: str


Content = Annotated[list[Text], BeforeValidator(parts)]


def joined(content: list[Text]) -> str:
    return "".join(part.text for part in content)


class Function(Lenient):
    name: str
    description: str | None = None
    parameters: dict[str, Any] = {}


def tool(name: str, description: str | None, parameters: dict[str, Any]) -> dict[str, Any]:
    """A tool as chat templates have it."""
    return {
        "type": "function",
        "function": {"name": name, "description": description or "", "parameters": parameters},
    }


def called(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    """A tool call as chat templates have it."""
    return {"type": "function", "id": call_id, "function": {"name": name, "arguments": arguments}}
