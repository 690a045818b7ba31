# `make run` and `make test` do all the set-up; a stamp per environment keeps the second call from reinstalling.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= 2

.PHONY: run test test-slow test-portable lint types docs stub dist try-wheel bench clean

run: $(VENV)/.installed
	$(BIN)/jorth demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses $(WORKERS)

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m slow

# other processors and other seeds; ARGUMENTS as in tests/portable.py
test-portable: $(VENV)/.installed-dev
	$(BIN)/python tests/portable.py --workers $(WORKERS) $(ARGUMENTS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# the site, in out/site; a warning, such as a link that leads nowhere, is an error
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "the site: out/site/index.html"

# the public names for type checkers
stub: $(VENV)/.installed-dev
	$(BIN)/python scripts/public_names.py

# the wheel and the sdist, in dist
dist: $(VENV)/.installed-dev
	$(BIN)/python -m hatchling build

# what a stranger does: the wheel in an empty environment, then the quickstart line by line
try-wheel: dist
	$(BIN)/python tests/fresh_install.py dist/*.whl --constraint constraints.txt

# the tables of docs/results/performance.md, some ten minutes
bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/plane.py
	$(BIN)/python benchmarks/accelerated.py

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "jorth needs Python 3.10 or later; call make with PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[plots,sklearn]'
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[docs]'
	touch $@
