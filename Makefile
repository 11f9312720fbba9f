PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread each: the matrices are small, and the tests run side by side.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: demo test test-fast test-slow lint bench clean

# The environment is complete when its stamp is newer than what defines it.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: .venv/.installed
	$(BIN)/odinfer example lotka_volterra demo
	$(BIN)/odinfer fit demo/lotka_volterra.ode demo/lotka_volterra.csv -o demo --truth demo/truth.json

test: lint
	$(BIN)/python -m pytest -n 2

test-slow: .venv/.installed
	$(BIN)/python -m pytest -m slow -n 2

lint: .venv/.installed
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

bench: .venv/.installed
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache
