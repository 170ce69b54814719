from __future__ import annotations

from typing import Any

from stopscan import StopSet


def protected(stops: StopSet, tokenizer: Any, prompt: Any) -> tuple[StopSet, bool]:
    """``stops`` that do not fire in the reasoning of ``tokenizer``'s model, and whether ``prompt`` leaves it open.

    A stop that is one of the markers wins: there is no region then.
    """
    if not tokenizer.has_thinking:
        return stops, False
    markers = (tokenizer.think_start, tokenizer.think_end)
    if {*stops.stop, *stops.visible} & {*markers}:
        return stops, False
    # The first region is the one that `start_protected` begins in.
    pairs = [markers, *(pair for pair in stops.protect if pair != markers)]
    return StopSet(stops.stop, visible=stops.visible, protect=pairs), _open(tokenizer, prompt)


def _open(tokenizer: Any, prompt: Any) -> bool:
    # As mlx_lm.server decides whether the answer begins with reasoning.
    if isinstance(prompt, str):
        return prompt.rfind(tokenizer.think_start) > prompt.rfind(tokenizer.think_end)
    ids = prompt.tolist() if hasattr(prompt, "tolist") else prompt
    return bool(tokenizer.rfind_think_start(ids) > tokenizer.rfind_think_end(ids))
