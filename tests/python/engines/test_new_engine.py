"""An example engine that uses stopscan as docs/engines.md describes, in at most 25 lines of code.

The engine has batches, speculative steps, reasoning, usage, chats, raw completions, and the operator's setting
``MY_ENGINE_PROTECT``.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from stopscan import StopSet
from stopscan.engines import CHAT, Checkpoint, Defaults, read_options
from stopscan.engines.selftest import Tokenizer
from stopscan.finish import to_openai
from stopscan.segments import FORMATS

WORDS = ["Is it", " 5", " EN", "D", "?", "It is", "\n", " or 6"]
made = Tokenizer(WORDS, ["<|eos|>", "<think>", "</think>"])
(EOS,) = made.ids(["<|eos|>"])
PROMPT = made.ids(["<think>", "\n"])


class Stops:
    """The part of the engine that uses stopscan."""

    def __init__(self) -> None:
        self.checkpoint = Checkpoint(made.backend, graph=FORMATS["qwen3"])
        self.defaults = Defaults.from_environment("MY_ENGINE")

    def open(self, route: str, body: dict[str, Any], prompt: list[int]) -> Any:
        options = read_options(body, self.defaults, default=CHAT if route == "chat" else ())
        engine: Any = {"eos_token_ids": EOS, "max_tokens": body["max_tokens"]}
        if route == "chat":
            return self.checkpoint.segmenter(options, prompt, **engine)
        return self.checkpoint.scanner(options, prompt, prompt_token_ids=prompt, **engine)

    def step(self, row: Any, token_ids: list[int]) -> dict[str, str]:
        piece = row.feed_many(token_ids)
        return {"answer": piece} if isinstance(piece, str) else merge(piece)

    def report(self, row: Any) -> dict[str, Any]:
        reasoning = row.tokens_in.get("reasoning", 0)
        return {**to_openai(row.finish), "completion_tokens": row.tokens_seen, "reasoning_tokens": reasoning}


def merge(segments: Any) -> dict[str, str]:
    texts: dict[str, str] = {}
    for region, text, _ in segments:
        texts[region] = texts.get(region, "") + text
    return texts


def test_the_part_with_stopscan_has_at_most_25_lines() -> None:
    lines = [line for line in inspect.getsource(Stops).splitlines() if line.strip() and '"""' not in line]
    assert len(lines) <= 25


@dataclass
class Request:
    """A request, the tokens that the model writes for it, and the expected answer (``texts`` and ``report``)."""

    route: str
    body: dict[str, Any]
    tokens: list[str]
    texts: dict[str, str]
    report: dict[str, Any] | None = None


def serve(stops: Stops, requests: list[Request], draw: random.Random) -> None:
    """The engine itself: steps of one to four tokens for each row of the batch, until all rows have ended."""
    batch: list[tuple[Request, Any, Iterator[int]]] = [
        (each, stops.open(each.route, each.body, PROMPT if each.route == "chat" else []), iter(made.ids(each.tokens)))
        for each in requests
    ]
    while batch:
        for request, row, tokens in batch:
            for region, text in stops.step(row, [next(tokens, EOS) for _ in range(draw.randint(1, 4))]).items():
                request.texts[region] = request.texts.get(region, "") + text
            if row.finish:
                request.report = stops.report(row)
        batch = [each for each in batch if each[0].report is None]


@pytest.mark.parametrize("seed", range(200))
def test_each_answer_is_that_of_its_whole_text(seed: int) -> None:
    draw = random.Random(seed)
    requests = []
    for _ in range(draw.randint(1, 8)):
        stop = draw.sample(["END", " 5", "5 EN", "D?", "is\n"], draw.randint(0, 2))
        reasoning, answer = (draw.choices(WORDS, k=draw.randint(0, 6)) for _ in range(2))
        body = {"stop": stop, "max_tokens": draw.choice([3, 50]), "temperature": 0}
        requests.append(Request(draw.choice(["chat", "raw"]), body, [*reasoning, "</think>", *answer], {}))
    serve(Stops(), requests, draw)
    for request in requests:
        limit, stops = request.body["max_tokens"], StopSet(request.body["stop"])
        tokens = request.tokens[:limit]
        end = tokens.index("</think>") if "</think>" in tokens else len(tokens)
        parts = ["".join(tokens[:end]), "".join(tokens[end + 1 :])]
        if request.route == "raw":
            parts = ["", "".join(parts)]
        text, match = stops.truncate(parts[1])
        expected = {"reasoning": parts[0], "answer": text}
        assert {region: text for region, text in request.texts.items() if text} == {
            region: text for region, text in expected.items() if text
        }
        assert request.report is not None
        assert request.report.get("matched_stop") == (match and match.sequence)
        ended = "length" if match is None and limit <= len(request.tokens) else "stop"
        assert request.report["finish_reason"] == ended
        assert request.report["completion_tokens"] <= limit
        if request.route == "chat":
            assert request.report["reasoning_tokens"] == end


def test_the_operators_default_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_ENGINE_PROTECT", "[]")
    request = Request("chat", {"stop": "END", "max_tokens": 9}, ["Is it", " EN", "D", "?"], {})
    serve(Stops(), [request], random.Random(1))
    assert (request.texts, (request.report or {})["matched_stop"]) == ({"reasoning": "Is it "}, "END")


@pytest.mark.parametrize(
    "body",
    [{"stop": [""]}, {"stop": {"END": 1}}, {"patterns": "(a"}, {"protect": "thoughts"}, {"stop_token_ids": [-1]}],
)
def test_wrong_request_is_an_error_naming_the_field(body: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(body))}"):
        Stops().open("chat", {**body, "max_tokens": 5}, PROMPT)
