"""The promises by name, and what an answer has to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stopscan_conformance._apis import End
from stopscan_conformance._recital import Recital

Column = Literal["text", "finish", "form", "late", "cost"]
COLUMNS: tuple[Column, ...] = ("text", "finish", "form", "late", "cost")
Findings = Mapping[Column, str | None]  # what is wrong, by the promise; None: nothing is


@dataclass(frozen=True, eq=False)
class Expected:
    """`answers` are text and reasoning, in each way that they may be told apart; `ends` and `tokens` have what may be
    said of the end. Chunks are compared with `recital`. `unnamed` says what an answer lacks that names no stop."""

    answers: tuple[tuple[str, str], ...]
    ends: tuple[End, ...]
    tokens: tuple[int, ...]
    recital: Recital | None = None
    unnamed: str = ""
