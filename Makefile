PYTHON ?= python3
CODE := $(wildcard src tests benchmarks examples)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint types bench-setup bench-engine bench-limits clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo  ## optimise a test function, draw what happened
	.venv/bin/gpmi demo

test: .venv/.dev  ## run all tests
	.venv/bin/python -m pytest

lint: .venv/.dev  ## check style and formatting
	.venv/bin/ruff check $(CODE)
	.venv/bin/ruff format --check $(CODE)

types: .venv/.dev  ## check types, strictly
	.venv/bin/mypy

bench-setup: .venv-bench/.ready  ## install the peers to compare with

bench-engine: .venv-bench/.ready  ## measure the engine, next to Optuna
	.venv-bench/bin/python benchmarks/engine.py

bench-limits: .venv/.dev  ## measure 10,000 observations, a million candidates, and the growth of the cost
	.venv/bin/python benchmarks/limits.py

clean:  ## remove environments, caches and output
	rm -rf .venv .venv-bench build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache gpmi-demo*
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

# A stamp file inside the environment says what is installed in it.
%/bin/python:
	$(PYTHON) -m venv $*

.venv/.demo: pyproject.toml | .venv/bin/python
	.venv/bin/python -m pip install -e ".[cli,plots]"
	touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	.venv/bin/python -m pip install -e ".[dev]"
	touch $@

.venv-bench/.ready: pyproject.toml benchmarks/requirements.txt | .venv-bench/bin/python
	.venv-bench/bin/python -m pip install torch==2.13.0
	.venv-bench/bin/python -m pip install -e ".[cli,plots]" -r benchmarks/requirements.txt
	touch $@
