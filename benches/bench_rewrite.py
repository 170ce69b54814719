"""Times `Rewriter.feed` with few and with many keys. Compares it with `str.replace` and with the package veil-pii."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from conftest import Case, Ran, feeding, reading
from workload import windows

from stopscan import Rewriter, RewriteSet, rewrite


def placeholders(count: int) -> dict[str, str]:
    return {f"<PERSON_{number}>": f"Ada{number}" for number in range(count)}


NAMES = {"the language": "<P1>", "the statement": "<P2>", "expression": "<P3>", "return": "<P4>"}


def feed(replacements: dict[str, str]) -> Case:
    rules = RewriteSet(replacements)
    case = feeding(lambda: Rewriter(rules))
    return case if replacements is not NAMES else case._replace(check=lambda _: None)


def replaced_each(replacements: dict[str, str], text: str) -> str:
    for key, value in replacements.items():
        text = text.replace(key, value)
    return text


def veil_pii(count: int) -> Case:
    restore, types = pytest.importorskip("veil.restore"), pytest.importorskip("veil.types")
    surrogates = pytest.importorskip("veil.surrogates").PlaceholderSurrogates()
    vault = pytest.importorskip("veil.vault").Vault()
    for number in range(count):
        vault.get_or_create(types.EntityType.PERSON, f"Ada{number}", surrogates)
    return feeding(lambda: restore.Restorer(vault))


CASES = {
    "`Rewriter.feed`, 4 keys that do not begin": feed(placeholders(4)),
    "`Rewriter.feed`, 2,000 keys that do not begin": feed(placeholders(2_000)),
    "`Rewriter.feed`, 4 keys of the text": feed(NAMES),
    "`rewrite` of a list, 4 keys that do not begin": reading(partial(rewrite, replacements=placeholders(4))),
}
GROUP = "English prose and code"


@pytest.mark.parametrize("name", CASES)
def test_per_delta(bench: Any, name: str) -> None:
    bench(GROUP, name, CASES[name], windows("english")[:8])


@pytest.mark.parametrize("count", [4, 2_000])
def test_veil_pii(bench: Any, count: int) -> None:
    bench(GROUP, f"veil-pii, {count:,} keys that do not begin", veil_pii(count), windows("english")[:2])


def test_limit_beside_veil_pii(ran: Ran, limit: Any) -> None:
    ratio = ran.ratio(GROUP, "veil-pii, 4 keys that do not begin", "`Rewriter.feed`, 4 keys that do not begin")
    limit("veil-pii / `Rewriter.feed`, 4 keys", ratio, least=10)


@pytest.mark.parametrize("count", ["4", "2,000"])
def test_limit_per_delta(ran: Ran, limit: Any, count: str) -> None:
    times = ran.of(GROUP, f"`Rewriter.feed`, {count} keys that do not begin")
    limit(f"`Rewriter.feed`, {count} keys / an empty Python method", times.times_empty, most=1.3)


def make_each(replacements: dict[str, str]) -> None:
    for _ in range(20):
        RewriteSet(replacements)


def test_compiling(bench: Any, ran: Ran, limit: Any) -> None:
    case = Case(make_each, lambda keys: (dict(keys),))
    group, name = "a set", "1,000 keys"
    bench(group, name, case, [placeholders(1_000)], pieces=20, yardsticks={}, columns=lambda t: {"ms": t.case / 1e6})
    limit("`RewriteSet` of 1,000 keys", ran.of(group, name).case / 1e6, most=2, unit=" ms")


@pytest.mark.parametrize("count", [13, 2_000])
@pytest.mark.parametrize("name", ["`RewriteSet.rewrite`", "`str.replace` of each key"])
def test_whole_text(bench: Any, name: str, count: int) -> None:
    keys = placeholders(count)
    rewriting = RewriteSet(keys).rewrite if name == "`RewriteSet.rewrite`" else partial(replaced_each, keys)
    text = "".join(windows("english")[0]) * 5
    case = Case(lambda text: rewriting(text), lambda text: (text,))
    group = f"a text of {len(text):,} characters, {count:,} keys"
    bench(group, name, case, [text], 9, pieces=1, yardsticks={}, columns=lambda times: {"ms": times.case / 1e6})
