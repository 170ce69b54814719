"""Reasoning and answer apart, in tags and in channels; stops in the answer only, or in both."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from server_harness import Channels

THINK = "<think>Is it END?</think>It is 5 or 6 END here"
HARMONY = (
    "<|channel|>analysis<|message|>Is it END?<|end|><|start|>assistant<|channel|>commentary to=x<|message|>tool<|end|>"
    "<|start|>assistant<|channel|>final<|message|>It is 5 or 6 END here"
)


def ask(client: Any, script: str, **options: Any) -> tuple[str, str | None, str]:
    """Answer, reasoning, and the stop that ended them."""
    reply = client.openai.chat.completions.create(
        model=client.model, messages=[{"role": "user", "content": f"[{script}]"}], extra_body=options
    )
    (choice,) = reply.choices
    return choice.message.content, getattr(choice.message, "reasoning_content", None), choice.matched_stop


@pytest.mark.parametrize("script", ["think", "harmony"])
def test_stops_count_in_the_answer(client: Any, script: str) -> None:
    assert ask(client, script, stop=["END"]) == ("It is 5 or 6 ", "Is it END?", "END")


@pytest.mark.parametrize("script", ["think", "harmony"])
def test_stops_count_in_both_if_asked(client: Any, script: str) -> None:
    assert ask(client, script, stop=["END"], stop_in_reasoning=True) == ("", "Is it ", "END")


def test_stops_in_both_leave_headers_alone(client: Any) -> None:
    answer = ask(client, "harmony", stop=["analysis", "assistant", "final", "5"], stop_in_reasoning=True)
    assert answer == ("It is ", "Is it END?", "5")


def test_responses_with_stops_in_both(client: Any) -> None:
    options = {"stop": "END", "stop_in_reasoning": True}
    reply = client.openai.responses.create(model=client.model, input="[harmony]", extra_body=options)
    (item,) = reply.output
    assert (item.type, item.content[0].text, reply.status) == ("reasoning", "Is it ", "completed")


@given(st.lists(st.integers(0, len(HARMONY))), st.sampled_from([THINK, HARMONY]))
def test_channels_in_any_cut(cuts: list[int], text: str) -> None:
    channels = Channels()
    edges = [0, *sorted(cuts), len(text)]
    parts = [part for i, j in pairwise(edges) for part in channels.feed(text[i:j])]
    parts += channels.flush()
    whole = {kind: "".join(text for each, text in parts if each == kind) for kind in ("reasoning", "answer")}
    assert whole == {
        "reasoning": "Is it END?" if text == THINK else "Is it END?tool",
        "answer": "It is 5 or 6 END here",
    }
