"""The texts, deltas and stops that the benchmarks share."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import os
import random
import typing
from collections.abc import Callable
from functools import cache
from pathlib import Path
from pydoc_data import topics
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

# How many deltas a stream has. It is a long answer, and its strings still fit in a core's cache, as in a live stream.
WINDOW = 4096
IN_A_ROW = 40_000  # how many ids a text has; their strings do not fit in a core's cache
LONG = 2_000_000  # bytes in a long text

REALISTIC = ["END", "</s>", "<|im_end|>", "\n\nHuman:"]

CJK = [
    "停止序列告诉模型在哪里结束回答。",
    "文本是一小段一小段到达的。",
    "只有确实可能成为停止序列的文字才会被保留。",
    "匹配可能跨越好几段文本。",
    "停止文字列はモデルの出力をどこで終えるかを決める。",
    "トークンは文字の途中で切れることもある。",
    "保留される文字はできるだけ少ないほうがよい。",
]


def numbered(count: int) -> list[str]:
    """`count` stops with a running number, such as `<|stop_0001|>`. They look like the special tokens of chat
    templates."""
    return [f"<|stop_{number:04}|>" for number in range(count)]


def scattered(count: int) -> list[str]:
    """`count` random stops of 20 letters: if there are many, every letter of the text may begin a stop."""
    draw = random.Random(1)
    return ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=20)) for _ in range(count)]


def prose() -> str:
    """Python's language reference, from the standard library. Each paragraph is on one line, as models write it."""
    paragraphs = [paragraph for topic in topics.topics.values() for paragraph in topic.split("\n\n")]
    return without_stops(ascii_only("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)))


def code() -> str:
    return without_stops(ascii_only("".join(map(inspect.getsource, (argparse, typing, ast, inspect)))))


def cjk() -> str:
    draw = random.Random(1)
    return "".join(draw.choice(CJK) + draw.choice(["", "", "\n\n"]) for _ in range(5000))


def without_stops(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not any(stop in line for stop in REALISTIC))


def ascii_only(text: str) -> str:
    return text.encode("ascii", "ignore").decode("ascii")


@cache
def tokenizer() -> Tokenizer:
    """A tokenizer with a real byte-level BPE vocabulary of 65,000 tokens. The vocabulary is a file of the package
    litellm, which is not imported."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the benchmarks take a vocabulary from litellm: pip install --no-deps litellm")
    folder = Path(spec.submodule_search_locations[0])
    return Tokenizer.from_file(str(folder / "litellm_core_utils/tokenizers/anthropic_tokenizer.json"))


def decoded(text: str) -> list[str]:
    """The deltas that a server's incremental decoder makes of the tokens of `text`."""
    stream = DecodeStream(skip_special_tokens=True)
    deltas = (stream.step(tokenizer(), token_id) for token_id in tokenizer().encode(text).ids)
    return [delta for delta in deltas if delta]


@cache
def windows(language: str) -> list[list[str]]:
    """Streams of `WINDOW` deltas: English prose and code in turn, or Chinese and Japanese."""
    texts = [cjk()] if language == "cjk" else [prose(), code()]
    streams = [in_windows(decoded(text)) for text in texts]
    return [window for turn in zip(*streams, strict=False) for window in turn]


def in_windows(deltas: list[str]) -> list[list[str]]:
    return [deltas[start : start + WINDOW] for start in range(0, len(deltas) - WINDOW + 1, WINDOW)]


@cache
def ids(language: str) -> list[int]:
    """Token ids of English prose and code or, for "cjk", of Chinese and Japanese, where some tokens are parts of
    characters."""
    text = cjk() if language == "cjk" else prose()[:200_000] + code()[:200_000]
    token_ids: list[int] = tokenizer().encode(text).ids[:IN_A_ROW]
    return token_ids


def fresh(text: str) -> str:
    """A new object equal to `text`, without cached UTF-8, like the strings that a decoder returns."""
    return "".join((text[:1], text[1:]))


def long_text(language: str) -> str:
    """A text of `LONG` bytes or a little less, without a stop."""
    text = cjk() if language == "cjk" else prose() + code()
    characters = LONG * len(text) // len(text.encode())
    return (text * (characters // len(text) + 1))[:characters]


def vocabularies() -> dict[str, Callable[[], Any]]:
    """Functions that make tokenizers with real vocabularies, by name. The package litellm has the files for
    tiktoken."""
    made: dict[str, Callable[[], Any]] = {"claude (tokenizers)": lambda: Tokenizer.from_str(tokenizer().to_str())}
    spec = importlib.util.find_spec("litellm")
    if importlib.util.find_spec("tiktoken") and spec is not None and spec.submodule_search_locations:
        import tiktoken

        os.environ["TIKTOKEN_CACHE_DIR"] = str(
            Path(spec.submodule_search_locations[0], "litellm_core_utils/tokenizers")
        )
        made["o200k_base (tiktoken)"] = lambda: tiktoken.Encoding(**parts_of(tiktoken.get_encoding("o200k_base")))
    if importlib.util.find_spec("mistral_common"):
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        spec = importlib.util.find_spec("mistral_common")
        assert spec is not None
        assert spec.submodule_search_locations
        path = Path(spec.submodule_search_locations[0], "data/tekken_240911.json")
        made["tekken (mistral-common)"] = lambda: Tekkenizer.from_file(path)
    return made


def parts_of(encoding: Any) -> dict[str, Any]:
    return {
        "name": encoding.name,
        "pat_str": encoding._pat_str,
        "mergeable_ranks": encoding._mergeable_ranks,
        "special_tokens": encoding._special_tokens,
    }
