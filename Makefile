# prill in two commands: `make demo` and `make test`. Both set up what they need, once.
SHELL   := /bin/bash
VENV    ?= .venv
BIN     := $(VENV)/bin
SEED    ?= 0
SANDBOX ?=
RUNS    ?= runs
SITE    ?= site
WORKERS ?= 2
WITH    := $(if $(SANDBOX),--sandbox $(SANDBOX))

.PHONY: help demo programs test test-vllm kills real-models zoo check coverage bench docs setup clean

help:           ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup:          ## a virtual environment with all that demo, test and bench need; bubblewrap; idempotent
	@VENV=$(VENV) ./setup.sh $(if $(SANDBOX),--without-bubblewrap)

demo: setup     ## run the whole smoke suite, print its standings and the path of its site
	@$(BIN)/prill run --suite smoke --seed $(SEED) --runs $(RUNS) $(WITH)
	@$(BIN)/prill score smoke --runs $(RUNS) $(WITH)
	@echo "site: $$($(BIN)/prill publish smoke --runs $(RUNS) --to $(SITE) $(WITH))"

programs: setup ## the agents' own programs from npm into .cache/npm (1.1 GB, once); without npm their tests are skipped
	@PRILL_CACHE=$(CURDIR)/.cache $(BIN)/prill agents install >/dev/null \
	  || echo "make: the agents' programs are not all there; the tests that need them are skipped by name" >&2

test: programs  ## all tests, whole runs on a CPU included
	@$(BIN)/python -m compileall -q src tests  # for the hundreds of processes that may not write bytecode, in boxes
	@$(BIN)/python -m pytest tests -n $(WORKERS) --dist loadfile --no-loadscope-reorder -rs

test-vllm: setup ## real vLLM on a CPU through the engine's tests; builds .cache/vllm-venv once (3.4 GB)
	@bash tests/vllm_environment.sh
	@PRILL_VLLM=$(CURDIR)/.cache/vllm-venv $(BIN)/python -m pytest tests/shelves/test_engines.py -k vllm

kills: setup    ## kill the runner at each event, a hundred times over, and count bytes and cents; minutes
	@PRILL_KILLS=100 $(BIN)/python -m pytest tests/flow/test_durable.py

real-models: setup ## real public models from packages, measured on real items; many minutes on a CPU
	@$(BIN)/python tests/real_models.py
	@$(BIN)/python tests/real_models.py --write

zoo: setup      ## the lineage zoo: a family of small models trained here, minutes; writes docs/reference/zoo.md
	@$(BIN)/python tests/zoo.py --write

check: setup    ## ruff, mypy, house rules, definitions, coverage of the pure modules
	@$(BIN)/ruff check src tests bench
	@$(BIN)/ruff format --check src tests bench
	@$(BIN)/mypy
	@$(BIN)/prill check
	@$(MAKE) --no-print-directory coverage

coverage: setup ## lines of the pure modules that fast tests run; below 95 % fails
	@$(BIN)/python -m pytest tests -m "not slow" --ignore tests/flow --ignore tests/shelves/test_sandboxes.py \
	  -n $(WORKERS) --dist loadfile -p no:cacheprovider --cov-report= \
	  $$(PYTHONPATH=tests $(BIN)/python -c 'from house.floors import PURE; print(*(f"--cov=prill.{n}" for n in sorted(PURE)))')
	@$(BIN)/python -m coverage report --fail-under=95

bench: setup    ## performance, paired against peers in one run; a missed goal exits non-zero
	@$(BIN)/python -m bench

docs: setup     ## run the documentation's own tests
	@$(BIN)/python -m pytest tests/house -k "docs or documented"

clean:          ## forget the demo's runs and site (the environment stays)
	rm -rf $(RUNS) $(SITE)
