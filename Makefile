PYTHON ?= python3
CORES ?= 1
# How many cases of each class `make fuzz` plays.
HISTORIES ?= 10000
GOALS ?= 2000
FIDELITIES ?= 2000
STUDIES ?= 1000
FLIPS ?= 500
FUNCTIONS ?= 300
INPUTS ?= 300
REQUESTS ?= 2000
LOWEST := $(addprefix gp/test_,ep.py exact.py linalg.py tracking.py) model/test_fitting.py model/test_model.py policies/test_policies.py search optimizer/test_optimizer.py space/test_space.py space/test_constraints.py test_recording.py
CODE := $(wildcard src tests paper benchmarks examples docs/assets)
TEXT := $(wildcard docs deploy integrations *.md *.toml *.yml *.yaml Dockerfile Makefile)
# Tests run in as many processes as there are cores, and whoever is done takes tests from the others. JOBS=0: in one.
JOBS ?= auto
PYTEST := -m pytest -n $(JOBS) --dist worksteal
# The tests start many processes, which import quickly only if bytecode is cached.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := -m pip install -qq --disable-pip-version-check  # errors alone are printed
NEWEST := $(INSTALL) --upgrade --upgrade-strategy eager

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo paper check test test-loaded test-platforms test-one-core examples test-neighbours test-browser coverage lint types docs gallery test-lowest test-newest test-pythons wheel-check dist fuzz mutants bench-setup bench tsunamis clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo  ## find the highest of four peaks, draw how
	@.venv/bin/gpmi demo

check: lint types  ## the quick loop: lint, types, and the tests that a person waits for (a minute)
	.venv/bin/python $(PYTEST) -m "not slow" --hypothesis-profile=quick

test: .venv/.dev  ## run all tests (some minutes); JOBS=0 runs one after the other
	.venv/bin/python $(PYTEST)

test-loaded: .venv/.dev  ## run all tests three times in a row beside four busy loops (an hour)
	.ci/loaded .venv/bin/python $(PYTEST)

# TESTS=tests plays them all.
TESTS ?= tests/test_recording.py tests/analysis tests/project/test_docs.py tests/project/test_examples.py
test-platforms: .venv/.dev .venv-lowest/.ready  ## play the recording, the ledgers and the documents with the vector units of other processors (an hour)
	.ci/platforms $(PLATFORMS) -- $(TESTS)

test-one-core: .venv/.dev  ## run all tests on one core (a quarter of an hour)
	taskset -c 0 .venv/bin/python $(PYTEST)

examples: .venv/.dev  ## the tests of properties with a thousand new examples each (a quarter of an hour)
	.venv/bin/python $(PYTEST) -m "hypothesis and not slow" --hypothesis-profile=many

test-browser: .venv/.dev  ## look at reports and at the pages of gpmi serve in Chromium (needs Debian's chromium and chromium-driver)
	.venv/bin/python -m pip install --quiet selenium axe-core-python
	@command -v chromedriver > /dev/null || echo "there is no Chromium, so the tests are skipped: apt-get install chromium chromium-driver"
	.venv/bin/python -m pytest -rs tests/serve/test_serve_browser.py tests/views/test_report_browser.py

test-lowest: .venv-lowest/.ready  ## the core's tests with the lowest NumPy and SciPy that are declared (a minute)
	OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -m "not slow" --hypothesis-profile=quick --hypothesis-seed=0 $(LOWEST:%=tests/%)

# The neighbours have pins of their own, which would hold back what the other tests use.
test-newest: | .venv-newest/bin/python .venv-newest-neighbours/bin/python  ## the quick tests with the newest version of every dependency, and write docs/versions.md (a quarter of an hour)
	.venv-newest/bin/python $(NEWEST) -e ".[dev]"
	.venv-newest-neighbours/bin/python $(NEWEST) -e ".[ax,botorch,hydra,mlflow,optuna,ray,sklearn]" optunahub pytest
	.venv-newest/bin/python $(PYTEST) -m "not slow" --hypothesis-profile=quick
	.venv-newest-neighbours/bin/python -m pytest --noconftest tests/integrations/neighbours
	.venv-newest/bin/python .ci/versions.py .venv-newest .venv-newest-neighbours

test-pythons:  ## the quick tests on every Python from 3.11 to 3.14 that is at hand (some minutes each)
	.ci/pythons

wheel-check: .venv-dist/.ready  ## build the wheel and the sdist, install each in an empty environment, run gpmi there (a minute or two)
	rm -rf dist
	.venv-dist/bin/python -m build --outdir dist
	.venv-dist/bin/python -m twine check --strict dist/*
	PYTHON=$(PYTHON) .ci/install dist/*

dist: wheel-check  ## the same, and run the README with the wheel in an empty environment
	PYTHON=$(PYTHON) .ci/wheel dist/*.whl

test-neighbours: .venv-bench/.ready .venv-neighbours/.ready  ## test the integrations that have large packages of their own (some minutes)
	.venv-bench/bin/python -m pytest --noconftest $(addprefix tests/integrations/neighbours/test_,botorch.py ax.py pages.py)
	.venv-neighbours/bin/python -m pytest --noconftest $(addprefix tests/integrations/neighbours/test_,ray.py hydra.py mlflow.py optunahub.py pages.py)

fuzz: .venv/.dev  ## play random histories, flipped bits, hostile functions, inputs and requests, many of each (hours; HISTORIES=1000 plays fewer)
	GPMI_HISTORIES=$(HISTORIES) GPMI_GOALS=$(GOALS) GPMI_FIDELITIES=$(FIDELITIES) GPMI_STUDIES=$(STUDIES) GPMI_FLIPS=$(FLIPS) GPMI_FUNCTIONS=$(FUNCTIONS) GPMI_INPUTS=$(INPUTS) GPMI_REQUESTS=$(REQUESTS) GPMI_OUTPUT_REQUESTS=$(REQUESTS) GPMI_POLYTOPES=1000 \
		.venv/bin/python -m pytest -s -m fuzz --show-capture=no

coverage: .venv/.dev  ## run all tests, fail if fewer than 97 % of lines and branches were executed
	.venv/bin/python -m coverage erase
	.venv/bin/python -m coverage run $(PYTEST)
	.venv/bin/python -m coverage combine --quiet
	.venv/bin/python -m coverage report

lint: .venv/.dev  ## check style, formatting and spelling
	.venv/bin/ruff check $(CODE)
	.venv/bin/ruff format --check $(CODE)
	.venv/bin/codespell $(filter-out docs/%,$(CODE)) $(TEXT)

types: .venv/.dev  ## check types, strictly
	.venv/bin/mypy

docs: .venv-docs/.ready  ## build the documentation into build/site and check its links; warnings are errors
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	@echo "open build/site/index.html"

gallery: .venv/.dev  ## draw the pictures of the documentation by its own blocks, and those of the stories
	MPLBACKEND=Agg .venv/bin/python docs/assets/draw.py docs/gallery.md docs/start.md docs/howto/plate.md docs/howto/mixture.md
	cd docs/gallery && for story in $$(grep -l "^# %%" ../../examples/*.py); do MPLBACKEND=Agg ../../.venv/bin/python $$story || exit 1; done

paper: .venv/.demo  ## run the paper's experiments, write docs/paper.md (an hour or two; goes on where it stopped)
	.venv/bin/python -m paper --out docs

bench-setup: .venv-bench/.ready .venv-bench-hebo/.ready  ## install the peers to compare with

# benchmarks/launch.py reads which environment a benchmark needs.
bench:  ## run a benchmark: make bench NAME=find ARGS="--cores 2"; without NAME, list them
ifeq ($(origin NAME),command line)
	@stamps=$$($(PYTHON) benchmarks/launch.py --stamps $(NAME)) && $(MAKE) --no-print-directory $$stamps
	$(PYTHON) benchmarks/launch.py $(NAME) $(ARGS)
else
	@$(PYTHON) benchmarks/launch.py
endif

mutants: .venv/.dev  ## check that tests notice a wrong value of every constant that is guarded (some minutes)
	.venv/bin/python benchmarks/mutants.py --cores $(CORES)

tsunamis: .venv/.anuga  ## simulate the table of tsunamis (hours; goes on where it stopped)
	.venv/bin/python benchmarks/tsunami_table.py --cores $$(.venv/bin/python -c "import os; print(os.cpu_count())")

clean:  ## remove environments, caches and output
	rm -rf .venv .venv-docs .venv-dist .venv-lowest .venv-newest* .venv-python* .venv-bench .venv-bench-hebo .venv-neighbours build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.* gpmi-demo* gpmi-paper tsunami.png
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

.venv/.anuga: paper/requirements.txt | .venv/.dev
	.venv/bin/python $(INSTALL) -r paper/requirements.txt
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
