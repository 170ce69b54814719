"""Facts about vLLM's parsers that the parsers themselves do not show. The names are those in vLLM 0.26 to 0.33."""

from __future__ import annotations

from collections.abc import Mapping

from stopscan.regions import Graph
from stopscan.segments import FORMATS

# These parsers read the regions from the tokenizer's `response_template`, as `stopscan.regions` does.
OF_THE_CHECKPOINT = ("beam", "hf")
# gpt-oss's parser. It separates reasoning and calls from the answer even if a request has no tools.
HARMONY = "openai_gptoss"

_MUSE: Graph = {"answer": {"to=self<|message|>": "reasoning"}, "reasoning": {"<|eom|>": "answer"}}

# The regions of reasoning parsers that do not name their markers, or name only some of them.
REASONING: Mapping[str, Graph] = {
    **{name: FORMATS[name] for name in ("granite", "hunyuan_a13b", "k2_horizon")},
    **dict.fromkeys(("muse", "muse_glimmer", "musespark1x"), _MUSE),
    "minimax_m2_append_think": FORMATS["think"],
    HARMONY: FORMATS["harmony"],
}

# Whether an answer begins in the reasoning, for parsers that have no method that says so.
BEGINS_INSIDE = {"granite": False, "hunyuan_a13b": False, "minimax_m2_append_think": True, HARMONY: False}

# Maps the name of a parser to the name of its format in `FORMATS`, if the two names differ.
_FORMS = {
    "cohere_command3": "cohere_command", "cohere_command4": "cohere_command", "deepseek_v31": "deepseek_v3",
    "granite-20b-fc": "granite_20b_fc", "granite_thinking_parser": "granite4", "internlm": "internlm2",
    "ling3": "glm47", "llama3_json": "llama3", "llama4_pythonic": "llama4", "phi4_mini_json": "phi4_mini",
    "poolside_v1": "glm47", "qwen3_json": "qwen3", "qwen3_xml": "qwen3", "step5": "qwen3",
}  # fmt: skip


def form_of(parser: str | None) -> Graph | None:
    """Returns the regions that a parser of vLLM reads, from ``FORMATS``, or ``None`` if ``FORMATS`` does not have
    them."""
    return FORMATS.get(_FORMS.get(parser or "", parser or ""))


def form_of_calls(tool_parser: str | None) -> Graph | None:
    """Returns the form in ``FORMATS`` with the markers of the tool calls that vLLM's parser ``tool_parser`` reads.
    Returns ``None`` if there is no such form, or if it cannot be used."""
    form = form_of(tool_parser)
    # Do not use a form whose answers begin with a header. With such a form, a scanner would read text without a header
    # as the header, but vLLM's parser reads it as the answer.
    return form if form and "tool_call" in form and next(iter(form)) == "answer" else None
