# What people do here most. CONTRIBUTING.md says when. `make env` comes first.

python := .venv/bin/python

.PHONY: help env build test kit rust one lint types docs bench fuzz all

help: ## This list.
	@sed -n 's/^\([a-z]*\): ## /\1\t/p' Makefile

env: ## An environment with everything but the engines, and the module built for it.
	python3 -m venv .venv
	.venv/bin/pip install -q maturin
	.venv/bin/maturin develop -q
	.venv/bin/pip install -q 'stopscan[test,lint,docs]' -e './clients[proxy]' -e ./conformance

build: ## After a change in rust/: builds the module, without optimizing it.
	.venv/bin/maturin develop -q

test: ## Python's tests.
	$(python) -m pytest -q -n auto --dist loadfile

kit: ## The tests of the conformance kit.
	cd conformance && ../$(python) -m pytest -q -n auto --dist worksteal

rust: ## Rust's tests.
	cargo test --quiet --features serde

one: ## One test: `make one of=tests/python/core/test_scan.py`.
	$(python) -m pytest -q $(of)

lint: ## Format, lint, imports.
	cargo fmt --all
	cargo fmt --manifest-path rust/wasm/Cargo.toml
	cargo clippy --workspace --all-targets --features serde -- --deny warnings
	.venv/bin/ruff format .
	.venv/bin/ruff check .
	python3 ci/check_imports.py

types: ## Type checks.
	.venv/bin/mypy
	.venv/bin/pyright

docs: ## The site, in target/site.
	bash ci/wasm || [ $$? = 75 ]
	.venv/bin/mkdocs build --strict

bench: ## The benchmarks of the library, on a quiet machine.
	.venv/bin/pip install -q 'stopscan[bench]'
	.venv/bin/maturin develop -q --profile distribution
	$(python) -m pytest benches --benchmark-json=target/benchmarks.json
	$(python) benches/tables.py target/benchmarks.json

fuzz: ## Each target for a minute.
	bash fuzz/run 60

all: ## Everything that decides whether a change lands.
	bash .ci/run
