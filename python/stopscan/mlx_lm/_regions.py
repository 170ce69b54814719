from __future__ import annotations

from typing import Any

from stopscan import StopSet
from stopscan._protect import PROMPT_TOKENS, Protect, Regions, protected, regions


def outside(
    stops: StopSet, tokenizer: Any, protect: Protect, prompt: Any, start_protected: bool | None
) -> tuple[StopSet, bool]:
    """``stops`` that do not fire in the regions of ``protect`` either, and whether the answer to ``prompt`` begins
    inside one."""
    pairs = regions(protect, known(tokenizer))
    if not pairs and not stops.protect:
        return stops, bool(start_protected)
    return protected(stops, pairs, prompt_end(tokenizer, prompt), start_protected)


def known(tokenizer: Any) -> dict[str, Regions]:
    """The regions that mlx-lm knows the markers of, in the model of ``tokenizer``."""
    found: dict[str, Regions] = {}
    if reasoning := _reasoning(tokenizer):
        found["reasoning"] = reasoning
    if tokenizer.has_tool_calling:
        # Mistral's calls end with the answer: the text of an EOS never comes.
        found["tool_calls"] = ((tokenizer.tool_call_start, tokenizer.tool_call_end or tokenizer.eos_token),)
    return found


def _reasoning(tokenizer: Any) -> Regions:
    if tokenizer.has_thinking:
        return ((tokenizer.think_start, tokenizer.think_end),)
    # From 0.32.2 on, models whose answers have several parts: {part: [(marker, the part that it leads to)]}.
    parts = getattr(tokenizer, "response_transitions", {})
    closing = [marker for marker, part in parts.get("reasoning", ()) if part != "reasoning"]
    opening = [marker for edges in parts.values() for marker, part in edges if part == "reasoning"]
    return tuple((marker, closing[0]) for marker in opening) if len(closing) == 1 else ()


def prompt_end(tokenizer: Any, prompt: Any) -> str:
    """The text that an answer to ``prompt``, text or token ids, follows."""
    if isinstance(prompt, str):
        return prompt
    ids = prompt[-PROMPT_TOKENS:]
    text: str = tokenizer.decode(ids.tolist() if hasattr(ids, "tolist") else ids)
    return text
