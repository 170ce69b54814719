"""What vLLM's parsers do not say of themselves, by their names in vLLM 0.26 to 0.33."""

from __future__ import annotations

from collections.abc import Mapping

from stopscan._engine.sets import Pairs
from stopscan.segments import FORMATS

_THINK = ("<think>", "</think>")
_MUSE = ("to=self<|message|>", "<|eom|>")
# No text has this; it closes what lasts to the end of an answer.
_NEVER = "\U0010ffff"

# The markers of reasoning parsers that name none, or only some of them.
MARKERS: Mapping[str, Pairs] = {
    # The two endings may be mixed with either beginning: what they share closes.
    "granite": (
        ("Here is my thought process:", "s my response:"),
        ("Here's my thought process:", "s my response:"),
    ),
    "hunyuan_a13b": (_THINK,),
    "k2_horizon": tuple((f"<ifm|{effort}>", f"</ifm|{effort}>") for effort in ("think", "think_fast", "think_faster")),
    "minimax_m2_append_think": (_THINK,),
    "muse": (_MUSE,),
    "muse_glimmer": (_MUSE,),
    "musespark1x": (_MUSE,),
    # All but the final message is protected: analysis, commentary with its calls, and the headers between them.
    "openai_gptoss": (("<|end|>", "<|channel|>final<|message|>"),),
}

# Where an answer begins, for parsers that cannot be asked: inside the first region, or outside.
BEGINS_INSIDE: Mapping[str, bool] = {
    "granite": False,
    "hunyuan_a13b": False,
    "minimax_m2_append_think": True,
    "openai_gptoss": True,
}

# The form of each tool parser that is not called like its form.
_FORMS = {
    "cohere_command3": "cohere_command",
    "cohere_command4": "cohere_command",
    "deepseek_v31": "deepseek_v3",
    "granite-20b-fc": "granite_20b_fc",
    "internlm": "internlm2",
    "ling3": "glm47",
    "llama3_json": "llama3",
    "llama4_pythonic": "llama4",
    "phi4_mini_json": "phi4_mini",
    "poolside_v1": "glm47",
    "qwen3_json": "qwen3",
    "qwen3_xml": "qwen3",
    "step5": "qwen3",
}


def tool_call_regions(tool_parser: str) -> Pairs:
    """The markers of the calls that a tool parser of vLLM reads; none if its calls have no markers of their own."""
    form: Mapping[str, Mapping[str, str]] = FORMATS.get(_FORMS.get(tool_parser, tool_parser), {})
    openings = [marker for marker, region in form.get("answer", {}).items() if region == "tool_call"]
    closings = list(form.get("tool_call", {})) or [_NEVER]
    # Other spellings of the opening marker end as the first does.
    closings += closings[-1:] * (len(openings) - len(closings))
    return tuple(zip(openings, closings, strict=False))
