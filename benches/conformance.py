"""Measures servers with the conformance kit, and makes the tables of docs/conformance.md.

    python benches/conformance.py NAME [--python PYTHON] [--proxied]

starts the server NAME in the environment of PYTHON, runs the conformance kit on it, writes docs/conformance/NAME.json
and makes the tables again. Without a NAME it only makes the tables. With --proxied, the kit's requests go through
`stopscan-proxy --api none`, and the file is docs/conformance/proxied/NAME.json. `conformance_servers.py` has the
servers. For llama.cpp, the Python that runs this script needs the package gguf.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import date
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance_servers import SERVERS, Column

from stopscan_conformance import APIS, COLUMNS, Case, Result, Server, cases
from stopscan_conformance.html_report import heat
from stopscan_conformance.reciter import Reciter
from stopscan_conformance.run import AT_ONCE, run

sys.path.append(str(Path(__file__).parents[1] / "clients" / "tests"))

from running import running

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "conformance.md"
RESULTS = ROOT / "docs" / "conformance"
PROXIED = RESULTS / "proxied"
DEAD = "generation thread died"  # what mlx_lm.server answers, with a 404, once its generation thread has died
CLIENTS = ("openai", "anthropic", "ollama", "httpx")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a server, and make the tables of docs/conformance.md.")
    parser.add_argument("name", nargs="?", choices=SERVERS)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the server")
    parser.add_argument("--api", action="append", choices=APIS, help="only this one (may be given more than once)")
    parser.add_argument("--proxied", action="store_true", help="with stopscan's proxy before the server")
    options = parser.parse_args()
    if options.name:
        column = SERVERS[options.name]
        measured = measure(column, options.python, options.api or column.apis, proxied=options.proxied)
        path = (PROXIED if options.proxied else RESULTS) / f"{options.name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(written(with_earlier(path, measured)), encoding="utf-8")
    make_tables()


def measure(column: Column, python: str, apis: Sequence[str], *, proxied: bool) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        model = Reciter().write(Path(folder, "reciter"))
        gguf = Path(folder, "reciter.gguf")
        if "{gguf}" in column.command:
            from stopscan_conformance.gguf_file import write_gguf

            write_gguf(Reciter(), gguf)
        places = {"python": python, "bin": str(Path(python).parent), "model": str(model), "gguf": str(gguf)}
        named = column.model and column.model.format(**places)
        results: dict[Case, Result] = {}
        left = cases(*apis)
        while left:
            with served(column, places, Path(folder, "log")) as port:
                upstream = f"http://127.0.0.1:{port}"
                with running(upstream, "--api", "none", *column.proxy) if proxied else nullcontext() as proxy:
                    found: dict[Case, Result] = {}
                    run(Server(proxy.url if proxy else upstream, model=named, timeout=120), left, found)
            results |= found
            dead = [case for case in left if DEAD in found[case].detail]
            # If the server died, a new server gets the cases that failed because of that. If all cases of a run failed
            # in this way, one of the first `AT_ONCE` cases, which run together, ended the server. These are then left
            # out, so that the other cases can run.
            left = dead if len(dead) < len(left) else dead[AT_ONCE:]
    measured = {
        "title": column.title,
        "command": command_to_read(column),
        "versions": versions(python, column.packages),
        "clients": {name: version(name) for name in CLIENTS},
        "date": date.today().isoformat(),
        "apis": {api: summary({case: one for case, one in results.items() if case.api == api}) for api in apis},
    }
    # The answers of servers may contain the path of the model. This removes the temporary folder from that path.
    without_folder: dict[str, Any] = json.loads(json.dumps(measured).replace(f"{folder}/", ""))
    return without_folder


def with_earlier(path: Path, measured: dict[str, Any]) -> dict[str, Any]:
    """Returns `measured`, and adds the results of other APIs from the file at `path` if they were measured on the same
    day with the same server."""
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if any(earlier.get(name) != measured[name] for name in ("command", "versions", "clients", "date")):
        return measured
    apis = {**earlier["apis"], **measured["apis"]}
    return {**measured, "apis": {api: apis[api] for api in APIS if api in apis}}


@contextmanager
def served(column: Column, places: dict[str, str], log: Path) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [word.format(port=port, **places) for word in shlex.split(column.command)]
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env={**os.environ, **column.environment}
        ) as process,
    ):
        try:
            while not listens(port):
                if process.poll() is not None:
                    sys.exit(log.read_text())
                time.sleep(0.2)
            yield port
        finally:
            process.terminate()


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def command_to_read(column: Column) -> str:
    places = {"python": "python", "bin": "", "model": "reciter", "gguf": "reciter.gguf", "port": "8000"}
    words = [*(f"{name}='{value}'" for name, value in column.environment.items()), column.command.format(**places)]
    return " ".join(words).replace(" /", " ").removeprefix("/")


def versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    script = f"from importlib.metadata import version\nfor name in {packages!r}: print(version(name))"
    printed = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout
    return dict(zip(packages, printed.split(), strict=True))


def summary(results: dict[Case, Result]) -> dict[str, Any]:
    """Summarizes the results of one API. Counts the cases that passed and the cases that were judged, for each column
    of the kit's report (such as ``late``) and for each topic of the cases. Also lists the most frequent faults."""
    judged = {case: one for case, one in results.items() if one.outcome != "not supported"}
    faults = Counter((column, one.columns[column]) for one in judged.values() for column in one.wrong)
    refused = Counter(one.detail for one in results.values() if one.outcome == "not supported")
    return {
        "cases": Counter(one.outcome for one in results.values()),
        "columns": {
            column: [
                sum(column in one.columns and column not in one.wrong for one in judged.values()),
                sum(column in one.columns for one in judged.values()),
            ]
            for column in COLUMNS
        },
        "topics": {
            topic: [
                sum(case.topic == topic and not set(one.wrong) - {"form"} for case, one in judged.items()),
                sum(case.topic == topic for case in judged),
            ]
            for topic in dict.fromkeys(case.topic for case in results)
        },
        "broken": {
            f"{'stream' if case.stream else 'whole'} {case.name}": list(one.wrong)
            for case, one in judged.items()
            if set(one.wrong) - {"form"}
        },
        "faults": [[column, fault, count] for (column, fault), count in faults.most_common(12)],
        "not supported": [[detail, count] for detail, count in refused.most_common(5)],
    }


def written(measured: dict[str, Any]) -> str:
    """Returns the measurement as JSON, with a line for each API."""
    apis = ",\n".join(
        f"{json.dumps(api)}: {json.dumps(found, ensure_ascii=False)}" for api, found in measured["apis"].items()
    )
    head = json.dumps({key: value for key, value in measured.items() if key != "apis"})
    return f'{head[:-1]}, "apis": {{\n{apis}\n}}}}\n'


def make_tables() -> None:
    """Replaces the tables of docs/conformance.md, each between two markers."""
    found = {name: RESULTS / f"{name}.json" for name in SERVERS}
    measured = [json.loads(path.read_text()) for path in found.values() if path.exists()]
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = {
        "servers": by_server(measured),
        "proxied": behind_the_proxy(),
        "commands": commands(measured),
    }
    for name, lines in blocks.items():
        block = f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- /{name} -->"
        text = re.sub(f"<!-- {name} -->.*?<!-- /{name} -->", lambda _, block=block: block, text, flags=re.DOTALL)
    DOCUMENT.write_text(text, encoding="utf-8")


def by_server(measured: list[dict[str, Any]]) -> Iterator[str]:
    """Yields the lines of a heat map, which is an HTML table. It shows the first API of each server. The JSON files
    have the results of all APIs."""
    yield f"<table><tr><th>server</th><th>fails</th>{''.join(f'<th>{column}</th>' for column in COLUMNS)}</tr>"
    for one in measured:
        found = next(iter(one["apis"].values()))
        cells = "".join(
            f'<td style="background: {heat(kept, judged)}; color: #1f2937">{kept}/{judged}</td>'
            for kept, judged in found["columns"].values()
        )
        yield f"<tr><td>{one['title']}</td><td>{found['cases'].get('fail', 0)}</td>{cells}</tr>"
    yield "</table>"


def behind_the_proxy() -> Iterator[str]:
    columns = ("text", "finish", "late")
    yield f"| server | API | | {' | '.join(columns)} | cases not supported |"
    yield "|---|---|---|" + "---:|" * len(columns) + "---:|"
    for path in (PROXIED / f"{name}.json" for name in SERVERS):
        if not path.exists():
            continue
        proxied, alone = (json.loads(each.read_text()) for each in (path, RESULTS / path.name))
        api, found = next(iter(proxied["apis"].items()))
        for where, told in (("alone", alone["apis"][api]), ("behind the proxy", found)):
            cells = [f"{kept}/{judged}" for kept, judged in (told["columns"][name] for name in columns)]
            refused = sum(count for _, count in told["not supported"])
            yield f"| {proxied['title']} | `{api}` | {where} | {' | '.join(cells)} | {refused or ''} |"


def commands(measured: list[dict[str, Any]]) -> Iterator[str]:
    yield "| server | date | not supported | versions | command |"
    yield "|---|---|---:|---|---|"
    for one in measured:
        told = ", ".join(f"{name} {number}" for name, number in one["versions"].items())
        refused = next(iter(one["apis"].values()))["cases"].get("not supported", 0)
        yield f"| {one['title']} | {one['date']} | {refused} | {told} | `{one['command']}` |"


if __name__ == "__main__":
    main()
