"""Checks in Chromium the page on which readers try stopscan (docs/try.md).

It must show the values that the Python package gives, work with a keyboard, keep its input in its address, and make no
network requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from playwright.sync_api import Page

from stopscan import StopScanner, StopSet
from stopscan.segments import FORMATS, Segmenter, SegmentSet, joined

STOPS = ["END", "\n\nHuman:", "<|end|>"]
TEXT = "Once in ENGLAND, a queen 🦀 wrote: a < b, <|en. The\n\nHum END of the\n\nHuman: story."
CASES: list[tuple[list[str], list[str], str]] = [
    (STOPS, [], TEXT),
    (["\n\nHuman:", "🦀 w"], [], TEXT),
    (["b", "ab", "abcd", "bc"], [], "xxabcd"),
    (["nothing"], [], TEXT + "noth"),
    ([], [], TEXT),
    (["END"], [r"\n(User|Human) ?\d*:", r"story\.$"], TEXT.replace("END", "EN")),
    ([], [r"6$"], "It is 6"),
    (["é字", "\\n"], [], "\ufeff é é字 e\u0301"),
]
WORD = re.compile(r"[\s\ufeff]*[^\s\ufeff]+|[\s\ufeff]+$")  # U+FEFF is white space in JavaScript
CELLS = """table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell =>
    Object.fromEntries([...cell.querySelectorAll("span")].map(it => [it.className || "text", it.textContent]))))"""
FILL = """values => {
    for (const [name, value] of Object.entries(values)) {
        const field = document.querySelector(`.try [name=${name}]`);
        field.value = value;
        field.dispatchEvent(new Event("input", {bubbles: true}));
    }
}"""
SUMS = "table => [...table.tFoot.rows].map(row => [...row.cells].slice(1).map(cell => parseFloat(cell.textContent)))"

Row = list[dict[str, str]]


def cell(**pieces: str) -> dict[str, str]:
    return {kind: text.replace("\n", "⏎\n") for kind, text in pieces.items() if text}


def hold(stops: Sequence[str], deltas: Sequence[str], buffer: int) -> tuple[Row, float, int]:
    """Imitates a loop without stopscan. After each delta, the loop searches the whole text, and withholds the last
    ``buffer`` characters. Returns three things: the loop's column in the page's table, the average number of withheld
    characters, and how many characters of the stop were sent too early."""
    row, text, sent, withheld, deltas_read = [], "", 0, 0, 0
    first = min(
        (("".join(deltas).find(stop) + len(stop), -len(stop)) for stop in stops if stop in "".join(deltas)),
        default=None,
    )
    leak_from = first[0] + first[1] if first else len("".join(deltas))
    for delta in [*deltas, None]:
        text += delta or ""
        deltas_read += delta is not None
        hits = [(text.find(stop) + len(stop), -len(stop), stop) for stop in stops if stop in text]
        if hits:
            end, length, stop = min(hits)
            row.append(cell(sent=text[sent : end + length], stop=stop))
            return row, withheld / max(deltas_read, 1), max(0, sent - end - length)
        end = len(text) if delta is None else max(sent, len(text) - buffer)
        row.append(
            cell(sent=text[sent : max(sent, min(end, leak_from))], leak=text[max(sent, min(end, leak_from)) : end])
        )
        withheld, sent = withheld + len(text) - end, end
    return row, withheld / max(deltas_read, 1), 0


def scan(stops: Sequence[str], patterns: Sequence[str], deltas: Sequence[str]) -> tuple[Row, Row, float]:
    """Feeds the deltas to a `StopScanner`. Returns three things: the column of the page's table that shows what is
    sent at each delta, the column that shows what is withheld, and the average number of withheld characters."""
    scanner = StopScanner(StopSet(stops, patterns=patterns))
    sent, held, withheld = [], [], 0
    for delta in [*deltas, None]:
        text = scanner.flush() if delta is None else scanner.feed(delta)
        sent.append(cell(sent=text, stop=scanner.match.sequence if scanner.match else ""))
        over = delta is None or scanner.match is not None
        held.append(cell(held="" if over else scanner.held))
        withheld += len(scanner.held)
        if over:
            break
    return sent, held, withheld / max(len(sent) - (delta is None), 1)


def fill(page: Page, **values: str) -> None:
    """Fills in fields of the page, as a reader would."""
    page.evaluate(FILL, values)


def check_stops(page: Page) -> Iterator[str]:
    table = page.locator(".try table[data-tab=stops]")
    for stops, patterns, text in CASES:
        escaped = (stop.replace("\\", "\\\\").replace("\n", "\\n") for stop in stops)
        fill(page, stops="\n".join(escaped), patterns="\n".join(patterns), text=text)
        for size in (0, 1, 3, 5):
            fill(page, size=str(size))
            cut = [text[at : at + size] for at in range(0, len(text), size)] if size else WORD.findall(text)
            longest = max([1, *map(len, stops)])
            after, held_back = hold(stops, cut, 0), hold(stops, cut, longest - 1)
            sent, held, withheld = scan(stops, patterns, cut)
            columns = zip_longest(after[0], held_back[0], sent, held, fillvalue={})
            expected = [[cell(sent=delta), *row] for delta, row in zip([*cut, ""], map(list, columns), strict=False)]
            shown = table.evaluate(CELLS)
            if shown != expected:
                differ = next(pair for pair in zip_longest(shown, expected) if pair[0] != pair[1])
                yield f"shows {differ}, page and Python, for {stops}, {patterns} in deltas of {size}"
            sums = [after[1], held_back[1], withheld, after[2], held_back[2], 0]
            summed = [number for row in table.evaluate(SUMS) for number in row]
            if any(abs(one - other) > 0.0501 for one, other in zip(summed, sums, strict=True)):
                yield f"sums up {summed} and not {sums}, for {stops}, {patterns} in deltas of {size}"


def check_parts(page: Page) -> Iterator[str]:
    page.locator(".try [name=tab]").last.check()
    names = page.locator(".try [name=form] option").all_text_contents()
    if names != list(FORMATS):
        yield f"offers the forms {names}"
    table = page.locator(".try table[data-tab=parts]")
    for name, graph in FORMATS.items():
        markers = [marker for leads in graph.values() for marker in leads]
        text = "".join(f"{marker} END of {i} " for i, marker in enumerate([*markers, *markers]))
        fill(page, form=name, answer=text)
        for region in graph:
            for stops in ([], ["END of 5"]):
                fill(page, region=region, answerStops="\n".join(stops))
                segmenter = Segmenter(SegmentSet(graph, stops, stop_in=["answer"]), region=region)
                segments = joined([*segmenter.feed(text), *segmenter.flush()])
                expected = [[cell(text=str(part)), cell(text=where), cell(sent=it)] for where, it, part in segments]
                if (shown := table.evaluate(CELLS)) != expected:
                    yield f"shows {shown} and not {expected}, for {name} from {region}"


def check_reader(page: Page) -> Iterator[str]:
    """Checks that the page works with a keyboard, and that its address keeps the input."""
    status = page.locator(".try [role=status]")
    page.locator(".try [name=tab]").first.check()
    page.locator(".try [name=tab]").first.focus()
    page.keyboard.press("ArrowRight")
    if page.locator(".try table:visible").get_attribute("data-tab") != "parts":
        yield "does not change its tab by the keyboard"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type('of "the"')
    fill(page, text=(text := 'The end of "the" story 🦀'))
    page.get_by_role("button", name="address").focus()
    page.keyboard.press("Enter")
    page.goto("about:blank")
    page.go_back()
    page.wait_for_selector(".try[data-ready]")
    if page.locator(".try [name=text]").input_value() != text:
        yield "does not keep its text in the address"
    if "⏎" in (rows := page.locator(".try tbody:visible").inner_text()) or 'of "the"' not in rows:
        yield f"does not keep its stops in the address: {rows}"
    fill(page, text="é" * 50_000)
    if "at most" in status.inner_text():
        yield f"refuses a text of 100,000 bytes: {status.inner_text()}"
    fill(page, text="é" * 50_001)
    if "at most 100000" not in status.inner_text():
        yield "takes a text of more than 100,000 bytes"
    fill(page, text="", patterns="a*")
    if "a*" not in status.inner_text():
        yield f"says {status.inner_text()!r} about a pattern that matches the empty text"


def check_try(page: Page, base: str) -> Iterator[str]:
    """Yields what is wrong with the page."""
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: requests.append(f"the error {error}"))
    page.goto(base + "try.html")
    page.wait_for_selector(".try[data-ready]")
    for check in (check_stops, check_parts, check_reader):
        yield from (f"try.html {fault}" for fault in check(page))
    yield from (f"try.html asks for {it}" for it in requests if not it.startswith(base))
