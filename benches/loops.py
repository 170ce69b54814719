"""Times what `Repeat` adds to `feed` and, if vLLM is installed, the time of vLLM's own check for repeated token ids.

`cargo bench -p stopscan-benches --bench loops` measures the Rust core alone, also on the texts that cost most.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.util import find_spec

from measure import Case, feeding, net
from report import Limits, markdown
from workload import numbered, windows

from stopscan import Repeat, StopScanner, StopSet

FEED = "`feed`"
SETTINGS = {
    FEED: None,
    "`Repeat()`": Repeat(),
    "`min_length=64`": Repeat(min_length=64),
    "`max_period=65536`": Repeat(max_period=65_536),
    "`min_length=32`": Repeat(min_length=32),
}


def scanner(name: str, repeat: Repeat | None) -> Case:
    stops = StopSet(numbered(4), repeat=repeat)
    return feeding(name, lambda: StopScanner(stops))


def report(limits: Limits) -> Iterator[str]:
    cases = [scanner(*setting) for setting in SETTINGS.items()]
    sets = [StopSet(repeat=repeat) for repeat in SETTINGS.values()]
    head = ("case", "ns per delta", "times `feed`")
    for language in ("english", "cjk"):
        # After a match `feed` no longer scans, so take only streams in which no setting finds a loop.
        streams = [deltas for deltas in windows(language) if not any(stops.find("".join(deltas)) for stops in sets)]
        times = net(cases, streams[:16], 15)
        yield f"## {language}\n\n" + markdown([head, *times.rows(FEED)])
        if language == "english":
            limits.most("`feed` with `Repeat()` / without", 1.5, times.ratio("`Repeat()`", FEED))
            limits.most("`feed` with `Repeat(min_length=64)` / without", 1.8, times.ratio("`min_length=64`", FEED))
    if find_spec("vllm"):
        yield beside_vllm()


def beside_vllm() -> str:
    """Returns a table of the times of `Repeat` and of vLLM's check, for random words, each of which is one token."""
    from vllm.sampling_params import RepetitionDetectionParams
    from vllm.v1.core.sched.utils import check_sequence_repetition

    words = [
        " the",
        " cat",
        " sat",
        " on",
        " a",
        " mat",
        " and",
        " read",
        " some",
        " code",
        " until",
        " late",
        " night",
    ]
    text = random.Random(5).choices(words, k=4_000)
    ids = [words.index(word) for word in text]

    def check_each(longest: int) -> None:
        seen: list[int] = []
        rule = RepetitionDetectionParams(max_pattern_size=longest, min_pattern_size=1, min_count=4)
        for token_id in ids:
            seen.append(token_id)
            check_sequence_repetition(seen, rule)

    theirs = [
        Case(f"vLLM's check, periods to {longest} tokens", lambda _, longest=longest: longest, check_each)
        for longest in (16, 128, 1024)
    ]
    times = net([*(scanner(*setting) for setting in SETTINGS.items()), *theirs], [text], 5)
    return "## Beside vLLM's check\n\n" + markdown([("case", "ns per token", "times `feed`"), *times.rows(FEED)])
