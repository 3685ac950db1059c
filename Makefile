# Everything a user or a developer runs; `make demo` and `make test` need Python >= 3.11 with pip, and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := demo
# The release whose CPU and CUDA builds are both small enough to test everywhere.
TORCH := 2.13.0

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test check format lock build clean

help:  ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "moopt needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "moopt needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(VENV)/.installed $@

setup: $(VENV)/.installed  ## Create the environment and install moopt in it.

setup-dev: $(VENV)/.installed-dev  ## The same with the tools for development.

demo: setup  ## Train C-MORL on minecart, evaluate it, compare with the known front, draw the picture.
	rm -rf $(DEMO)/run
	$(BIN)/moopt train cmorl --config experiments/cmorl/minecart-demo.yaml --seed 0 --out $(DEMO)/run
	$(BIN)/moopt evaluate $(DEMO)/run --episodes 1
	$(BIN)/moopt plot $(DEMO)/run --out $(DEMO)/front.png
	@echo "The picture is $(DEMO)/front.png, the front itself $(DEMO)/run/front.csv."

test: setup-dev  ## Run the tests.
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not bench" $(PYTEST_ARGS)

check: setup-dev  ## Lint, types, layer rules.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: setup-dev  ## Format the code and fix what can be fixed.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup-dev  ## Pin the newest versions that fit pyproject.toml in constraints.txt.
	$(BIN)/pip-compile --quiet --all-extras --strip-extras --no-header --no-annotate --no-emit-find-links \
		--no-emit-index-url --no-emit-trusted-host --unsafe-package pip --unsafe-package setuptools \
		--upgrade-package torch==$(TORCH) -o constraints.txt pyproject.toml
	sed -i -e '/^moopt /d' -e '/^\(#.*\)\?$$/d' -e 's/^\(torch==[0-9.]*\)+.*/\1/' constraints.txt

build: setup-dev  ## Build the wheel and the source archive.
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

clean:  ## Remove build products, not the environment.
	rm -rf build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov *.egg-info
