"""Draws the charts of the documentation, in colours that are readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path

import matplotlib as mpl
import rivals
from matplotlib import pyplot
from matplotlib.axes import Axes

import stopscan

DOCS = Path(__file__).parent.parent / "docs"
GREY = "#808890"
OURS = "#e8590c"
OTHERS = ["#4c8dd6", "#2b9f83", "#a36bd0", "#c9992e", "#d0618f", "#6f9a3e", "#7f8fa6"]

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stopscan",
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.figsize": (8, 4.2),
    **dict.fromkeys(["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"], GREY),
}


def time_over_stops(curves: dict[str, dict[int, float]], title: str, file: str) -> None:
    with mpl.rc_context(STYLE):
        figure, axes = pyplot.subplots()
        ours = [name for name in curves if name.startswith("stopscan")]
        others = sorted(set(curves) - set(ours), key=lambda name: -curves[name][1000])
        colours = {**dict(zip(others, OTHERS, strict=False)), **dict.fromkeys(ours, OURS)}
        for name, colour in colours.items():
            style = {"linewidth": 2.5} if name in ours else {"linewidth": 1.5}
            axes.loglog(
                list(curves[name]), list(curves[name].values()), color=colour, marker="o", markersize=3, **style
            )
        label_ends(axes, curves)
        axes.set_xticks([1, 4, 16, 64, 256, 1000], labels=["1", "4", "16", "64", "256", "1,000"])
        axes.set_yticks([10, 100, 1e3, 1e4, 1e5, 1e6], labels=["10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms"])
        axes.minorticks_off()
        axes.set_xlabel("stops")
        axes.set_title(title, loc="left", color=GREY)
        save(figure, file)


def label_ends(axes: Axes, curves: dict[str, dict[int, float]]) -> None:
    """Writes the name of each curve at its right end, in the curve's colour. Moves names up that would overlap."""
    step = 1.75
    last = 0.0
    lines = sorted(
        zip(axes.lines, [line.get_ydata()[-1] for line in axes.lines], strict=True), key=lambda pair: pair[1]
    )
    names = {curve[1000]: name for name, curve in curves.items()}
    for line, value in lines:
        last = max(value, last * step)
        weight = "bold" if names[value].startswith("stopscan") else "normal"
        axes.text(1250, last, names[value].replace("`", '"'), color=line.get_color(), va="center", weight=weight)


def withheld(deltas: list[str], stop: list[str]) -> None:
    """Draws how many characters are withheld after each delta: those that have arrived but are not emitted yet."""
    deltas = deltas[:400]
    read = [0, *accumulate(map(len, deltas))]
    curves = [
        ("a buffer of max(len) - 1,\nas in vLLM", OTHERS[0], rivals.vllm),
        ("all since a stop may have begun,\nas in llama.cpp and mlx-engine", OTHERS[1], rivals.llama_cpp),
        ("stopscan", OURS, lambda deltas, stop: stopscan.scan(deltas, stop)),
    ]
    with mpl.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(8, 3.2))
        top = max(map(len, stop))
        for place, (name, colour, emitting) in enumerate(curves):
            counts = withheld_by(emitting, deltas, stop)
            axes.step(read, [0, *counts], where="post", color=colour, linewidth=1.5)
            label = f"{name}\n{sum(counts) / len(counts):.2f} on average"
            height = top * (0.92 - 0.38 * place)
            axes.text(read[-1] * 1.01, height, label, color=colour, va="center", weight="bold")
        axes.set_ylim(0, top)
        axes.set_xlim(0, read[-1])
        axes.set_xlabel("characters of the text")
        named = ", ".join(map(repr, stop)).replace("$", r"\$")
        axes.set_title(f"Characters withheld with the stops {named}", loc="left", color=GREY, fontsize=10)
        save(figure, "withheld.svg")


def withheld_by(
    emitting: Callable[[Iterator[str], list[str]], Iterable[str]], deltas: list[str], stop: list[str]
) -> list[int]:
    """Returns how many characters are withheld after each delta: characters that have arrived, but that `emitting` has
    not emitted when it asks for the next delta."""
    read = emitted = 0
    counts = []

    def source() -> Iterator[str]:
        nonlocal read
        for delta in deltas:
            read += len(delta)
            yield delta
            counts.append(read - emitted)

    for text in emitting(source(), stop):
        emitted += len(text)
    return counts


def save(figure: pyplot.Figure, name: str) -> None:
    DOCS.mkdir(exist_ok=True)
    figure.savefig(DOCS / name, transparent=True, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
