"""Makes the tables of docs/finish.md from the tables in the code. If run as a program, writes them into the page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from finish_harness import FINISHES, write

from stopscan.finish import Reason
from stopscan.finish._words import SOURCES

PAGE = Path(__file__).parents[3] / "docs" / "finish.md"
APIS = {  # the fields that each `to_*` function writes, in the order in which it writes them
    "anthropic": "`stop_reason`, `stop_sequence`",
    "openai": "`finish_reason`, `matched_stop`",
    "responses": "`status`, `incomplete_details.reason`",
    "gemini": "`finishReason`",
    "bedrock": "`stopReason`",
    "ollama": "`done_reason`",
    "sglang": "`finish_reason.type`, `.matched`",
    "llama_cpp": "`stop_type`, `stopping_word`",
    "tgi": "`finish_reason`",
}
WRITTEN, READ = "| reason | ", "| said by | "


def written() -> str:
    """Returns the table of docs/finish.md that shows what the functions `to_*` write. Each row is a finish reason,
    and each column is an API."""
    rows = [[code(reason), *(cell(api, reason) for api in APIS)] for reason in get_args(Reason)]
    heads = [f"`to_{api}`: {fields}" for api, fields in APIS.items()]
    return table([WRITTEN.strip("| "), *heads], rows)


def read() -> str:
    """Returns the table of docs/finish.md that shows how APIs and servers say why an answer ended. Each row is an API
    or a server, and lists its words for each finish reason."""
    rows = [
        [source, "; ".join(f"{reason}: {words(meanings[reason])}" for reason in meanings)]
        for source, meanings in SOURCES.items()
    ]
    return table([READ.strip("| "), "words"], rows)


def words(text: str) -> str:
    return " ".join(map(code, text.split()))


def cell(api: str, reason: str) -> str:
    return ", ".join(code(value) for value in values(write(api, FINISHES[reason])))


def values(part: Any) -> Iterable[str]:
    """The values inside a payload, except `None`, `True` and the empty string."""
    if isinstance(part, dict):
        for value in part.values():
            yield from values(value)
    elif part not in (None, True, ""):
        yield str(part)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = [*head]
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: str) -> str:
    return f"`{text}`"


def page(text: str) -> str:
    """The text of the page with its two tables made anew."""
    lines = iter(text.splitlines(keepends=True))
    out = ""
    for line in lines:
        if not line.startswith("| "):
            out += line
        elif line.startswith(WRITTEN):
            out += written()
        elif line.startswith(READ):
            out += read()
    return out


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
