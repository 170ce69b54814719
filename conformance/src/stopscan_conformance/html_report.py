"""Makes an HTML page without scripts from the output of `--json`. The page shows one server, or compares two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from stopscan_conformance.judge import COLUMNS

Run = Mapping[str, Any]  # the content of a file that `--json` wrote

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1f2937 }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; table-layout: fixed }
th, td { border: 1px solid #d1d5db; padding: .3rem .6rem; vertical-align: top; overflow-wrap: anywhere }
.number { text-align: right } .pass { background: #dcfce7 } .advice { background: #fef9c3 } .fail { background: #fdd }
blockquote { margin: .2rem 0 .2rem 1rem; font-style: italic } pre { white-space: pre-wrap; font-size: 12px; margin: 0 }
"""


def page(runs: Sequence[Run]) -> str:
    """Returns an HTML page that compares the runs. Its tables have a column for each run, in the order of `runs`."""
    head = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Stop sequences, measured</title>'
    return "\n".join([head, f"<style>{STYLE}</style>", *_promises(runs), *_failures(runs), "</html>\n"])


def _heads(runs: Sequence[Run]) -> str:
    return "".join(f"<th>{escape(run['url'])}{'' if run['complete'] else ' (ended early)'}</th>" for run in runs)


def _promises(runs: Sequence[Run]) -> Iterator[str]:
    """Yields a table with a row for each API and promise (a group of rules). A cell says how many cases keep the
    promise. It is redder if more cases break the promise."""
    yield "<h2>Promises: kept / tested</h2>"
    yield f"<table><tr><th>API</th><th>promise</th>{_heads(runs)}</tr>"
    for api in dict.fromkeys(result["api"] for run in runs for result in run["results"]):
        for column in COLUMNS:
            cells = "".join(_fraction(run, api, column) for run in runs)
            yield f"<tr><td>{api}</td><td>{column}</td>{cells}</tr>"
    yield "</table>"


def _fraction(run: Run, api: str, column: str) -> str:
    results = [result["findings"] for result in run["results"] if result["api"] == api]
    judged = [[one["fault"] for one in findings if one["promise"] == column] for findings in results]
    tested = [faults for faults in judged if faults]
    kept = sum(not any(faults) for faults in tested)
    return f'<td class="number" style="background: {heat(kept, len(tested))}">{kept}/{len(tested)}</td>'


def heat(kept: int, tested: int) -> str:
    """Returns the colour of a cell: green if all cases keep the promise, redder the more break it, grey if none tests
    it."""
    return f"hsl({120 * kept**2 // tested**2 if kept < tested else 140} 70% 85%)" if tested else "#f3f4f6"


def _failures(runs: Sequence[Run]) -> Iterator[str]:
    """Yields a table with the cases that break a rule on one of the servers."""
    results = [{(one["api"], one["stream"], one["case"]): one for one in run["results"]} for run in runs]
    broken = [key for run_results in results for key, one in run_results.items() if _faults(one)]
    yield f"<h2>Cases that break a rule: {len({*broken})}</h2>"
    yield f"<table><tr><th>case</th>{_heads(runs)}</tr>"
    for key in dict.fromkeys(broken):
        one = next(run_results[key] for run_results in results if key in run_results)
        head = f"<b>{one['case']}</b><br>{one['api']}, {'stream' if one['stream'] else 'whole'}<br>{escape(one['why'])}"
        yield f"<tr><td>{head}</td>{''.join(_cell(run_results.get(key)) for run_results in results)}</tr>"
    yield "</table>"


def _faults(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [finding for finding in result["findings"] if finding["fault"]]


def _cell(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "<td>not sent</td>"
    if result["outcome"] == "not supported":
        return f"<td>not supported: {escape(result['detail'])}</td>"
    faults = "".join(map(_fault, _faults(result)))
    curl = result.get("curl") and f"<details><summary>request</summary><pre>{escape(result['curl'])}</pre></details>"
    kind = "fail" if result["outcome"] == "fail" else "advice" if faults else "pass"
    return f'<td class="{kind}">{faults or "pass"}{curl or ""}</td>'


def _fault(finding: Mapping[str, Any]) -> str:
    """Returns HTML for a broken rule: what came instead, and the sentence that documents the rule. If there is no
    sentence, shows what the rule is based on."""
    quote, source = finding.get("quote"), escape(finding["source"])
    cited = f"<blockquote>{escape(quote)}</blockquote>{source}" if quote else source
    return f"<p><b>{finding['rule']}</b> ({finding['level']}): {escape(finding['fault'])}<br>{cited}</p>"
