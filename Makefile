PYTHON ?= python3
CORES ?= 1
HISTORIES ?= 20000
LOWEST := gp model policies search optimizer/test_optimizer.py space/test_space.py space/test_constraints.py test_recording.py
CODE := $(wildcard src tests benchmarks examples docs/assets)
# Tests run in as many processes as there are cores, and whoever is done takes tests from the others. JOBS=0: in one.
JOBS ?= auto
PYTEST := -m pytest -n $(JOBS) --dist worksteal
# The tests start many processes, which import quickly only if bytecode is cached.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := -m pip install -qq --disable-pip-version-check  # errors alone are printed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo paper check test examples test-neighbours test-browser coverage lint types docs gallery test-lowest test-pythons dist fuzz mutants bench-setup bench bench-cost bench-report bench-engine bench-limits bench-interrupt bench-crash bench-ledger bench-find bench-guard bench-tables bench-batches bench-contexts bench-noise bench-constraints bench-failures bench-optuna bench-search-cv bench-parallel bench-serve bench-paper bench-tsunami tsunamis bench-report-cost clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo  ## find the highest of four peaks, draw how
	@.venv/bin/gpmi demo

check: lint types  ## the quick loop: lint, types, and the tests that a person waits for (a minute)
	.venv/bin/python $(PYTEST) -m "not slow" --hypothesis-profile=quick

test: .venv/.dev  ## run all tests (some minutes); JOBS=0 runs one after the other
	.venv/bin/python $(PYTEST)

examples: .venv/.dev  ## the tests of properties with a thousand new examples each (a quarter of an hour)
	.venv/bin/python $(PYTEST) -m "hypothesis and not slow" --hypothesis-profile=many

test-browser: .venv/.dev  ## look at reports and at the pages of gpmi serve in Chromium (needs Debian's chromium and chromium-driver)
	.venv/bin/python -m pip install --quiet selenium axe-core-python
	@command -v chromedriver > /dev/null || echo "there is no Chromium, so the tests are skipped: apt-get install chromium chromium-driver"
	.venv/bin/python -m pytest -rs tests/serve/test_serve_browser.py tests/views/test_report_browser.py

test-lowest: .venv-lowest/.ready  ## the core's tests with the lowest NumPy and SciPy that are declared (a minute)
	OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -m "not slow" --hypothesis-profile=quick --hypothesis-seed=0 $(LOWEST:%=tests/%)

test-pythons:  ## the quick tests on every Python from 3.11 to 3.14 that is at hand (some minutes each)
	.ci/pythons

dist: .venv-dist/.ready  ## build the wheel and the sdist, check them, and run the README with the wheel in an empty environment
	rm -rf dist
	.venv-dist/bin/python -m build --outdir dist
	.venv-dist/bin/python -m twine check --strict dist/*
	PYTHON=$(PYTHON) .ci/wheel dist/*.whl

test-neighbours: .venv-bench/.ready .venv-neighbours/.ready  ## test the integrations that have large packages of their own (some minutes)
	.venv-bench/bin/python -m pytest --noconftest $(addprefix tests/integrations/neighbours/test_,botorch.py ax.py pages.py)
	.venv-neighbours/bin/python -m pytest --noconftest $(addprefix tests/integrations/neighbours/test_,ray.py hydra.py mlflow.py optunahub.py pages.py)

fuzz: .venv/.dev  ## play 20,000 random histories of an optimizer (an hour; HISTORIES=1000 plays fewer), and 1,000 runs under constraints
	GPMI_HISTORIES=$(HISTORIES) .venv/bin/python -m pytest tests/optimizer/test_fuzz.py -k many
	GPMI_POLYTOPES=1000 .venv/bin/python $(PYTEST) tests/space/test_constraints.py -k many_random_polytopes

coverage: .venv/.dev  ## run all tests, fail if fewer than 97 % of lines and branches were executed
	.venv/bin/python -m coverage erase
	.venv/bin/python -m coverage run $(PYTEST)
	.venv/bin/python -m coverage combine --quiet
	.venv/bin/python -m coverage report

lint: .venv/.dev  ## check style and formatting
	.venv/bin/ruff check $(CODE)
	.venv/bin/ruff format --check $(CODE)

types: .venv/.dev  ## check types, strictly
	.venv/bin/mypy

docs: .venv-docs/.ready  ## build the documentation into build/site and check its links; warnings are errors
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	@echo "open build/site/index.html"

gallery: .venv/.dev  ## draw the pictures of the documentation by its own blocks, and those of the stories
	MPLBACKEND=Agg .venv/bin/python docs/assets/draw.py docs/gallery.md docs/start.md
	cd docs/gallery && for story in $$(grep -l "^# %%" ../../examples/*.py); do MPLBACKEND=Agg ../../.venv/bin/python $$story || exit 1; done

paper: .venv/.demo  ## run the paper's experiments, write docs/paper.md (an hour or two; goes on where it stopped)
	.venv/bin/gpmi paper --out docs

bench-setup: .venv-bench/.ready .venv-bench-hebo/.ready  ## install the peers to compare with

bench: bench-setup  ## compare with the peers on all problems (hours; goes on where it stopped), then report
	.venv-bench/bin/python benchmarks/compare.py --cores $(CORES)
	.venv-bench/bin/python benchmarks/report.py

bench-cost: bench-setup  ## measure what a suggestion costs against the number of observations, then report
	.venv-bench/bin/python benchmarks/cost.py
	.venv-bench/bin/python benchmarks/report.py

bench-report: .venv-bench/.ready  ## write docs/benchmarks/compare.md from the tables
	.venv-bench/bin/python benchmarks/report.py

bench-engine: .venv-bench/.ready  ## measure the engine, next to Optuna and to what it was before the last large change
	.venv-bench/bin/python benchmarks/engine.py; status=$$?; .venv-bench/bin/python benchmarks/before_after.py && exit $$status

bench-limits: .venv/.dev  ## measure 10,000 observations, a million candidates, and the growth of the cost
	.venv/bin/python benchmarks/limits.py
	.venv/bin/python benchmarks/spikes.py

bench-interrupt: .venv/.dev  ## press Ctrl-C at 1,000 random moments, check that nothing is lost (some minutes)
	.venv/bin/python benchmarks/interrupt.py

bench-crash: .venv-bench/.ready  ## kill writers and servers of studies at random moments, and compare the speed with Optuna (an hour)
	.venv-bench/bin/python benchmarks/crash.py

bench-ledger: .venv/.dev  ## measure whether the ledger can be believed (half an hour; goes on where it stopped)
	.venv/bin/python benchmarks/ledger.py --cores $(CORES)

mutants: .venv/.dev  ## check that tests notice a wrong value of every constant that is guarded (some minutes)
	.venv/bin/python benchmarks/mutants.py --cores $(CORES)

bench-find: .venv/.dev  ## measure how often the best point is missed (half an hour; goes on where it stopped)
	.venv/bin/python benchmarks/find.py --cores $(CORES)

bench-guard: .venv/.dev  ## measure what the guard of aim="earn" does and costs (ten minutes; goes on where it stopped)
	.venv/bin/python benchmarks/guard.py

bench-tables: .venv-bench/.ready  ## measure the better rows left on sixteen real tables, next to the peers (hours; goes on where it stopped)
	.venv-bench/bin/python benchmarks/tables.py
	.venv-bench/bin/python benchmarks/noisy_tables.py --part development
	.venv-bench/bin/python benchmarks/noisy_tables.py

bench-batches: .venv-bench/.ready  ## compare batches with one point at a time and with BoTorch (an hour; goes on where it stopped)
	.venv-bench/bin/python benchmarks/batches.py
	.venv-bench/bin/python benchmarks/batches.py --peers

bench-noise: .venv/.dev  ## how often strong noise is taken for none, and how often an event says so (ten minutes)
	.venv/bin/python benchmarks/noise.py

bench-contexts: .venv/.dev  ## measure what a given context is worth (five minutes)
	.venv/bin/python benchmarks/contexts.py

bench-constraints: .venv-bench/.ready  ## compare constraints and conditions with the peers (half an hour; goes on where it stopped)
	.venv-bench/bin/python benchmarks/constraints.py

bench-failures: .venv-bench/.ready  ## runs in which 40 % of the box crashes, next to Optuna (an hour)
	.venv-bench/bin/python benchmarks/failures.py

bench-optuna: .venv-bench/.ready  ## compare the sampler for Optuna with Optuna's own (hours; goes on where it stopped)
	for part in cost workers problems tables; do .venv-bench/bin/python benchmarks/optuna_sampler.py $$part || exit 1; done

bench-search-cv: .venv-bench/.ready  ## compare the search for scikit-learn with two others (an hour; goes on where it stopped)
	.venv-bench/bin/python benchmarks/search_cv.py

bench-report-cost: .venv/.dev  ## measure what a report costs, in CPU and in bytes (two minutes)
	.venv/bin/python benchmarks/report_cost.py

bench-parallel: .venv/.dev  ## measure what two workers bring for an f of a second (two minutes)
	.venv/bin/python benchmarks/parallel.py

bench-serve: .venv/.dev  ## measure the live page of a study of 5,000 trials (some minutes)
	.venv/bin/python benchmarks/serve_cost.py --out docs/benchmarks/serve.md

bench-paper: .venv/.dev  ## measure what a run of the paper costs, next to scikit-learn
	.venv/bin/python benchmarks/paper_cost.py

bench-tsunami: .venv/.dev  ## check the simulation of tsunamis against theory and for convergence (a quarter of an hour)
	.venv/bin/python benchmarks/tsunami_check.py

tsunamis: .venv/.dev  ## simulate the table of tsunamis (hours; goes on where it stopped)
	.venv/bin/python benchmarks/tsunami_table.py --cores $$(.venv/bin/python -c "import os; print(os.cpu_count())")

clean:  ## remove environments, caches and output
	rm -rf .venv .venv-docs .venv-dist .venv-lowest .venv-python* .venv-bench .venv-bench-hebo .venv-neighbours build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.* gpmi-demo* gpmi-paper tsunami.png
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

# A stamp file inside the environment says what is installed in it.
%/bin/python:
	@$(PYTHON) -m venv $*

.venv/.demo: pyproject.toml | .venv/bin/python
	@echo "installing gpmi and what the demo needs into .venv; once, a minute or two"
	@.venv/bin/python $(INSTALL) -e ".[cli,plots]"
	@touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	@echo "installing gpmi and what its tests need into .venv; once, some minutes"
	@.venv/bin/python $(INSTALL) -e ".[dev]"
	@touch $@

# NumPy 1.26 has wheels for Python 3.11 and 3.12 only.
.venv-lowest/.ready: pyproject.toml
	$(firstword $(foreach v,3.11 3.12,$(shell command -v python$(v))) $(PYTHON)) -m venv .venv-lowest
	.venv-lowest/bin/python $(INSTALL) -e . "numpy==1.26.*" "scipy==1.15.*" "threadpoolctl==3.1.*" hypothesis mpmath pandas pytest
	touch $@

.venv-dist/.ready: | .venv-dist/bin/python
	.venv-dist/bin/python $(INSTALL) build twine
	touch $@

.venv-docs/.ready: pyproject.toml | .venv-docs/bin/python
	@echo "installing what the documentation needs into .venv-docs; once, a minute or two"
	@.venv-docs/bin/python $(INSTALL) -e ".[docs]"
	@touch $@

.venv-bench/.ready: pyproject.toml benchmarks/requirements.txt | .venv-bench/bin/python
	@echo "installing the peers to compare with into .venv-bench; once, many minutes"
	.venv-bench/bin/python $(INSTALL) torch==2.13.0
	.venv-bench/bin/python $(INSTALL) -e ".[cli,plots,postgres]" -r benchmarks/requirements.txt
	touch $@

.venv-neighbours/.ready: pyproject.toml | .venv-neighbours/bin/python
	.venv-neighbours/bin/python $(INSTALL) -e ".[hydra,mlflow,optuna,ray]" optunahub pytest
	touch $@

# HEBO's pins exclude the other peers, and the NumPy that gpmi declares; gpmi's problems and adapters run with it.
.venv-bench-hebo/.ready: pyproject.toml benchmarks/requirements-hebo.txt | .venv-bench-hebo/bin/python
	.venv-bench-hebo/bin/python $(INSTALL) torch==2.13.0
	.venv-bench-hebo/bin/python $(INSTALL) -r benchmarks/requirements-hebo.txt
	.venv-bench-hebo/bin/python $(INSTALL) --no-build-isolation --no-deps --force-reinstall --no-cache-dir --no-binary pymoo pymoo==0.6.0
	.venv-bench-hebo/bin/python $(INSTALL) --no-deps -e .
	touch $@
